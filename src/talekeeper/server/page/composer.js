// What you say: an answer when it is your turn, words for some ears only, a wish for the next round.
import { once } from "/page/api.js";
import { dot, h, put, sign, toast } from "/page/dom.js";
import { draftOf, keepDraft } from "/page/drafts.js";
import { command, isCommand } from "/page/keys.js";

const LONGEST = 4000;
const NEAR = 0.9; // of what fits: from here on it is counted

export function drawComposer(app, place) {
  const { play } = app;
  const mode = app.modes.includes(app.mode) ? app.mode : "act";
  const here = play && app.scene && (mode === "act" ? app.scene.choices : app.scene.here.map((one) => one.id));
  const state = JSON.stringify([app.story, mode, app.seat, app.at, app.branch, app.dm, app.game, play && [app.awaited, play.waiting, play.running, play.auto, play.ending, play.told, play.failed, play.round, play.party.map((one) => [one.id, one.human]), play.lines.length > 0], play ? here : [app.seats, app.turns.length > 0]]);
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  const back = held(place);
  if (app.at) put(place, past(app));
  else if (play) put(place, failed(play), modes(app, mode), { act: acting, whisper: whispering, nudge: nudging }[mode](app));
  else if (app.game !== false) put(place); // whether it is played is not known yet
  else put(place, modes(app, mode), telling(app, mode === "whisper"));
  back();
}

// Whoever was writing goes on where they were: when the box comes back, they are in it again, and meanwhile nowhere else.
function held(place) {
  const had = document.activeElement;
  if (!place.contains(had)) return () => { delete place.dataset.writing; };
  if (had !== place) place.dataset.writing = had.tagName === "TEXTAREA" ? had.id : "";
  const { selectionStart, selectionEnd, scrollTop } = had;
  return () => {
    const found = document.getElementById(had === place ? place.dataset.writing : had.id);
    const box = place.contains(found) ? found : place;
    box.focus({ preventScroll: true });
    if (box.tagName !== "TEXTAREA" || had.id !== box.id) return;
    box.setSelectionRange(selectionStart, selectionEnd);
    box.scrollTop = scrollTop;
  };
}

const failed = (play) => (play.failed ? h("p", { class: "failed", role: "alert" }, h("strong", {}, "The round was given up. "), play.failed, " The story is as it was before: play the round again.") : null);

function modes(app, mode) {
  if (app.modes.length < 2) return null;
  const words = { act: app.play ? "Act" : "Say", whisper: "Whisper", nudge: "Nudge" };
  return h("div", { class: "modes", role: "group", "aria-label": "What to do" }, app.modes.map((one) => h("button", { id: `mode-${one}`, "aria-pressed": String(mode === one), onclick: () => app.look({ mode: one }) }, words[one])));
}

function past(app) {
  return h("div", { class: "past" }, h("p", {}, sign("look"), h("span", {}, h("strong", {}, "You are looking at the past. "), "Every panel shows this point of the story.")),
    h("div", { class: "buttons" }, app.dm ? h("button", { class: "button primary", id: "fork-here", onclick: () => app.fork() }, "Continue from here") : null, h("button", { class: "button quiet", onclick: () => app.travel(null) }, "Back to now")));
}

// -- writing ------------------------------------------------------------------------------------------------------------------

// What is being written is kept until it is sent, whatever happens to the page around it.
function draft(app, id, { most = LONGEST, name = id, ...props }) {
  const text = h("textarea", { id, rows: 2, value: draftOf(app, name) ?? "", "aria-describedby": `${id}-count`, ...props, oninput: () => { keepDraft(app, name, text.value || null); grow(text); tally(); } });
  const said = h("p", { class: "count", id: `${id}-count` });
  const tally = () => {
    const long = text.value.length;
    text.setAttribute("aria-invalid", String(long > most));
    said.textContent = long < most * NEAR ? "" : `${long.toLocaleString("en")} of ${most.toLocaleString("en")} characters${long > most ? ": too long to send" : ""}`;
    said.classList.toggle("failed", long > most);
  };
  text.said = said;
  text.sent = () => { for (const one of [name, "from", ...(id === "whisper" ? [`ears ${app.seat}`] : [])]) keepDraft(app, one); text.value = ""; tally(); };
  // Whether it can be sent; where not, it says why, and nothing is lost.
  text.fits = (blank = "") => {
    const why = text.value.length > most ? `This has ${text.value.length.toLocaleString("en")} characters, and ${most.toLocaleString("en")} can be sent at once. Shorten it, or send it in parts: it stays here meanwhile.` : text.value.trim() ? "" : blank;
    if (why) { toast(why, "bad"); text.focus(); }
    return !why;
  };
  text.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); text.form.requestSubmit(); } });
  tally();
  return text;
}

