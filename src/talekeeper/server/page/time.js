// Below: the whole story as a line, its branches, and a place on it. Wherever one stands, every panel shows that point.
import { h, placeName, put, redraw, sign, svg } from "/page/dom.js";

const WIDE = 1000; // units across the line
const MAIN = "main";
const IDLE = 120; // milliseconds of rest after which the page follows the hand on the slider

export function drawTime(app, place) {
  const { points } = app;
  const state = JSON.stringify([app.branch, app.seat, app.at, app.at && app.turns.at(-1)?.number, points.length, points.at(-1)?.id, app.total, app.branches, app.dm, app.lit && [...app.lit.ids]]);
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  const dragging = place.querySelector("#scrub:active");
  if (dragging) { place.dataset.state = ""; return; } // the hand is on it: drawn when it lets go
  const now = index(app);
  const where = h("div", { class: "where" }, step(app, now - 1, "prev", "Previous turn"), h("output", { class: "now", for: "scrub" }, words(app, now)), step(app, now + 1, "next", "Next turn"));
  const scrolled = place.querySelector(".lanes")?.scrollTop ?? 0;
  redraw(place, where, h("div", { class: "strip" }, lanes(app), h("div", { class: "track" }, ticks(app, now), slider(app, now))),
    h("div", { class: "back" }, app.at && app.dm ? h("button", { class: "button", id: "fork", "data-key": "fork", onclick: () => app.fork() }, "Continue from here") : null, app.at ? h("button", { class: "button quiet", id: "now", "data-key": "now", onclick: () => app.travel(null) }, "Now") : null), chapters(app, now));
  showLane(app, place, scrolled);
  document.body.style.setProperty("--time", `${place.offsetHeight}px`); // what is told stands above it
}

// Of many branches not all are in sight; the one that one goes to is.
function showLane(app, place, scrolled) {
  const lane = place.querySelector(".lanes");
  if (!lane) return;
  lane.scrollTop = scrolled;
  if (place.dataset.branch !== app.branch) lane.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest" });
  place.dataset.branch = app.branch;
}

function index(app) {
  if (!app.at) return app.points.length - 1;
  const at = app.points.findIndex((one) => one.id === app.at);
  return at >= 0 ? at : nearest(app.points, app.turns.at(-1)?.number ?? 0); // of a very long story not every turn is on the line
}

function words(app, now) {
  const found = app.points[now];
  if (!found) return [h("strong", {}, "The beginning")];
  return [h("strong", {}, `Turn ${found.number.toLocaleString("en")}`), h("span", { class: "muted" }, app.at ? ` of ${last(app).toLocaleString("en")}` : " · now")];
}

const step = (app, to, name, label) => h("button", { class: "button quiet icon", id: `${name}-turn`, "data-key": name, title: label, "aria-label": label, disabled: !app.points[to] || (name === "next" && !app.at), onclick: () => app.travel(app.points[to].id) }, sign(name));

// -- where everything is --------------------------------------------------------------------------------------------------------

const last = (app) => app.points.at(-1)?.number ?? 1;
// Branches share one scale, by number; the one that is looked at has at least half of the room.
const scale = (app) => (app.seat || !app.dm ? last(app) : Math.max(last(app), Math.min(2 * last(app), Math.max(0, ...app.branches.map((one) => (one.name === app.branch ? 0 : one.head))))));
// Where a branch ends: never before it began, also where its newest turn stands before that.
const end = (app, branch) => Math.max(branch.forked_at, branch.name === app.branch ? last(app) : branch.head);
const percent = (app, number) => `${Math.min(100, (100 * number) / scale(app)).toFixed(3)}%`;

function slider(app, now) {
  const { points } = app;
  const go = (to) => { input.value = points[to].number; input.setAttribute("aria-valuetext", `turn ${points[to].number}`); put(input.closest("#time").querySelector(".now"), words({ ...app, at: points[to].id, points }, to)); };
  let timer = null;
  const travel = (to) => { clearTimeout(timer); timer = setTimeout(() => app.travel(points[to].id), IDLE); };
  const input = h("input", { type: "range", id: "scrub", "data-key": "scrub", min: 0, max: last(app), value: points[now]?.number ?? 0, disabled: points.length < 2, "aria-label": "Point in the story", "aria-valuetext": app.at ? `turn ${points[now]?.number ?? 0}` : "now",
    style: { "--share": last(app) / scale(app) },
    oninput: () => { const to = nearest(points, Number(input.value)); go(to); travel(to); },
    onchange: () => { clearTimeout(timer); app.travel(points[nearest(points, Number(input.value))].id); },
    onkeydown: (event) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
      if (!by) return;
      event.preventDefault();
      const to = Math.max(0, Math.min(points.length - 1, nearest(points, Number(input.value)) + by));
      go(to);
      travel(to);
    } });
  return input;
}

function nearest(points, number) {
  let low = 0;
  let high = points.length - 1;
  while (low < high) { const middle = (low + high) >> 1; if (points[middle].number < number) low = middle + 1; else high = middle; }
  return low > 0 && number - points[low - 1].number < points[low].number - number ? low - 1 : low;
}

