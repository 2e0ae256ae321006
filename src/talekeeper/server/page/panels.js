// The inspector: what memory does, for one seat, at one point of the story.
import { call, get } from "/page/api.js";
import { dot, empty, h, put } from "/page/dom.js";
import { forget } from "/page/story.js";

export const TABS = { prompt: "Prompt", memory: "Memory", ledger: "Ledger", moments: "Moments", leaks: "Leaks" };
const REASONS = { folded: "folded into summaries", clipped: "cut short", "no room": "no room", "below floor": "below the smallest budget" };

export async function renderPanel(app, place) {
  const asked = (place.dataset.asked = String(Math.random()));
  if (place.dataset.tab !== app.tab) put(place, h("p", { class: "loading" }, "One moment…"));
  place.dataset.tab = app.tab;
  try {
    const made = await { prompt, memory, ledger, moments, leaks }[app.tab](app);
    if (place.dataset.asked === asked) put(place, made);
  } catch (error) {
    if (place.dataset.asked === asked) put(place, empty("Nothing to show", error.message));
  }
}

const light = (app, sources) => ({ onmouseenter: () => app.light(sources), onmouseleave: () => app.light([]), onfocus: () => app.light(sources), onblur: () => app.light([]), onclick: () => app.light(sources, true) });

function budget(app) {
  const number = h("output", { class: "number" }, `${app.budget} tokens`);
  const slider = h("input", { type: "range", min: 100, max: 4000, step: 50, value: app.budget, id: "budget", "aria-label": "Token budget",
    oninput: () => { number.value = `${slider.value} tokens`; }, onchange: () => app.set({ budget: Number(slider.value) }) });
  return h("div", { class: "budget" }, h("label", { for: "budget" }, "Budget"), slider, number);
}

const about = (app, words) => h("p", { class: "about" }, dot(app.eyes, app.name(app.eyes)), h("span", {}, h("strong", {}, app.name(app.eyes)), ` ${words}`));

// -- prompt ---------------------------------------------------------------------------------------------------------------