const grow = (text) => { text.style.height = "auto"; text.style.height = `${Math.min(220, text.scrollHeight + 2)}px`; };
const line = (text, ...buttons) => h("div", { class: "writing" }, h("div", { class: "line" }, text, buttons), text.said);

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
  if (app.awaited) return h("p", { class: "waiting" }, h("span", {}, `It is the turn of ${app.name(app.awaited)}.`), h("button", { class: "button", id: "take-turn", onclick: () => app.as(app.awaited) }, `View as ${app.name(app.awaited)}`));
  if (!app.dm) return h("p", { class: "waiting" }, idle(app));
  const begun = play.round > 1;
  const over = play.ending ? "The story has come to its end. What follows is aftermath." : play.told ? "The end has been told. Play on if you like, or undo it." : "";
  return h("div", {}, over ? h("p", { class: "muted" }, over) : null,
    h("div", { class: "buttons" }, h("button", { class: "button primary large", id: "step", onclick: () => app.step() }, begun ? "Next round" : "Begin"),
      h("button", { class: "button quiet", id: "play-on", onclick: () => app.auto(true) }, sign("play"), "Play on")));
}

// Why a player has nothing to do. Whose turn it is elsewhere is not theirs to know: what they hear of the round tells that it is somebody's.
function idle(app) {
  const others = app.party.some((one) => one.human && !app.me.seats.includes(one.id));
  if (others && app.play.lines.length) return "Waiting for the others.";
  if (app.play.ending) return "The story has come to its end.";
  return others ? "It is not your turn. The DM plays the next round." : "It is nobody's turn: the DM plays the next round.";
}

function answering(app, seat) {
  const text = draft(app, "answer", { name: `answer ${seat}`, placeholder: "Say what you do, in your own words…", "aria-label": `What does ${app.name(seat)} do?` });
  const act = async (words) => { if (isCommand(words) ? command(app, words) : await app.act(seat, words)) text.sent(); };
  const choices = (app.scene?.choices ?? []).slice(0, 5);
  return h("form", { onsubmit: sending(() => text.fits() && act(text.value)) },
    h("p", { class: "turn-of" }, dot(seat, app.name(seat)), h("span", {}, h("strong", {}, app.name(seat)), ", what do you do?")),
    choices.length ? h("div", { class: "choices", role: "group", "aria-label": "Choices" }, choices.map((one) => h("button", { type: "button", class: "choice", onclick: () => act(one.text) }, one.text))) : null,
    line(text, h("button", { class: "button primary" }, "Act")));
}

function speaker(app, id, label, people) {
  const from = draftOf(app, "from");
  return h("select", { id, "aria-label": label, onchange: (event) => keepDraft(app, "from", event.target.value) }, people.map((one) => h("option", { value: one.id, selected: from === one.id }, one.name)));
}

// Who is to hear it; kept like what is written, until it is said.
function ears(app, people) {
  const ticked = new Set(draftOf(app, `ears ${app.seat}`) ?? []);
  const tick = (one, on) => { if (on) ticked.add(one); else ticked.delete(one); keepDraft(app, `ears ${app.seat}`, [...ticked]); };
  const boxes = people.map((one) => ({ one, box: h("input", { type: "checkbox", id: `ear-${one.id}`, value: one.id, checked: ticked.has(one.id), onchange: (event) => tick(one.id, event.target.checked) }) }));
  return { chosen: () => boxes.filter(({ box }) => box.checked).map(({ one }) => one.id), shown: boxes.map(({ one, box }) => h("label", { class: "ear" }, box, dot(one.id, one.name, "small"), one.name)) };
}

