// Prompt and memory: what goes into the next prompt of a seat, and what that stands on, down to the turns.
import { call, get } from "/page/api.js";
import { clip, count, dot, empty, h, put, redraw, sign } from "/page/dom.js";
import { forget } from "/page/story.js";

const REASONS = { folded: "told in summaries", clipped: "cut short", "no room": "no room for them", "below floor": "below the smallest budget" };
const MADE = { extractive: "picked from turns", model: "written by a model", author: "written by hand" };

// Pointing at something lights up the turns it came from; a click or a tap goes there.
export const lights = (app, sources, words = "") => ({
  tabindex: 0, onmouseenter: () => app.light(sources), onmouseleave: () => app.light([]), onfocus: () => app.light(sources), onblur: () => app.light([]),
  onclick: (event) => { if (!event.target.closest("button")) app.light(sources, true, words); },
  onkeydown: (event) => { if (event.key === "Enter" && event.target === event.currentTarget) app.light(sources, true, words); },
});

function about(app, words) {
  const who = app.dm && !app.seat && app.seats.length > 1
    ? h("select", { id: "whose", "data-key": "whose", "aria-label": "Whose memory", value: app.eyes, onchange: (event) => app.look({ who: event.target.value }) }, inOrder(app).map((one) => h("option", { value: one.id, selected: one.id === app.eyes }, one.name)))
    : h("strong", {}, app.name(app.eyes));
  return h("div", { class: "about" }, dot(app.eyes, app.name(app.eyes)), h("div", {}, who, h("p", { class: "muted small" }, words)));
}

function inOrder(app) {
  const place = (one) => app.party.findIndex((hero) => hero.id === one.id) + 1 || (one.id === "dm" ? 50 : 99);
  return [...app.seats].sort((a, b) => place(a) - place(b));
}

function budget(app) {
  const most = Math.max(4000, Math.ceil(app.limit / 1000) * 1000);
  const number = h("output", { class: "number", for: "budget" }, `${app.budget.toLocaleString("en")} tokens`);
  let timer = null;
  const set = () => app.look({ budgets: { ...app.budgets, [app.eyes]: Number(slider.value) } });
  const slider = h("input", { type: "range", min: 100, max: most, step: 50, value: app.budget, id: "budget", "data-key": "budget", list: "limits", "aria-label": "Token budget",
    oninput: () => { number.value = `${Number(slider.value).toLocaleString("en")} tokens`; clearTimeout(timer); timer = setTimeout(set, 120); } });
  const other = app.budget !== app.limit;
  return h("div", { class: "budget" }, h("label", { for: "budget" }, "Budget"), slider, number,
    h("p", { class: "muted small" }, other ? [`Only to look. Its limit is ${app.limit.toLocaleString("en")}: `, h("button", { class: "link", "data-key": "own-limit", onclick: () => { const { [app.eyes]: _, ...rest } = app.budgets; app.look({ budgets: rest }); } }, "back to it"), app.dm && !app.at ? [", or ", h("button", { class: "link", "data-key": "keep-limit", onclick: () => app.limitTo(app.budget) }, "make this its limit")] : ""] : "The limit of this seat. Move it to see what memory would do with less or more."));
}

// -- prompt -------------------------------------------------------------------------------------------------------------------

