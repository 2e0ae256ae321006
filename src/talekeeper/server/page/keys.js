// The keyboard does it all: single keys, and lines for the table that begin with a slash.
import { $, h, toast } from "/page/dom.js";

const KEYS = [
  ["n", "play the next round", () => press("step-once")],
  ["p", "let it play on, or pause", () => press("auto")],
  ["u", "undo the last round", () => press("undo")],
  ["a", "answer", (app) => { app.look({ mode: "act" }); soon("answer"); }],
  ["w", "whisper", (app) => { if (app.dm || !app.game) { app.look({ mode: "whisper" }); soon("whisper"); } }],
  ["j / k", "next or previous turn", null],
  ["t", "timeline: then ← and →", (app) => { app.show("time"); $("scrub")?.focus(); }],
  ["c", "continue from the turn you look at", (app) => app.dm && app.at && app.fork()],
  ["Esc", "back to now", (app) => (app.lit ? app.dim() : app.at ? app.travel(null) : null)],
  ["m", "the inspector's tabs: then ← and →", (app) => { app.show("inspect"); $(`tab-${app.tab}`)?.focus(); }],
  ["0", "view everything", (app) => app.dm && app.as("")],
  ["1–9", "view as that seat", null],
  ["?", "this list", () => shortcuts()],
];
const press = (id) => $(id)?.click(); // a key does what its button does: nothing where that is not there, or off
const soon = (id) => requestAnimationFrame(() => requestAnimationFrame(() => $(id)?.focus()));

// What can be typed instead of an action, as in a terminal. Each answers whether it could be done: what has a button only where that is on.
const pressed = (id) => { const one = $(id); if (one && !one.disabled) one.click(); return Boolean(one && !one.disabled); };
const opened = (tab) => (app) => { app.look({ tab }); app.show("inspect"); return true; };
const written = (mode) => (app, words) => { if (!app.dm) return false; app.drafts[`${app.story} ${mode}`] = words; app.look({ mode }); soon(mode); return true; };
const COMMANDS = {
  look: (app) => { app.show("rail"); return true; }, why: opened("prompt"), memory: opened("memory"), ledger: opened("ledger"), moments: opened("moments"),
  whisper: written("whisper"), nudge: written("nudge"), undo: () => pressed("undo"), end: () => pressed("finish"), help: () => { toast(`What begins with a slash is for the table: ${commands()}.`); return true; },
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

export function listenToKeys(app) {
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); (document.querySelector("#scroll") || document.querySelector("main")).focus(); });
  document.addEventListener("keydown", (event) => {
    if (!app.story || !$("table") || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("dialog")) return;
    const writing = event.target.closest("input:not([type=range], [type=checkbox]), textarea, select");
    if (writing) { if (event.key === "Escape") writing.blur(); return; }
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
    h("dl", { class: "keys" }, KEYS.map(([key, words]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, words)])),
    h("div", { class: "buttons end" }, h("button", { class: "button primary", onclick: () => box.close() }, "Close")));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}
