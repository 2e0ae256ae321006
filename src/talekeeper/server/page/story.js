// The centre: what was told, what is being told, and what you say to it.
import { call, post } from "/page/api.js";
import { dot, empty, h, put, toast } from "/page/dom.js";

const SHOWN = 6;

export function renderTurns(app, place) {
  const { turns, play, at } = app;
  const known = new Map([...place.querySelectorAll("article[data-id]")].map((one) => [one.dataset.id, one]));
  const rows = turns.map((turn) => {
    const stamp = JSON.stringify([turn.text, turn.pinned, turn.revision, app.seat]);
    const old = known.get(turn.id);
    if (old && old.dataset.stamp === stamp) return old;
    const made = article(app, turn);
    made.dataset.stamp = stamp;
    if (known.size && !old) made.classList.add("new");
    return made;
  });
  const flight = at || !play ? [] : play.lines.map((line) => inFlight(app, line));
  const more = app.more ? h("button", { class: "button quiet earlier", onclick: () => app.earlier() }, "Earlier turns") : null;
  const nothing = rows.length || flight.length ? null : empty("Nothing has been heard yet", app.seat ? "This seat has not heard anything at this point of the story." : "Play a round, and the story begins.");
  put(place, more, rows, flight, nothing);
}

function article(app, turn) {
  const whispered = turn.kind === "whisper";
  const name = turn.kind === "note" ? "" : turn.kind === "event" ? "" : turn.speaker === "dm" ? "" : turn.voice || app.name(turn.speaker);
  const made = h("article", { class: `turn ${turn.kind} ${turn.speaker === "dm" ? "dm" : turn.speaker ? "someone" : ""} ${turn.pinned ? "pinned" : ""}`, "data-id": turn.id, "data-kind": turn.kind, tabindex: "-1" },
    h("div", { class: "meta" },
      whispered ? h("span", { class: "tag" }, "whispered") : null,
      name ? h("span", { class: "who" }, name) : null,
      turn.when ? h("span", { class: "when" }, turn.when) : null,
      turn.pinned ? h("span", { class: "tag pin" }, "pinned") : null,
      hearers(app, turn.audience),
      app.dm && !app.seat ? tools(app, turn) : null),
    turn.text.split(/\n+/).map((part) => h("p", {}, part)));
  return made;
}

function hearers(app, audience) {
  if (!audience) return null;
  const others = audience.filter((one) => one !== "dm");
  const label = others.length ? `heard by ${others.map(app.name).join(", ")}` : "for the DM alone";
  return h("span", { class: "hearers", role: "img", "aria-label": label, title: label },
    others.slice(0, SHOWN).map((one) => dot(one, app.name(one), "small")), others.length > SHOWN ? h("span", { class: "muted" }, `+${others.length - SHOWN}`) : null, others.length ? null : dot("dm", "DM", "small"));
}

function tools(app, turn) {
  const button = (label, sign, act) => h("button", { class: "tool", title: label, "aria-label": `${label}: turn ${turn.number}`, onclick: act }, sign);
  return h("span", { class: "tools" },
    button(turn.pinned ? "Unpin" : "Pin", turn.pinned ? "unpin" : "pin", () => app.do(() => call(turn.pinned ? "DELETE" : "PUT", `${app.path}/turns/${turn.id}/pin`, { params: app.where }))),
    button("Go to this point", "look", () => app.travel(turn.id)),
    button("Forget for good", "forget", () => forget(app, turn)));
}

export function forget(app, turn) {
  ask("Forget this turn?", `It is removed for good, with every memory made from it, on all branches: “${turn.text.slice(0, 140)}”`, "Forget", () => app.do(() => call("DELETE", `${app.path}/turns/${turn.id}`, { params: app.where })));
}

