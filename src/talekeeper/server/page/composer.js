// What you say: an answer when it is your turn, words for some ears only, a wish for the next round.
import { once } from "/page/api.js";
import { dot, h, put, sign, toast } from "/page/dom.js";
import { command, isCommand } from "/page/keys.js";

const LONGEST = 4000;

export function drawComposer(app, place) {
  const { play } = app;
  const state = JSON.stringify([app.story, app.mode, app.seat, app.at, app.branch, app.dm, app.game, play && [play.waiting, play.running, play.auto, play.ending, play.told, play.failed, play.round, play.party.map((one) => one.id)], play ? app.mode === "act" && app.scene?.choices : [app.seats, app.turns.length > 0]]);
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
  if (app.at) put(place, past(app));
  else if (play) put(place, failed(play), modes(app), { act: acting, whisper: whispering, nudge: nudging }[app.mode](app));
  else if (app.game !== false) put(place); // whether it is played is not known yet
  else put(place, modes(app), telling(app, app.mode === "whisper"));
  if (focused) document.getElementById(focused)?.focus();
}

const failed = (play) => (play.failed ? h("p", { class: "failed", role: "alert" }, h("strong", {}, "The round was given up. "), play.failed, " The story is as it was before: play the round again.") : null);

function modes(app) {
  const words = app.play ? [["act", "Act"], ["whisper", "Whisper"], ["nudge", "Nudge"]] : [["act", "Say"], ["whisper", "Whisper"]];
  if (app.play && !app.dm) return null;
  return h("div", { class: "modes", role: "group", "aria-label": "What to do" }, words.map(([mode, label]) => h("button", { id: `mode-${mode}`, "aria-pressed": String(app.mode === mode), onclick: () => app.look({ mode }) }, label)));
}

function past(app) {
  return h("div", { class: "past" }, h("p", {}, sign("look"), h("span", {}, h("strong", {}, "You are looking at the past. "), "Every panel shows this point of the story.")),
    h("div", { class: "buttons" }, app.dm ? h("button", { class: "button primary", id: "fork-here", onclick: () => app.fork() }, "Continue from here") : null, h("button", { class: "button quiet", onclick: () => app.travel(null) }, "Back to now")));
}

// What is being written is kept until it is sent, whatever happens to the page around it.
function draft(app, id, props) {
  const key = `${app.story} ${id}`;
  const text = h("textarea", { id, rows: 2, maxlength: LONGEST, value: app.drafts[key] ?? "", ...props, oninput: () => { app.drafts[key] = text.value; grow(text); } });
  text.sent = () => { delete app.drafts[key]; delete app.drafts[`${app.story} ears`]; delete app.drafts[`${app.story} from`]; text.value = ""; };
  text.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); text.form.requestSubmit(); } });
  return text;
}

const grow = (text) => { text.style.height = "auto"; text.style.height = `${Math.min(220, text.scrollHeight + 2)}px`; };

// One submission at a time; what failed can be sent again.
function sending(work) {
  return async (event) => {
    event.preventDefault();
    const form = event.currentTarget;
    if (form.dataset.busy) return;
    form.dataset.busy = "yes";
    await work();
    delete form.dataset.busy;
  };
}

// -- at a table ---------------------------------------------------------------------------------------------------------------

function acting(app) {
  const { play } = app;
  if (play.running) return h("p", { class: "waiting" }, h("span", { class: "pulse" }), h("span", {}, "The table is speaking…"), play.auto && app.dm ? h("button", { class: "button quiet", onclick: () => app.auto(false) }, "Pause after this round") : null);
  const mine = play.waiting && (!app.seat || app.seat === play.waiting || app.seat === "dm");
  if (mine) return answering(app, play.waiting);
  if (play.waiting) return h("p", { class: "waiting" }, `Waiting for ${app.name(play.waiting)}.`);
  if (!app.dm) return h("p", { class: "waiting" }, "Waiting for the others.");
  const begun = play.round > 1;
  const over = play.ending ? "The story has come to its end. What follows is aftermath." : play.told ? "The end has been told. Play on if you like, or undo it." : "";
  return h("div", {}, over ? h("p", { class: "muted" }, over) : null,
    h("div", { class: "buttons" }, h("button", { class: "button primary large", id: "step", onclick: () => app.step() }, begun ? "Next round" : "Begin"),
      h("button", { class: "button quiet", id: "play-on", onclick: () => app.auto(true) }, sign("play"), "Play on")));
}

