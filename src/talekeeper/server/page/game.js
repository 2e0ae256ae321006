// What the game knows: what is owed and held, what mattered, and who knows which secret.
import { get } from "/page/api.js";
import { clip, dot, empty, h } from "/page/dom.js";
import { lights } from "/page/memory.js";

export const ledger = {
  look: (app) => (app.game && inGame(app) ? get(`${app.path}/ledger`, app.view) : null),
  show(app, found) {
    if (!app.game) return empty("No game", "This story is told and not played: it has no ledger.");
    if (!found) return empty("Not of the party", `The ledger is of those who play. What ${app.name(app.seat)} remembers is under Prompt and Memory.`);
    const section = (title, rows, none) => [h("h2", { class: "label" }, title), rows.length ? h("ul", { class: "plain ledger" }, rows.map((row) => h("li", {}, row))) : h("p", { class: "muted small" }, none)];
    return [
      section("Goals", found.goals.map((one) => h("span", {}, h("strong", {}, one.title), h("br"), h("span", { class: "muted small" }, one.hint))), "No goal is open."),
      section("Reached", found.done.map((one) => h("span", { class: "done" }, one)), "Nothing yet."),
      section("Promises", found.promises.map((one) => [h("span", {}, h("strong", {}, one.by), ` to ${one.to}: ${one.text}`), h("span", { class: `tag ${one.state}` }, one.state)]), "Nobody owes anybody anything."),
      section("Things", found.items.map((one) => [h("strong", {}, one.item), h("span", { class: "muted small" }, one.holder)]), "Nobody carries anything of note."),
      section("The dead", found.deaths.map((one) => h("span", {}, h("strong", {}, one.who), one.how ? `: ${one.how}` : "")), "Everyone lives.")];
  },
};

// The game knows those of the party and the dm; whoever else is viewed has no ledger of their own.
const inGame = (app) => !app.seat || app.seat === "dm" || app.party.some((one) => one.id === app.seat);

export const moments = {
  look: (app) => get(`${app.path}/marks`, { ...app.view, topic: "moment" }),
  show(app, { marks }) {
    if (!marks.length) return empty("No moments yet", "Victories, discoveries and turning points are kept here, the most significant the longest.");
    return [h("p", { class: "muted small" }, "What mattered, in order. The larger the mark, the more it weighs."), h("ol", { class: "moments" }, marks.map((mark) => h("li", { style: { "--weight": mark.data.significance ?? mark.rank }, ...lights(app, mark.sources, mark.data.summary) },
      h("p", { class: "kind" }, h("span", { class: "tag" }, String(mark.data.type).replaceAll("_", " ")), h("span", { class: "muted small" }, `turn ${mark.turn}`)), h("p", {}, mark.data.summary), mark.stale ? h("p", { class: "muted small" }, "One of its turns was edited since.") : null)))];
  },
};

export const leaks = {
  async look(app) {
    if (!app.dm || app.seat) return { closed: true };
    const whispers = get(`${app.path}/turns`, { ...app.point, kinds: ["whisper"], limit: 50, newest: true });
    if (!app.game) return { seats: app.seats.filter((one) => one.role !== "dm").slice(0, 8), secrets: [], whispers: (await whispers).turns };
    const [found, heard] = await Promise.all([get(`${app.path}/secrets`, app.point), whispers]);
    return { ...found, whispers: heard.turns };
  },
  show(app, found) {
    if (found.closed) return empty("For the author's eyes", app.dm ? "Who knows what is not for a seat to see: view everything." : "Who knows what is the DM's to see.");
    const { seats, secrets, whispers } = found;
    if (!secrets.length && !whispers.length) return empty("No secrets", "What is whispered will stand here, and who knows of it.");
    const cell = (seat, knows) => h("td", {}, h("span", { class: knows ? "knows" : "knows-not", role: "img", "aria-label": `${seat.name} ${knows ? "knows" : "does not know"}` }));
    const row = (text, known, more = {}) => h("tr", more, h("th", { scope: "row" }, text), seats.map((seat) => cell(seat, known.includes(seat.id))));
    const head = h("tr", {}, h("td", {}), seats.map((seat) => h("th", { scope: "col", title: seat.name }, dot(seat.id, seat.name), h("span", { class: "sr" }, seat.name))));
    return [h("p", { class: "muted small legend" }, h("span", { class: "knows" }), "knows it", h("span", { class: "knows-not" }), "does not, until someone tells"),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Secrets by seat" }, h("table", { class: "matrix" }, h("thead", {}, head),
        whispers.length ? h("tbody", {}, h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: seats.length + 1 }, "Whispered")), [...whispers].reverse().map((turn) => row(clip(turn.text, 140), turn.audience, { class: "whispered", ...lights(app, [turn.id], turn.text) }))) : null,
        secrets.length ? h("tbody", {}, h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: seats.length + 1 }, "Secrets of this story")), secrets.map((one) => row(one.text, one.known))) : null))];
  },
};