export function ask(title, words, verb, act) {
  const box = h("dialog", { class: "dialog", "aria-label": title },
    h("h2", {}, title), h("p", {}, words),
    h("div", { class: "buttons" }, h("button", { class: "button quiet", onclick: () => box.close() }, "Keep it"), h("button", { class: "button bad", onclick: () => { box.close(); act(); } }, verb)));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

function inFlight(app, line) {
  const kind = line.role === "ruling" ? "event" : "said";
  const who = line.role === "pc" ? app.name(line.seat) : "";
  return h("article", { class: `turn flight ${kind} ${who ? "someone" : kind === "said" ? "dm" : ""} ${line.ended ? "" : "speaking"}`, "data-line": line.line },
    h("div", { class: "meta" }, who ? h("span", { class: "who" }, who) : null), line.text.split(/\n+/).map((part) => h("p", {}, part)));
}

// -- what you say ---------------------------------------------------------------------------------------------------------

export function renderComposer(app, place) {
  const { play, at } = app;
  const state = JSON.stringify([app.mode, app.seat, at, app.branch, play && [play.waiting, play.running, play.auto, play.ending, play.failed, play.round], app.scene?.choices]);
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  if (at) return put(place, past(app));
  if (!play) return put(place, h("p", { class: "muted" }, "This story is not played at a table: it can be read, and its memory looked into."));
  const modes = app.dm ? [["act", "Act"], ["whisper", "Whisper"], ["nudge", "Nudge"]] : [["act", "Act"]];
  const tabs = h("div", { class: "modes", role: "group", "aria-label": "What to do" }, modes.map(([mode, label]) => h("button", { "aria-pressed": String(app.mode === mode), onclick: () => app.set({ mode }) }, label)));
  put(place, app.play.failed ? h("p", { class: "failed", role: "alert" }, app.play.failed) : null, modes.length > 1 ? tabs : null, { act: acting, whisper: whispering, nudge: nudging }[app.mode](app));
}

function past(app) {
  return h("div", { class: "past" }, h("p", {}, "You are looking at the past. Every panel shows this point of the story."),
    h("div", { class: "buttons" }, h("button", { class: "button quiet", onclick: () => app.travel(null) }, "Back to now"), app.dm ? h("button", { class: "button primary", onclick: () => app.fork() }, "Continue from here") : null));
}

function acting(app) {
  const { play } = app;
  if (play.running) return h("p", { class: "waiting" }, h("span", { class: "pulse" }), "The table is speaking…");
  const mine = play.waiting && (!app.seat || app.seat === play.waiting || app.seat === "dm");
  if (mine) return answering(app, play.waiting);
  if (play.waiting) return h("p", { class: "waiting" }, `Waiting for ${app.name(play.waiting)}.`);
  if (!app.dm) return h("p", { class: "waiting" }, "Waiting for the others.");
  return h("div", { class: "buttons" },
    play.ending ? h("p", { class: "muted" }, "The story has come to its end. What follows is aftermath.") : null,
    h("button", { class: "button primary", id: "step", onclick: () => app.step() }, play.round > 1 ? "Next round" : "Begin"),
    h("button", { class: "button quiet", onclick: () => app.auto(true) }, "Play on"));
}

function answering(app, seat) {
  const text = h("textarea", { id: "answer", rows: 2, maxlength: 4000, placeholder: "Say what you do, in your own words…", "aria-label": `What does ${app.name(seat)} do?` });
  const send = (words) => app.do(() => post(`${app.path}/act`, { text: words }, { ...app.where, seat }));
  const submit = (event) => { event.preventDefault(); send(text.value); };
  text.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey) submit(event); });
  const choices = (app.scene?.choices || []).slice(0, 5);
  return h("form", { onsubmit: submit },
    h("p", { class: "turn-of" }, dot(seat, app.name(seat)), h("span", {}, `${app.name(seat)}, what do you do?`)),
    choices.length ? h("div", { class: "choices", role: "group", "aria-label": "Choices" }, choices.map((one) => h("button", { type: "button", class: "choice", onclick: () => send(one.text) }, one.text))) : null,
    h("div", { class: "line" }, text, h("button", { class: "button primary" }, "Act")));
}

function whispering(app) {
  const party = app.play.party;
  const from = h("select", { "aria-label": "Who whispers" }, h("option", { value: "dm" }, "The DM"), party.map((one) => h("option", { value: one.id }, one.name)));
  const to = party.map((one) => ({ one, box: h("input", { type: "checkbox", value: one.id }) }));
  const text = h("textarea", { id: "whisper", rows: 2, required: true, maxlength: 4000, placeholder: "Words for some ears only…", "aria-label": "What is whispered" });
  const submit = (event) => {
    event.preventDefault();
    const ears = to.filter(({ box }) => box.checked).map(({ one }) => one.id);
    if (!ears.length) return toast("Say who is to hear it.", "bad");
    app.do(() => post(`${app.path}/whisper`, { speaker: from.value, to: ears, text: text.value }, app.where).then(() => app.set({ mode: "act" })));
  };
  return h("form", { onsubmit: submit }, h("p", { class: "ears" }, from, h("span", {}, "whispers to"), to.map(({ one, box }) => h("label", { class: "ear" }, box, one.name))), h("div", { class: "line" }, text, h("button", { class: "button primary" }, "Whisper")));
}

function nudging(app) {
  const text = h("input", { id: "nudge", maxlength: 400, required: true, placeholder: "A wish for the next round: more rain, less talk…", "aria-label": "A wish for the next round" });
  const submit = (event) => { event.preventDefault(); app.step(text.value).then(() => app.set({ mode: "act" })); };
  return h("form", { onsubmit: submit }, h("div", { class: "line" }, text, h("button", { class: "button primary", disabled: app.play.running || Boolean(app.play.waiting) }, "Play")), app.play.waiting ? h("p", { class: "muted" }, "A wish is for the next round: this one is in flight.") : null);
}
