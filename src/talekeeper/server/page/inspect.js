// The right: what memory does, for one seat, at one point of the story.
import { $, empty, h, put, redraw } from "/page/dom.js";
import { memory, prompt } from "/page/memory.js";
import { leaks, ledger, moments } from "/page/game.js";

export const TABS = { prompt: "Prompt", memory: "Memory", ledger: "Ledger", moments: "Moments", leaks: "Leaks" };
const DRAW = { prompt, memory, ledger, moments, leaks };

export function drawTabs(app) {
  const state = app.tab;
  if ($("tabs").dataset.tab === state && $("tabs").children.length) return;
  $("tabs").dataset.tab = state;
  const names = Object.keys(TABS);
  const focused = $("tabs").contains(document.activeElement);
  const move = (event) => {
    const to = { ArrowRight: 1, ArrowLeft: -1, Home: -names.indexOf(app.tab), End: names.length - 1 - names.indexOf(app.tab) }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    app.look({ tab: names[(names.indexOf(app.tab) + to + names.length) % names.length] });
  };
  put($("tabs"), names.map((name) => h("button", { role: "tab", id: `tab-${name}`, "aria-selected": String(app.tab === name), "aria-controls": "panel", tabindex: app.tab === name ? 0 : -1, onclick: () => app.look({ tab: name }), onkeydown: move }, TABS[name])));
  $("panel").setAttribute("aria-labelledby", `tab-${app.tab}`);
  if (focused) $(`tab-${app.tab}`).focus();
}

let asked = 0;
let shown = ""; // what the panel was drawn from

// Draws the panel that is open. One in which something is being written is left alone, and so is one that would be the same.
export async function drawPanel(app, place) {
  const mine = ++asked;
  const where = JSON.stringify([app.tab, app.story, app.branch, app.seat, app.eyes]);
  const elsewhere = place.dataset.where !== where;
  if (elsewhere) { put(place, h("p", { class: "loading" }, "One moment…")); place.scrollTop = 0; place.dataset.where = where; shown = ""; }
  place.dataset.tab = app.tab;
  const at = app.at;
  const draw = DRAW[app.tab];
  let found;
  try {
    found = await draw.look(app);
  } catch (error) {
    if (mine === asked) { put(place, empty("Nothing to show", error.message), error.needed ? h("p", { class: "buttons" }, h("button", { class: "button", onclick: () => app.look({ budgets: { ...app.budgets, [app.eyes]: error.needed } }) }, `Give it ${error.needed} tokens`)) : null); shown = ""; }
    return;
  }
  if (mine !== asked || place.querySelector("form.edit")) return;
  const state = JSON.stringify([found, at, app.budget, app.limit, app.dm]);
  if (shown === state) return;
  shown = state;
  redraw(place, draw.show(app, found));
}