// A thousand turns in a hundred strokes: one path for each kind.
function ticks(app, now) {
  const here = app.points[now]?.number ?? 0;
  const groups = new Map();
  let place = null;
  for (const one of app.points) {
    const kind = app.lit?.ids.has(one.id) ? "lit" : one.kind === "whisper" || one.kind === "session" ? one.kind : one.kind === "event" || one.kind === "note" ? "event" : one.speaker === "dm" ? "told" : "said";
    const moved = one.location && place && one.location !== place;
    place = one.location ?? place;
    const name = `${kind} ${one.number > here ? "later" : ""}`;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(one.number);
    if (moved) groups.set("scene", [...(groups.get("scene") ?? []), one.number]);
  }
  const high = { lit: 20, whisper: 16, session: 20, event: 4, told: 11, said: 8, scene: 20 };
  const x = (number) => ((WIDE * number) / scale(app)).toFixed(2);
  const line = (name, d) => svg("path", { class: name, d, "vector-effect": "non-scaling-stroke" });
  return svg("svg", { class: app.points.length > 300 ? "ticks dense" : "ticks", viewBox: `0 0 ${WIDE} 24`, preserveAspectRatio: "none", "aria-hidden": "true" },
    line("rail-line", `M0 21H${x(last(app))}`), line("done", `M0 21H${x(here)}`), [...groups].map(([name, numbers]) => line(`tick ${name}`, numbers.map((number) => `M${x(number)} 20v-${high[name.split(" ")[0]]}`).join(""))));
}

// Where there is no room for a line to point at: the places that the story came through.
function chapters(app, now) {
  const found = [];
  for (const one of app.points) if (one.location && one.location !== found.at(-1)?.location) found.push(one);
  found.splice(0, found.length - 60);
  const here = found.findLast((one) => one.number <= (app.points[now]?.number ?? 0));
  return h("ol", { class: "chapters" }, found.reverse().map((one) => h("li", {}, h("button", { "data-key": `chapter-${one.id}`, "aria-current": String(one === here), onclick: () => app.travel(one.id) }, h("span", {}, placeName(one)), h("span", { class: "muted small" }, `turn ${one.number.toLocaleString("en")}`)))));
}

// The lines that the story has taken: the main one from its beginning, each other from where it leaves one that is drawn already. So what was
// taken back leaves the line that went on, although in the log it is the other way round.
function rows(branches) {
  const known = new Map(branches.map((one) => [one.name, one]));
  const ways = new Map();
  const way = (one) => { // its parts, each up to where the next one begins
    if (!ways.has(one.name)) {
      const before = known.has(one.parent) ? way(known.get(one.parent)) : [];
      const at = before.findIndex((part) => part.to >= one.forked_at);
      ways.set(one.name, [...before.slice(0, Math.max(0, at)), ...(before[at] ? [{ name: before[at].name, to: one.forked_at }] : []), { name: one.name, to: Infinity }]);
    }
    return ways.get(one.name);
  };
  const shared = (a, b) => {
    const at = a.findIndex((part, number) => part.name !== b[number]?.name || part.to !== b[number].to);
    return a[at]?.name === b[at]?.name ? Math.min(a[at].to, b[at].to) : (a[at - 1]?.to ?? 0);
  };
  const base = (one) => one.name.split("~")[0]; // what was taken back is called after what goes on
  const first = new Map([MAIN, ...branches.map(base)].reverse().map((name, number) => [name, -number]));
  const drawn = [];
  for (const one of [...branches].sort((a, b) => first.get(base(a)) - first.get(base(b)) || a.name.length - b.name.length)) {
    const from = drawn.map((other) => ({ name: other.one.name, at: shared(way(other.one), way(one)) })).reduce((best, next) => (next.at > (best?.at ?? 0) ? next : best), null);
    drawn.push({ one, from });
  }
  return drawn;
}

function lanes(app) {
  if (!app.dm || app.branches.length < 2) return null;
  const shown = rows(app.branches);
  const row = new Map(shown.map(({ one }, number) => [one.name, 12 + 24 * number]));
  const drawn = shown.map(({ one, from }) => {
    const left = percent(app, from?.at ?? 0);
    const right = percent(app, Math.max(from?.at ?? 0, end(app, one)));
    const y = row.get(one.name);
    return svg("g", { class: one.name === app.branch ? "lane here" : "lane", "data-lane": one.name }, from ? svg("line", { x1: left, x2: left, y1: row.get(from.name), y2: y }) : null,
      svg("line", { class: "own", x1: left, x2: right, y1: y, y2: y }), svg("circle", { cx: right, cy: y, r: 4 }), from ? svg("circle", { cx: left, cy: row.get(from.name), r: 2.5 }) : null);
  });
  const names = shown.map(({ one, from }) => h("button", { class: "branch", "data-key": `branch-${one.name}`, "data-branch": one.name, "aria-pressed": String(one.name === app.branch), title: from ? `leaves ${from.name} after turn ${from.at}` : "from the beginning", onclick: () => app.onto(one.name) }, one.name));
  return h("div", { class: "lanes", role: "group", "aria-label": "Branches" }, app.seat ? null : svg("svg", { class: "graph", "aria-hidden": "true", height: 24 * app.branches.length }, drawn.filter((one) => !one.matches(".here")), drawn.filter((one) => one.matches(".here"))), names);
}