function answering(app, seat) {
  const text = draft(app, "answer", { placeholder: "Say what you do, in your own words…", "aria-label": `What does ${app.name(seat)} do?` });
  const send = async (words) => { if (isCommand(words) ? command(app, words) : await app.act(seat, words)) text.sent(); };
  const choices = (app.scene?.choices ?? []).slice(0, 5);
  return h("form", { onsubmit: sending(() => send(text.value)) },
    h("p", { class: "turn-of" }, dot(seat, app.name(seat)), h("span", {}, h("strong", {}, app.name(seat)), ", what do you do?")),
    choices.length ? h("div", { class: "choices", role: "group", "aria-label": "Choices" }, choices.map((one) => h("button", { type: "button", class: "choice", onclick: () => send(one.text) }, one.text))) : null,
    h("div", { class: "line" }, text, h("button", { class: "button primary" }, "Act")));
}

function speaker(app, id, label, people) {
  const key = `${app.story} from`;
  return h("select", { id, "aria-label": label, onchange: (event) => { app.drafts[key] = event.target.value; } }, people.map((one) => h("option", { value: one.id, selected: app.drafts[key] === one.id }, one.name)));
}

// Who is to hear it; kept like what is written, until it is said.
function ears(app, people) {
  const ticked = (app.drafts[`${app.story} ears`] ??= new Set());
  const boxes = people.map((one) => ({ one, box: h("input", { type: "checkbox", value: one.id, checked: ticked.has(one.id), onchange: (event) => (event.target.checked ? ticked.add(one.id) : ticked.delete(one.id)) }) }));
  return { chosen: () => boxes.filter(({ box }) => box.checked).map(({ one }) => one.id), shown: boxes.map(({ one, box }) => h("label", { class: "ear" }, box, dot(one.id, one.name, "small"), one.name)) };
}

function whispering(app) {
  const from = speaker(app, "whisperer", "Who whispers", [{ id: "dm", name: "The DM" }, ...app.party]);
  const to = ears(app, app.party);
  const text = draft(app, "whisper", { required: true, placeholder: "Words for some ears only…", "aria-label": "What is whispered" });
  const send = async () => {
    if (!to.chosen().length) return toast("Say who is to hear it: tick a name above.", "bad");
    const went = await app.do(() => once(`${app.path}/whisper`, { speaker: from.value, to: to.chosen(), text: text.value }, app.where));
    if (went) { text.sent(); app.look({ mode: "act" }); }
  };
  return h("form", { onsubmit: sending(send) }, h("p", { class: "ears" }, from, h("span", { class: "muted" }, "whispers to"), to.shown),
    h("div", { class: "line" }, text, h("button", { class: "button primary", disabled: app.play.running }, "Whisper")), app.play.running ? h("p", { class: "muted small" }, "A round is being played: whisper at its end.") : null);
}

function nudging(app) {
  const text = draft(app, "nudge", { rows: 1, maxlength: 400, required: true, placeholder: "More rain, less talk…", "aria-label": "A wish for the next round" });
  const busy = app.play.running || Boolean(app.play.waiting);
  const send = async () => { if (await app.step(text.value)) { text.sent(); app.look({ mode: "act" }); } };
  return h("form", { onsubmit: sending(send) }, h("div", { class: "line" }, text, h("button", { class: "button primary", disabled: busy }, "Play")), h("p", { class: "muted small" }, busy ? "A wish is for the next round: this one is in flight." : "It goes into the prompts of one round, and then it is gone."));
}

// -- without a table ------------------------------------------------------------------------------------------------------------

// A story that is told and not played: whoever may speak, writes.
function telling(app, whisper) {
  const mine = app.seats.filter((one) => (app.dm ? !app.seat || one.id === app.seat : app.me.seats.includes(one.id)));
  if (!mine.length) return h("p", { class: "muted" }, "Nobody here is yours to speak for.");
  const from = speaker(app, "speaker", "Who speaks", mine);
  const to = ears(app, app.seats.filter((one) => one.role !== "dm" && one.id !== "dm"));
  const text = draft(app, whisper ? "whisper" : "answer", { required: true, placeholder: whisper ? "Words for some ears only…" : "What is said, or what happens…", "aria-label": "What is told" });
  const send = async () => {
    if (whisper && !to.chosen().length) return toast("Say who is to hear it: tick a name above.", "bad");
    const body = { speaker: from.value, text: text.value, kind: whisper ? "whisper" : "said", ...(whisper ? { heard_by: to.chosen() } : {}) };
    if (await app.do(() => once(`${app.path}/turns`, body, { ...app.where, seat: app.dm ? "" : from.value }))) text.sent();
  };
  return h("form", { onsubmit: sending(send) }, h("p", { class: "ears" }, from, whisper ? [h("span", { class: "muted" }, "whispers to"), to.shown] : h("span", { class: "muted" }, "says to those who are there")),
    h("div", { class: "line" }, text, h("button", { class: "button primary" }, whisper ? "Whisper" : "Say"), app.dm && !app.seat ? h("button", { type: "button", class: "button quiet icon", id: "undo", title: "Take the last turn back (u)", "aria-label": "Undo", disabled: !app.turns.length || Boolean(app.at), onclick: () => app.undo() }, sign("undo")) : null));
}
