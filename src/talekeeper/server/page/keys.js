// The keyboard does it all: single keys, and lines for the table that begin with a slash.
import { $, ask, h, toast } from "/page/dom.js";
import { keepDraft } from "/page/drafts.js";

const KEYS = [
  ["n", "play the next round", () => press("step-once")],
  ["p", "let it play on, or pause", () => press("auto")],
  ["u", "undo the last round; asks first", (app) => takeBack(app)],
  ["a", "answer", (app) => { app.look({ mode: "act" }); soon("answer"); }],
  ["w", "whisper", (app) => { if (app.modes.includes("whisper")) { app.look({ mode: "whisper" }); soon("whisper"); } }],
  ["j / k", "next or previous turn", null],
  ["t", "timeline: then ← and →", (app) => { app.show("time"); $("scrub")?.focus(); }],
  ["c", "continue from the turn you look at", (app) => app.dm && app.at && app.fork()],
  ["Esc", "out of what has the focus; then back to now", (app) => (app.lit ? app.dim() : app.at ? app.travel(null) : null)],
  ["m", "the inspector's tabs: then ← and →", (app) => { app.show("inspect"); $(`tab-${app.tab}`)?.focus(); }],
  ["0", "view everything", (app) => app.dm && app.as("")],
  ["1–9", "view as that seat", null],
  ["?", "this list", () => shortcuts()],
];
const press = (id) => $(id)?.click(); // a key does what its button does: nothing where that is not there, or off
// A key may be pressed by someone who believes to be writing: what takes something away is asked for first.
async function takeBack(app) {
  if (!$("undo") || $("undo").disabled) return;
  const what = app.game ? "round" : "turn";
  if (await ask({ title: `Take the last ${what} back?`, words: "It stays as a branch, so that nothing is lost.", verb: "Undo", stay: "Keep it" })) app.undo();
}
const soon = (id) => requestAnimationFrame(() => requestAnimationFrame(() => $(id)?.focus()));

// What can be typed instead of an action, as in a terminal. Each answers whether it could be done: what has a button only where that is on.
const pressed = (id) => { const one = $(id); if (one && !one.disabled) one.click(); return Boolean(one && !one.disabled); };
const opened = (tab) => (app) => { app.look({ tab }); app.show("inspect"); return true; };
const written = (mode) => (app, words) => {
  if (!app.modes.includes(mode)) return false;
  keepDraft(app, mode === "whisper" ? `whisper ${app.seat}` : mode, mode === "whisper" ? toWhom(app, words) : words);
  app.look({ mode });
  soon(mode);
  return true;
};

// Ticks those whose names come first ("Osric and Ibbi"), of those who are there, and nobody else. Answers with the words that are left.
function toWhom(app, words) {
  const people = app.seat ? (app.scene?.here ?? []) : app.party;
  const ears = [];
  let next = words.match(/^()([^\s:,]*)[:,]?\s*([^]*)$/);
  while (next) {
    const name = next[2].toLowerCase();
    const found = people.find((one) => one.id === name || one.name.toLowerCase().split(/\s+/).includes(name));
    if (!found) break;
    ears.push(found.id);
    words = next[3];
    next = words.match(/^(and\s+)([^\s:,]+)[:,]?\s*([^]*)$/i);
  }
  keepDraft(app, `ears ${app.seat}`, ears);
  return words;
}
const COMMANDS = {
  look: (app) => { app.show("rail"); return true; }, why: opened("prompt"), memory: opened("memory"), ledger: opened("ledger"), moments: opened("moments"),
  whisper: written("whisper"), nudge: written("nudge"), undo: () => pressed("undo"), end: () => pressed("finish"), help: () => { shortcuts(); return true; },
};
const commands = () => Object.keys(COMMANDS).map((one) => `/${one}`).join(", ");

export const isCommand = (line) => line.trimStart().startsWith("/");

// Does what a line that begins with a slash asks for, or says why not. Answers whether it was done; told it is in no case.
export function command(app, line) {
  const [, name, words] = line.trim().match(/^\/\s*(\S*)\s*([^]*)$/);
  const work = Object.hasOwn(COMMANDS, name.toLowerCase()) ? COMMANDS[name.toLowerCase()] : null;
  if (!work) toast(`There is no /${name} here. What begins with a slash is for the table and is not told: ${commands()}.`, "bad");
  else if (words && work.length < 2) toast(`/${name} stands alone: type it without “${words}”.`, "bad");
  else if (work(app, words)) return true;
  else toast(`/${name} cannot be done here just now.`, "bad");
  return false;
}

const WRITTEN = "input:not([type=range], [type=checkbox]), textarea, select";
// Single keys are for whoever reads: where a button or a box has the focus, or has just been taken away, they do nothing.
const idle = (one) => !one || one === document.body || one.matches("main, #story, #scroll, article");

export function listenToKeys(app) {
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); (document.querySelector("#scroll") || document.querySelector("main")).focus(); });
  document.addEventListener("keydown", (event) => {
    if (!app.story || !$("table") || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("dialog")) return;
    if (event.key === "Escape" && document.activeElement !== document.body) {
      const wrote = document.activeElement.matches(WRITTEN);
      document.activeElement.blur();
      if (wrote) return;
    }
    if (!idle(document.activeElement)) return;
    const number = Number(event.key);
    const key = KEYS.find(([name]) => (name === "Esc" ? "Escape" : name) === event.key);
    if (event.key === "j" || event.key === "k") { event.preventDefault(); walk(event.key === "j" ? 1 : -1); }
    else if (key?.[2]) { event.preventDefault(); key[2](app); }
    else if (number > 0 && app.dm && app.party[number - 1]) app.as(app.party[number - 1].id);
  });
}

function walk(by) {
  const turns = [...document.querySelectorAll("article[data-id]")];
  const now = turns.indexOf(document.activeElement?.closest("article[data-id]"));
  const next = turns[now < 0 ? turns.length - 1 : Math.max(0, Math.min(turns.length - 1, now + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

export function shortcuts() {
  const box = h("dialog", { class: "dialog", "aria-labelledby": "keys-title" }, h("h2", { id: "keys-title" }, "Keyboard"),
    h("p", { class: "muted small" }, "Single keys work while nothing has the focus. Esc gets you there from anywhere."),
    h("dl", { class: "keys" }, KEYS.map(([key, words]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, words)])),
    h("p", { class: "muted small" }, `What you write is for the table, and is not told, if it begins with a slash: ${commands()}.`),
    h("div", { class: "buttons end" }, h("button", { class: "button primary", onclick: () => box.close() }, "Close")));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}