const heading = (block) => { const words = block.heading.replace(/[#[\]]/g, "").trim() || block.name; return words === words.toUpperCase() ? words[0] + words.slice(1).toLowerCase() : words; };

export const prompt = {
  look: (app) => get(`${app.path}/context`, { ...app.point, seat: app.eyes, budget: app.budget }),
  show(app, found) {
    const parts = found.blocks.filter((block) => block.tokens);
    const free = found.budget - found.tokens;
    const share = Math.round((100 * found.tokens) / Math.max(1, found.budget));
    return [about(app, "would be told this, and nothing else."), budget(app),
      h("div", { class: "bar", role: "img", "aria-label": `${found.tokens} of ${found.budget} tokens: ${parts.map((one) => `${heading(one)} ${one.tokens}`).join(", ")}` },
        parts.map((block, number) => h("span", { class: `part p${number % 6}`, style: { "flex-grow": block.tokens }, title: `${heading(block)}: ${block.tokens} tokens` })), h("span", { class: "part free", style: { "flex-grow": free }, title: `${free} tokens free` })),
      h("p", { class: "sums" }, h("strong", {}, `${found.tokens.toLocaleString("en")}`), ` of ${found.budget.toLocaleString("en")} tokens · ${share}% full`),
      found.stable_tokens ? h("p", { class: "muted small" }, `${found.stable_tokens.toLocaleString("en")} of them stay the same for the next prompt, so a provider need not read them again.`) : null,
      h("div", { class: "blocks" }, parts.map((block, number) => h("details", { class: "block", "data-key": block.name, open: number === parts.length - 1 },
        h("summary", {}, h("span", { class: `swatch p${number % 6}` }), h("strong", {}, heading(block)), h("span", { class: "number" }, block.tokens.toLocaleString("en"))),
        block.items.map((one) => item(app, one))))),
      parts.length ? null : empty("Nothing yet", "This seat has heard nothing, so there is nothing to tell."),
      parts.length ? [h("h2", { class: "label" }, "Left out"), leftOut(app, found.left_out)] : null];
  },
};

function item(app, one) {
  const note = [one.kind !== "turn" && one.turn_count > 1 ? `stands for ${count(one.turn_count, "turn")}` : "", one.clipped ? "cut short" : ""].filter(Boolean).join(" · ");
  return h("p", { class: `item item-${one.kind}`, ...lights(app, one.sources, one.text) }, one.text, note ? h("span", { class: "tag" }, note) : null);
}

function leftOut(app, found) {
  if (!found.length) return h("p", { class: "muted" }, "Nothing: every turn is there, word for word.");
  return h("ul", { class: "plain" }, found.map((one) => h("li", { ...lights(app, one.sources) }, h("span", {}, h("strong", {}, count(one.turn_count, "turn")), ` of “${one.block}”: ${REASONS[one.reason]}`), h("span", { class: "number" }, `${one.tokens.toLocaleString("en")} tokens`))));
}

// -- memory -------------------------------------------------------------------------------------------------------------------

export const memory = {
  async look(app) {
    const who = { ...app.point, seat: app.eyes, budget: app.budget };
    const [{ memories }, context, pins] = await Promise.all([get(`${app.path}/memories`, who), get(`${app.path}/context`, who), get(`${app.path}/pins`, { ...app.point, seat: app.eyes })]);
    const recent = context.blocks.find((one) => one.name === "recent");
    return { memories, pinned: pins.turns, recent: recent?.items.filter((one) => one.kind === "turn").length ?? 0 };
  },
  show(app, { memories, pinned, recent }) {
    return [about(app, memories.length ? "remembers the older turns like this." : "still has the whole story, word for word."), budget(app), recall(app),
      h("h2", { class: "label" }, "Summaries"),
      memories.length ? h("div", { class: "tree" }, memories.map((one) => fold(app, one)), recent ? h("p", { class: "recent muted small" }, `then the newest ${count(recent, "turn")}, word for word`) : null)
        : empty("Everything still fits", "Lower the budget, and see how older turns fold into summaries."),
      h("h2", { class: "label" }, "Pinned"),
      pinned.length ? h("ul", { class: "plain" }, pinned.map((one) => h("li", { ...lights(app, [one.id], one.text) }, h("span", {}, clip(one.text, 160)), app.dm && !app.at ? h("button", { class: "tool", onclick: () => app.pin(one.id, false) }, "Unpin") : null)))
        : h("p", { class: "muted small" }, "Nothing. A pinned turn stays word for word in every prompt of those who heard it: point at a turn in the story, and pin it.")];
  },
};

// A summary, and below it what it stands for, asked for when it is opened.
function fold(app, one) {
  const parts = one.level ? `${count(one.children.length, "smaller memory", "smaller memories")}` : count(one.turn_count, "turn");
  const inside = h("div", { class: "inside" });
  const text = h("p", { class: "fold-text" }, one.sentences.length ? one.sentences.map((sentence) => [h("span", { class: `sentence ${sentence.estimated ? "estimated" : ""}`, role: "button", title: sentence.estimated ? "The turns it came from are a guess" : null, ...lights(app, sentence.sources, sentence.text) }, sentence.text), " "]) : one.text);
  const older = h("div", { class: "older" });
  return h("div", { class: `fold level-${Math.min(3, one.level)}`, "data-memory": one.id },
    h("p", { class: "fold-head" }, h("span", { class: "tag" }, one.level ? `level ${one.level}` : "scene"), h("span", {}, count(one.turn_count, "turn")), h("span", { class: "muted small" }, MADE[one.made_by]),
      app.dm && !app.at ? h("button", { class: "tool", "data-key": `edit-${one.id}`, title: "Edit", "aria-label": "Edit this memory", onclick: () => edit(app, one, text) }, sign("edit")) : null,
      h("button", { class: "tool", "data-key": `history-${one.id}`, title: "History", "aria-label": "History of this memory", "aria-expanded": "false", onclick: (event) => history(app, one, older, event.currentTarget) }, sign("history"))),
    text, older,
    h("details", { class: "below", "data-key": one.id, ontoggle: (event) => { if (event.target.open && !inside.children.length) below(app, one, inside); } }, h("summary", {}, parts), inside));
}

async function below(app, one, place) {
  put(place, h("p", { class: "loading small" }, "One moment…"));
  try {
    if (one.level) {
      const found = await get(`${app.path}/memories/${one.id}`, { ...app.point, seat: app.eyes, depth: 1 });
      put(place, found.below.map((child) => fold(app, child)));
    } else {
      const found = await get(`${app.path}/turns`, { ...app.view, seat: app.seat || (app.dm ? "" : app.eyes), ids: one.children.slice(0, 200) });
      put(place, h("ul", { class: "plain sources" }, found.turns.map((turn) => source(app, turn))));
    }
  } catch (error) { put(place, h("p", { class: "failed small" }, error.message)); }
}

const source = (app, turn) => h("li", { ...lights(app, [turn.id], turn.text) }, h("span", {}, h("span", { class: "muted small" }, `${turn.number} `), clip(turn.text, 130)),
  app.dm && !app.seat && !app.at ? h("button", { class: "tool", "aria-label": `Forget turn ${turn.number}`, onclick: () => forget(app, turn) }, "Forget") : null);

async function history(app, one, place, button) {
  const open = !place.children.length;
  button.setAttribute("aria-expanded", String(open));
  if (!open) { put(place); return; }
  try {
    const { memories } = await get(`${app.path}/memories/${one.id}/history`, { ...app.point, seat: app.eyes });
    put(place, h("ol", { class: "versions" }, memories.map((was) => h("li", { class: was.id === one.id ? "current" : "" }, h("span", { class: "tag" }, was.id === one.id ? `now · ${MADE[was.made_by]}` : MADE[was.made_by]), h("p", {}, was.text)))));
  } catch (error) { put(place, h("p", { class: "failed small" }, error.message)); }
}

function edit(app, one, body) {
  const text = h("textarea", { rows: Math.min(12, Math.max(4, Math.ceil(one.text.length / 45))), value: one.text, required: true, "aria-label": "The memory" });
  const close = () => form.replaceWith(body);
  const save = async (event) => {
    event.preventDefault();
    const went = await app.do(() => call("PUT", `${app.path}/memories/${one.id}`, { params: app.where, body: { text: text.value } }));
    if (went) { close(); app.look({ tab: "memory" }); }
  };
  const form = h("form", { class: "edit", onsubmit: save, onkeydown: (event) => { if (event.key === "Escape") close(); } }, text, h("p", { class: "muted small" }, "Your words stand in its place until one of its turns changes. Undo takes them back."), h("div", { class: "buttons end" }, h("button", { type: "button", class: "button quiet", onclick: close }, "Cancel"), h("button", { class: "button primary" }, "Save")));
  body.replaceWith(form);
  text.focus();
}

// -- recall ---------------------------------------------------------------------------------------------------------------------

function recall(app) {
  const found = h("div", { class: "found" });
  const query = h("input", { type: "search", id: "recall", "data-key": "recall", maxlength: 400, placeholder: `Ask ${app.name(app.eyes)}…`, "aria-label": `Ask what ${app.name(app.eyes)} remembers` });
  const search = async (event) => {
    event.preventDefault();
    if (!query.value.trim()) { redraw(found); return; }
    try {
      const answer = await get(`${app.path}/recall`, { ...app.point, seat: app.eyes, query: query.value, limit: 6 });
      put(found, answer.found.length ? h("ul", { class: "plain" }, answer.found.map(({ turn }) => h("li", { ...lights(app, [turn.id], turn.text) }, h("span", {}, h("span", { class: "muted small" }, [turn.voice, turn.when].filter(Boolean).join(" · "), " "), clip(turn.text, 180))))) : h("p", { class: "muted small" }, "Nothing comes to mind."));
    } catch (error) { put(found, h("p", { class: "failed small" }, error.message)); }
  };
  return h("form", { class: "recall", role: "search", onsubmit: search }, h("div", { class: "line" }, query, h("button", { class: "button" }, "Recall")), found);
}