const named = (to) => { if (!to.chosen().length) toast("Say who is to hear it: tick a name above.", "bad"); return to.chosen().length > 0; };

// In the view of a seat it is that seat that whispers, to those whom it sees; otherwise anyone, to the party.
function whispering(app) {
  const own = app.party.find((one) => one.id === app.seat);
  const from = own ? h("strong", {}, own.name) : speaker(app, "whisperer", "Who whispers", [{ id: "dm", name: "The DM" }, ...app.party]);
  const people = own ? (app.scene?.here ?? []) : app.party;
  if (!people.length) return h("p", { class: "waiting" }, "Nobody is here to whisper to.");
  const to = ears(app, people);
  const text = draft(app, "whisper", { name: `whisper ${app.seat}`, placeholder: "Words for some ears only…", "aria-label": "What is whispered" });
  const send = async () => {
    if (!named(to) || !text.fits("Write what is to be whispered.")) return;
    const went = await app.do(() => once(`${app.path}/whisper`, { speaker: own ? own.id : from.value, to: to.chosen(), text: text.value }, { ...app.where, seat: app.dm ? "" : app.seat }));
    if (went) { text.sent(); app.look({ mode: "act" }); }
  };
  return h("form", { onsubmit: sending(send) }, h("p", { class: "ears", role: "group", "aria-label": "Who hears it" }, from, h("span", { class: "muted" }, "whispers to"), to.shown),
    line(text, h("button", { class: "button primary", disabled: app.play.running }, "Whisper")), app.play.running ? h("p", { class: "muted small" }, "A round is being played: whisper at its end.") : null);
}

function nudging(app) {
  const text = draft(app, "nudge", { rows: 1, most: 400, placeholder: "More rain, less talk…", "aria-label": "A wish for the next round" });
  const busy = app.play.running || Boolean(app.awaited);
  const send = async () => { if (text.fits("Write what you wish for.") && await app.step(text.value)) { text.sent(); app.look({ mode: "act" }); } };
  return h("form", { onsubmit: sending(send) }, line(text, h("button", { class: "button primary", disabled: busy }, "Play")), h("p", { class: "muted small" }, busy ? "A wish is for the next round: this one is in flight." : "It goes into the prompts of one round, and then it is gone."));
}

// -- without a table ------------------------------------------------------------------------------------------------------------

// A story that is told and not played: whoever may speak, writes.
function telling(app, whisper) {
  const mine = app.seats.filter((one) => (app.dm ? !app.seat || one.id === app.seat : app.me.seats.includes(one.id)));
  if (!mine.length) return h("p", { class: "muted" }, "Nobody here is yours to speak for.");
  const from = speaker(app, "speaker", "Who speaks", mine);
  const to = ears(app, app.seats.filter((one) => one.role !== "dm" && one.id !== "dm"));
  const text = draft(app, whisper ? "whisper" : "answer", { name: whisper ? `whisper ${app.seat}` : "answer", placeholder: whisper ? "Words for some ears only…" : "What is said, or what happens…", "aria-label": "What is told" });
  const send = async () => {
    if ((whisper && !named(to)) || !text.fits("Write what is to be told.")) return;
    const body = { speaker: from.value, text: text.value, kind: whisper ? "whisper" : "said", ...(whisper ? { heard_by: to.chosen() } : {}) };
    if (await app.do(() => once(`${app.path}/turns`, body, { ...app.where, seat: app.dm ? "" : from.value }))) text.sent();
  };
  return h("form", { onsubmit: sending(send) }, h("p", { class: "ears", role: "group", "aria-label": "Who speaks, and who hears it" }, from, whisper ? [h("span", { class: "muted" }, "whispers to"), to.shown] : h("span", { class: "muted" }, "says to those who are there")),
    line(text, h("button", { class: "button primary" }, whisper ? "Whisper" : "Say"), app.dm && !app.seat ? h("button", { type: "button", class: "button quiet icon", id: "undo", title: "Take the last turn back", "aria-label": "Undo", disabled: !app.turns.length || Boolean(app.at), onclick: () => app.undo() }, sign("undo")) : null));
}