async function prompt(app) {
  const found = await get(`${app.path}/context`, { ...app.point, seat: app.eyes, budget: app.budget });
  const parts = found.blocks.filter((block) => block.tokens);
  const bar = h("div", { class: "bar", role: "img", "aria-label": `${found.tokens} of ${found.budget} tokens: ${parts.map((one) => `${one.name} ${one.tokens}`).join(", ")}` },
    parts.map((block, number) => sized(h("span", { class: `part p${number % 6}`, title: `${block.name}: ${block.tokens} tokens` }), block.tokens)),
    sized(h("span", { class: "part free", title: `${found.budget - found.tokens} tokens free` }), found.budget - found.tokens));
  return [about(app, "would be told this, and nothing else."), budget(app), bar,
    h("p", { class: "muted small" }, `${found.tokens} of ${found.budget} tokens · ${found.stable_tokens} of them stay the same for the next prompt`),
    parts.map((block, number) => h("details", { class: "block", open: number === parts.length - 1 },
      h("summary", {}, h("span", { class: `swatch p${number % 6}` }), h("strong", {}, block.heading.replace(/[#[\]]/g, "").trim() || block.name), h("span", { class: "number" }, block.tokens)),
      block.items.map((item) => h("p", { class: `item ${item.kind}`, tabindex: 0, ...light(app, item.sources) }, item.text, h("span", { class: "muted small" }, item.kind === "turn" || item.turn_count < 2 ? "" : ` stands for ${item.turn_count} turns`, item.clipped ? " · cut short" : ""))))),
    h("h3", {}, "Left out"),
    found.left_out.length ? h("ul", { class: "plain" }, found.left_out.map((one) => h("li", { tabindex: 0, ...light(app, one.sources) }, `${one.turn_count} ${one.turn_count === 1 ? "turn" : "turns"} of “${one.block}”: ${REASONS[one.reason]}`, h("span", { class: "number" }, one.tokens)))) : h("p", { class: "muted" }, "Nothing: every turn is there word for word.")];
}

function sized(made, tokens) {
  made.style.flexGrow = tokens;
  return made;
}

// -- memory ---------------------------------------------------------------------------------------------------------------

async function memory(app) {
  const { memories } = await get(`${app.path}/memories`, { ...app.point, seat: app.eyes, budget: app.budget, depth: 2 });
  const pinned = app.turns.filter((turn) => turn.pinned);
  return [about(app, "remembers the older part of the story like this."), budget(app),
    h("h3", {}, "Summaries"),
    memories.length ? memories.map((one) => fold(app, one, true)) : empty("Everything still fits, word for word", "Lower the budget to see how older turns fold into summaries."),
    h("h3", {}, "Pinned"),
    pinned.length ? h("ul", { class: "plain" }, pinned.map((turn) => h("li", { tabindex: 0, ...light(app, [turn.id]) }, turn.text.slice(0, 160)))) : h("p", { class: "muted" }, "A pinned turn stays word for word in every prompt of those who heard it.")];
}

function fold(app, one, open = false) {
  const body = h("p", { class: "fold-text" }, one.sentences.map((sentence) => [h("span", { class: `sentence ${sentence.estimated ? "estimated" : ""}`, tabindex: 0, ...light(app, sentence.sources) }, sentence.text), " "]), one.sentences.length ? null : one.text);
  const made = h("details", { class: "fold", open, "data-memory": one.id },
    h("summary", {}, h("span", { class: "tag" }, one.level ? `level ${one.level}` : "scene"), h("span", {}, `${one.turn_count} turns`), h("span", { class: "muted small" }, { extractive: "picked from the turns", model: "written by a model", author: "written by hand" }[one.made_by])),
    body,
    app.dm && !app.at ? h("p", { class: "tools-row" }, h("button", { class: "tool", onclick: () => edit(app, one, body) }, "edit")) : null,
    one.below ? one.below.map((child) => fold(app, child)) : null,
    one.level === 0 ? sources(app, one) : null);
  return made;
}

function sources(app, one) {
  const turns = one.children.map((id) => app.turns.find((turn) => turn.id === id)).filter(Boolean);
  return h("ul", { class: "plain sources" }, turns.map((turn) => h("li", { tabindex: 0, ...light(app, [turn.id]) }, h("span", { class: "muted small" }, `${turn.number} `), turn.text.slice(0, 110), turn.text.length > 110 ? "…" : "",
    app.dm && !app.at ? h("button", { class: "tool", "aria-label": `Forget turn ${turn.number}`, onclick: () => forget(app, turn) }, "forget") : null)));
}

function edit(app, one, body) {
  const text = h("textarea", { rows: 6, value: one.text, "aria-label": "The memory" });
  const save = (event) => { event.preventDefault(); app.do(() => call("PUT", `${app.path}/memories/${one.id}`, { params: app.where, body: { text: text.value } })); };
  body.replaceWith(h("form", { class: "edit", onsubmit: save }, text, h("div", { class: "buttons" }, h("button", { type: "button", class: "button quiet", onclick: () => app.set({}) }, "Cancel"), h("button", { class: "button primary" }, "Save"))));
  text.focus();
}

// -- the game -------------------------------------------------------------------------------------------------------------

async function ledger(app) {
  if (!app.play) return empty("No game", "This story is not played at a table.");
  const found = await get(`${app.path}/ledger`, { ...app.point, seat: app.seat });
  const section = (title, rows, none) => [h("h3", {}, title), rows.length ? h("ul", { class: "plain" }, rows.map((row) => h("li", {}, row))) : h("p", { class: "muted" }, none)];
  return [
    section("Goals", found.goals.map((one) => [h("strong", {}, one.title), h("br"), h("span", { class: "muted" }, one.hint)]), "No goal is open."),
    section("Reached", found.done, "Nothing yet."),
    section("Promises", found.promises.map((one) => [`${one.by} to ${one.to}: ${one.text} `, h("span", { class: "tag" }, one.state)]), "Nobody owes anybody anything."),
    section("Things", found.items.map((one) => [h("strong", {}, one.item), h("span", { class: "muted" }, ` · ${one.holder}`)]), "Nobody carries anything of note."),
    section("The dead", found.deaths.map((one) => [one.who, one.how ? `: ${one.how}` : ""]), "Everyone lives.")];
}

async function moments(app) {
  const { marks } = await get(`${app.path}/marks`, { ...app.point, seat: app.seat, topic: "moment" });
  if (!marks.length) return empty("No moments yet", "Victories, discoveries and turning points will be kept here, the most significant first to stay.");
  return h("ol", { class: "moments" }, marks.map((mark) => {
    const made = h("li", { tabindex: 0, ...light(app, mark.sources) }, h("span", { class: "tag" }, String(mark.data.type).replaceAll("_", " ")), h("p", {}, mark.data.summary), h("span", { class: "muted small" }, `turn ${mark.turn}`));
    made.style.setProperty("--weight", mark.data.significance ?? mark.rank);
    return made;
  }));
}

async function leaks(app) {
  if (!app.play) return empty("No game", "This story is not played at a table.");
  if (!app.dm) return empty("For the DM", "Who knows what is not everyone's to see.");
  const { seats, secrets } = await get(`${app.path}/secrets`, app.point);
  const whispers = app.turns.filter((turn) => turn.kind === "whisper" && turn.audience);
  const row = (text, known, more = {}) => h("tr", more, h("th", { scope: "row" }, text), seats.map((seat) => h("td", {}, known.includes(seat.id) ? h("span", { class: "knows", role: "img", "aria-label": `${seat.name} knows` }) : h("span", { class: "knows-not", role: "img", "aria-label": `${seat.name} does not know` }))));
  return [h("p", { class: "about" }, "What each one knows. A gap stays a gap until someone tells."),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Secrets by seat" }, h("table", { class: "matrix" }, h("thead", {}, h("tr", {}, h("td", {}, ""), seats.map((seat) => h("th", { scope: "col" }, dot(seat.id, seat.name), h("span", { class: "sr" }, seat.name))))),
      h("tbody", {}, secrets.map((one) => row(one.text, one.known)), whispers.map((turn) => row(`Whispered: ${turn.text.slice(0, 120)}`, turn.audience, { class: "whispered", ...light(app, [turn.id]) })))))];
}
