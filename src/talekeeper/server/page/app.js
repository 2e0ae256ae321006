// The table: one state, and every part of the page is drawn from it. What happens in the story comes over one line, in the view that is
// shown; the page adds it to what it has and asks for the rest, so that a long story costs no more than a short one.
import { call, follow, get, hasToken, once, post, Problem } from "/page/api.js";
import { $, arrange, h, know, put, quiet, toast } from "/page/dom.js";
import { home } from "/page/home.js";
import { drawPanel, drawTabs, TABS } from "/page/inspect.js";
import { drawComposer } from "/page/composer.js";
import { drawSeats } from "/page/seats.js";
import { drawTurns, lightTurns } from "/page/story.js";
import { drawTime } from "/page/time.js";
import { drawTop, lineState, login, theme } from "/page/top.js";
import { listenToKeys } from "/page/keys.js";

const PAGE = 120; // turns that are asked for at once
const MOST = 480; // turns that are on the page at once; the others come when they are scrolled to
const POINTS = 1000;
const NARROW = matchMedia("(max-width: 860px)"); // one part of the page at a time
const NOTHING = { turns: [], before: false, after: false, points: [], total: 0, play: null, awaited: null, scene: null, seats: [], branches: [], game: null, version: null, loaded: false };

const pathOf = (story) => `/stories/${encodeURIComponent(story)}`;

const app = {
  me: null, dm: false, story: null, branch: "main", seat: "", who: "", at: null, tab: "prompt", mode: "act", pane: "story", budgets: {}, lit: null, ...NOTHING,

  get path() { return pathOf(this.story); },
  get where() { return { branch: this.branch }; },
  get point() { return { branch: this.branch, at: this.at }; },
  get view() { return { branch: this.branch, at: this.at, seat: this.seat }; },
  get party() { return this.play?.party ?? []; },
  // Through whose eyes the inspector looks: whoever is viewed, or chosen there, or whose turn it is.
  get eyes() {
    const heroes = this.party.length ? this.party : this.seats.filter((one) => one.role !== "dm");
    return this.seat || (this.seats.some((one) => one.id === this.who) ? this.who : "") || this.play?.waiting || heroes.find((one) => one.human)?.id || heroes[0]?.id || this.seats[0]?.id || "";
  },
  get limit() { return this.seats.find((one) => one.id === this.eyes)?.token_limit ?? 2000; },
  get budget() { return this.budgets[this.eyes] ?? this.limit; },
  // What one may do at this story, in this view.
  get modes() {
    if (!this.play) return ["act", "whisper"];
    return this.dm ? ["act", "whisper", "nudge"] : this.party.some((one) => one.id === this.seat) ? ["act", "whisper"] : ["act"];
  },
  name(id) { return id === "dm" ? "DM" : this.party.find((one) => one.id === id)?.name || this.seats.find((one) => one.id === id)?.name || id || "someone"; },

  open(story, seat = "") { quiet(); location.hash = new URLSearchParams({ story, ...(seat ? { seat } : {}) }).toString(); },
  // Whoever plays alone at this machine sees what their own hero sees, and not what the author does.
  async ownView(story) {
    if (!app.dm) return app.me.seats[0];
    if (hasToken() || !(await get(pathOf(story))).game) return "";
    return (await get(`${pathOf(story)}/play`)).party.find((one) => one.human)?.id ?? "";
  },
  resume: async (story) => app.open(story, app.dm ? await app.ownView(story).catch(() => "") : ""), // it says by itself what is wrong with it
  leave() { location.hash = ""; },

  // -- going somewhere ------------------------------------------------------------------------------------------------------

  look(change) { Object.assign(app, change); note(); draw(); return change.tab || "who" in change || "budgets" in change ? panel() : Promise.resolve(); },
  as(seat) { if (seat !== app.seat) settle({ seat, at: null }, true); },
  onto(branch) { settle({ branch, at: null }, true); },
  travel(to) {
    const at = to === app.points.at(-1)?.id ? null : to;
    const turned = Boolean(at) !== Boolean(app.at);
    Object.assign(app, { at, lit: null });
    note(turned);
    return load("turns", "play");
  },

  // -- doing something ------------------------------------------------------------------------------------------------------

  // Tries; what went wrong is said, and the page shows what is so. Answers whether it went well.
  async do(work, ...parts) {
    try {
      await work();
      if (parts.length) load(...parts);
      return true;
    } catch (error) {
      wrong(error);
      if (error.status === 409 || error.status === 412) load("turns", "play", "branches", "line");
      return false;
    }
  },
  step: (nudge) => app.do(() => once(`${app.path}/step`, nudge ? { nudge } : {}, app.where), "play"),
  auto: (on) => app.do(() => post(`${app.path}/auto`, { on }, app.where), "play"),
  act: (seat, text) => app.do(() => once(`${app.path}/act`, { text }, { ...app.where, seat }), "play"),
  finish: () => app.do(async () => { await once(`${app.path}/finish`, {}, app.where); toast("The end is being told. You can play on after it, or undo it."); }, "play"),
  // What is taken back is what was seen: where someone else was faster, nothing is.
  async undo() {
    if (app.undoing) return;
    app.undoing = true;
    if (!app.version) await load("version"); // of what has just been added
    const bound = { more: { "If-Match": app.version }, answered: (headers) => { app.version = headers.get("Story-Version"); } };
    const back = async () => { // the log has more turns than the timeline has points
      const { turns } = await get(`${app.path}/turns`, { ...app.where, newest: true, limit: 2 });
      await post(`${app.path}/rewind`, { to: turns.length > 1 ? turns[0].id : "0" }, app.where, bound);
    };
    const done = await app.do(() => (app.game ? once(`${app.path}/undo`, {}, app.where, bound) : back()), "turns", "play", "branches", "line");
    app.undoing = false;
    if (done) toast(app.game ? "The last round is taken back. It stays as a branch." : "The last turn is taken back. It stays as a branch.");
  },
  fork: () => app.do(async () => {
    const made = await post(`${app.path}/fork`, { at: app.at }, app.where);
    toast(`A new branch, ${made.name}: the story goes on from here, and the old one stays as it was.`);
    app.onto(made.name);
  }),
  people: (seat, human) => app.do(async () => {
    const humans = app.party.filter((one) => (one.id === seat ? human : one.human)).map((one) => one.id);
    await call("PUT", `${app.path}/people`, { params: app.where, body: { humans } });
  }, "play"),
  pin: (id, wanted) => app.do(async () => { changed(await call(wanted ? "PUT" : "DELETE", `${app.path}/turns/${id}/pin`, { params: app.where })); }),
  forget: (id) => app.do(async () => { await call("DELETE", `${app.path}/turns/${id}`, { params: app.where }); gone(id); }, "line"),
  limitTo: (tokens) => app.do(async () => {
    const { role, name, aliases, fold_at, keep } = app.seats.find((one) => one.id === app.eyes);
    await call("PUT", `${app.path}/seats/${app.eyes}`, { params: app.where, body: { role, name, aliases, fold_at, keep, token_limit: tokens } });
    delete app.budgets[app.eyes];
    toast(`${app.name(app.eyes)} has ${tokens} tokens from now on.`);
  }, "seats"),

  // -- the window on the story ----------------------------------------------------------------------------------------------

  earlier: () => widen(async () => {
    const page = await get(`${app.path}/turns`, { ...app.view, limit: PAGE, newest: true, before: app.turns[0].id });
    const turns = [...page.turns, ...app.turns];
    return { turns: turns.slice(0, MOST), before: page.more, after: app.after || turns.length > MOST };
  }),
  later: () => widen(async () => {
    const page = await get(`${app.path}/turns`, { ...app.view, limit: PAGE, after: app.turns.at(-1).id });
    const turns = [...app.turns, ...page.turns];
    return { turns: turns.slice(-MOST), before: app.before || turns.length > MOST, after: page.more };
  }),
  // Lights turns up; `held`: until something else is asked for, and they are brought into sight.
  async light(ids, held = false, words = "") {
    if (!held && app.lit?.held) return;
    app.lit = ids.length ? { ids: new Set(ids), held, words } : null;
    const [first] = ids;
    if (held && first && !app.turns.some((turn) => turn.id === first)) await around(first);
    if (held) app.show("story");
    lightTurns(app, held);
    drawTime(app, $("time"));
  },
  dim() { app.lit = null; lightTurns(app); drawTime(app, $("time")); },
  show(pane) {
    const turned = pane !== app.pane && NARROW.matches;
    turnTo(pane);
    note(turned);
  },
};

function turnTo(pane) {
  app.pane = pane;
  $("table").dataset.pane = pane;
  for (const one of document.querySelectorAll("#bottom button")) one.setAttribute("aria-current", String(one.dataset.to === pane));
}

// The address is that of what is shown. `turned`: it is another view, which the browser's Back leads out of.
function note(turned = false) {
  const kept = { story: app.story, branch: app.branch === "main" ? "" : app.branch, seat: app.dm ? app.seat : "", at: app.at, tab: app.tab };
  const address = `#${new URLSearchParams(Object.entries(kept).filter(([, value]) => value))}`;
  if (turned) history.pushState({ pane: app.pane }, "", address);
  else history.replaceState({ pane: app.pane }, "", address);
}

// -- what is there --------------------------------------------------------------------------------------------------------------

const due = new Set();
let loading = null;

// Asks for parts of what is shown, and draws it. Asked for again meanwhile, it asks again; what is no longer wanted is not drawn.
function load(...parts) {
  for (const part of parts) due.add(part);
  loading ??= (async () => {
    while (due.size) {
      await new Promise((go) => setTimeout(go, 20));
      if (!app.story) break; // left meanwhile
      const now = [...due];
      const here = place();
      due.clear();
      await fetchParts(now).catch((error) => { if (here === place()) wrong(error); });
    }
    loading = null;
  })();
  return loading;
}

const place = () => JSON.stringify([app.story, app.branch, app.seat, app.at]);

async function fetchParts(parts) {
  const here = place();
  await Promise.all(parts.map(async (part) => {
    const found = await PARTS[part]();
    if (here !== place()) { due.add(part); return; }
    Object.assign(app, found);
    app.loaded ||= part === "turns";
    know((app.play ? app.party : app.seats.filter((one) => one.role === "pc")).map((one) => one.id));
    draw();
  }));
  panel();
}

const PARTS = {
  async turns() { // and the version that they are of
    const [page, now] = await Promise.all([get(`${app.path}/turns`, { ...app.view, limit: PAGE, newest: true }), PARTS.version()]);
    return { turns: page.turns, before: page.more, after: false, ...now };
  },
  async play() {
    const here = place(); // one who goes elsewhere takes nothing along, and nothing more is asked for
    meanwhile = [];
    const game = app.game ?? (await get(app.path, { ...app.where, seat: app.seat })).game;
    if (!game || here !== place()) return { game, play: null, awaited: null, scene: null };
    try {
      const play = await get(`${app.path}/play`, app.view);
      const awaited = here === place() ? await awaitedIn(play) : null;
      return { game, awaited, scene: here === place() && hasScene(play) ? await get(`${app.path}/scene`, { ...app.point, seat: sceneFor(play) }) : null, play: meanwhile.reduce((found, change) => change(found), play) };
    } catch (error) {
      if (!(error instanceof Problem) || ![422, 503].includes(error.status)) throw error;
      return { play: null, awaited: null, scene: null, game: false }; // a scenario that is not here, or a server that cannot play
    }
  },
  async seats() { return { seats: await get(`${app.path}/seats`, app.dm ? app.where : { ...app.where, seat: app.seat }) }; },
  async branches() { return app.dm ? { branches: (await get(`${app.path}/branches`, app.where)).branches } : {}; },
  async line() {
    const found = await get(`${app.path}/timeline`, { ...app.where, seat: app.seat, points: POINTS });
    return { points: found.points, total: found.turns };
  },
  async version() { return app.dm ? { version: (await get(app.path, app.where)).version } : {}; },
};

// Whose turn it is, as far as whoever sits here may know. A view tells of its own seat alone; the dm knows of all, and a player of those
// that are theirs.
async function awaitedIn(play) {
  if (app.at || play.running || play.waiting) return play.waiting;
  const others = app.dm ? (app.seat ? [""] : []) : app.me.seats.filter((one) => one !== app.seat && play.party.some((hero) => hero.id === one));
  const found = await Promise.all(others.map((seat) => get(`${app.path}/play`, { ...app.where, seat })));
  return found.find((one) => one.waiting)?.waiting ?? null;
}

// The game is seen by those of the party and by the dm; whoever else is viewed sees the dm's scene, if it is the dm who looks.
const inGame = (play, seat) => seat === "dm" || play.party.some((one) => one.id === seat);
const hasScene = (play) => app.dm || inGame(play, app.seat);
function sceneFor(play) {
  const wanted = app.at ? app.seat : app.seat || play.waiting;
  return inGame(play, wanted) ? wanted : "";
}

// The window widens where it is scrolled to its edge.
let widening = false;
async function widen(work) {
  if (widening) return;
  widening = true;
  try {
    const here = place();
    const found = await work();
    if (here === place()) { Object.assign(app, found); drawTurns(app); }
  } catch (error) { wrong(error); } finally { widening = false; }
}

const around = (id) => widen(async () => {
  const half = { ...app.view, limit: PAGE / 2 };
  const [before, it, after] = await Promise.all([get(`${app.path}/turns`, { ...half, newest: true, before: id }), get(`${app.path}/turns`, { ...app.view, ids: [id] }), get(`${app.path}/turns`, { ...half, after: id })]);
  return { turns: [...before.turns, ...it.turns, ...after.turns], before: before.more, after: after.more };
});

// -- what happens -------------------------------------------------------------------------------------------------------------

const gone = (id) => { app.turns = app.turns.filter((turn) => turn.id !== id); app.points = app.points.filter((one) => one.id !== id); draw(); panel(); };

// A turn as it is now; `fresh`: one that may not be there yet.
function changed(turn, fresh = false) {
  if (!app.at) {
    const at = app.turns.findIndex((one) => one.id === turn.id);
    if (at >= 0) app.turns = app.turns.with(at, turn);
    else if (fresh && !app.after) app.turns = [...app.turns, turn].slice(-MOST);
  }
  if (fresh && !app.points.some((one) => one.id === turn.id)) {
    app.points = [...app.points, turn];
    app.total += 1;
    if (app.points.length > POINTS) due.add("line");
  }
  if (fresh) playing((play) => ({ ...play, lines: play.lines.filter((one) => one.text.trim() !== turn.text.trim()) }));
  draw();
  panel();
}

// Changes what is being played. While that is asked for, the answer may be older than what is heard: it is changed in the same way.
let meanwhile = [];
function playing(change) {
  if (app.at) return;
  meanwhile.push(change);
  if (app.play) app.play = change(app.play);
}

function spoken(line) {
  playing((play) => {
    const known = play.lines.findIndex((one) => one.line === line.line);
    return { ...play, running: true, lines: known < 0 ? [...play.lines, line] : play.lines.with(known, line) };
  });
  draw();
}

const moved = () => { app.version = null; load("version"); };

const EVENTS = {
  turn: (turn) => { changed(turn, true); moved(); },
  edited: (turn) => { changed(turn); moved(); }, pinned: (turn) => EVENTS.edited(turn), unpinned: (turn) => EVENTS.edited(turn),
  forgotten: ({ id }) => gone(id),
  line: spoken,
  round: () => { playing((play) => ({ ...play, running: true, lines: [] })); draw(); },
  auto: ({ on }) => { playing((play) => ({ ...play, auto: on })); draw(); },
  rested: () => { moved(); load("play"); },
  rewound: () => load("turns", "line", "play", "branches"),
  hello: () => load(...Object.keys(PARTS)), reset: () => load(...Object.keys(PARTS)),
  branches: () => load("branches"),
  seats: () => load("seats"),
  overridden: () => moved(), marked: () => moved(), memories: () => panel(),
  deleted: () => { toast("This story was removed.", "bad"); app.leave(); },
  open: () => lineState("open"),
  lost: ({ times }) => { if (times > 1) lineState("lost"); if (!app.loaded) load(...Object.keys(PARTS)); },
  refused: (error) => wrong(error),
};

let line = null;

// Sits down somewhere: at a story, on a branch, in a view. First it listens, then it looks, so that nothing happens in between unheard.
function settle(change, turned = false) {
  line?.abort();
  line = new AbortController();
  Object.assign(app, change, { lit: null, turns: [], points: [], total: 0, version: null, loaded: false, before: false, after: false });
  app.play = app.play && { ...app.play, lines: [] };
  note(turned);
  drawTop(app);
  frame();
  drawTabs(app);
  follow(`${app.path}/events`, { ...app.where, seat: app.seat }, (event, data) => EVENTS[event]?.(data), line.signal);
}

// -- what is shown ------------------------------------------------------------------------------------------------------------

let drawn = 0;

function draw() {
  drawn ||= requestAnimationFrame(() => {
    drawn = 0;
    if (!app.story || !$("table") || !app.loaded) return;
    $("table").classList.toggle("in-past", Boolean(app.at));
    drawTop(app);
    drawTurns(app);
    drawComposer(app, $("composer"));
    drawSeats(app, $("rail"));
    drawTime(app, $("time"));
    drawTabs(app);
  });
}

const EASE = 250;
let looked = 0;
let waiting = null;

// The inspector, at most four times a second.
function panel() {
  waiting ??= new Promise((go) => setTimeout(go, Math.max(0, looked + EASE - Date.now()))).then(() => {
    waiting = null;
    looked = Date.now();
    return app.story && $("panel") && app.loaded && app.eyes ? drawPanel(app, $("panel")) : undefined; // where seats are still to come, they bring it along
  });
  return waiting;
}

const PANES = [["rail", "Seats"], ["story", "Story"], ["inspect", "Memory"], ["time", "Time"]];

function frame() {
  if ($("table")) return;
  put($("main"), h("div", { id: "table" },
    h("section", { id: "rail", "aria-label": "Seats" }),
    h("section", { id: "story", "aria-label": "Story", tabindex: -1 },
      h("div", { id: "scroll", role: "region", "aria-label": "What was told", tabindex: 0 }, h("div", { id: "turns" }, h("p", { class: "loading" }, "Opening the book…"))),
      h("div", { id: "log", class: "sr", role: "log", "aria-live": "polite", "aria-label": "What was told last" }),
      h("div", { id: "lit", role: "status" }), h("div", { id: "composer", role: "region", "aria-label": "Your part", tabindex: -1 })),
    h("section", { id: "inspect", "aria-label": "Inspector" }, h("div", { id: "tabs", role: "tablist", "aria-label": "Inspector" }), h("div", { id: "panel", role: "tabpanel", tabindex: 0 })),
    h("section", { id: "time", "aria-label": "Timeline" }),
    h("nav", { id: "bottom", "aria-label": "Parts of the page" }, PANES.map(([pane, label]) => h("button", { "data-to": pane, onclick: () => app.show(pane) }, label)))));
  turnTo(app.pane);
}

// -- coming and going -----------------------------------------------------------------------------------------------------------

function wrong(error) {
  if (!(error instanceof Problem)) throw error;
  if (error.status === 401) { line?.abort(); return login(error, start); }
  if (error.code === "unknown-story" || error.at === "path.story") return nowhere();
  if (!app.loaded && app.story && error.status) return error.status < 500 ? astray(error) : stuck(error);
  if (error.status === 404 && error.code === "unknown-branch") { toast("That branch is not there any more. This is the main line.", "bad"); return settle({ branch: "main", at: null }); }
  if (error.status === 404 && app.at) { toast("That turn is not there any more. This is the story as it is now.", "bad"); return app.travel(null); }
  return toast(error.message, "bad");
}

function nowhere() {
  toast("There is no such story here. It may have been removed, or your token does not open it.", "bad");
  app.leave();
}

// What the address asks for cannot be shown: says so, and shows what is nearest to it.
async function astray(error) {
  const here = place();
  const own = app.dm ? "" : await ownSeat(app.story);
  if (here !== place()) return;
  const named = { turn: app.at, seat: app.seat !== own, branch: app.branch !== "main" };
  const told = error.code.replace("unknown-", "");
  const left = named[told] ? [told] : Object.keys(named).filter((one) => named[one]);
  if (!left.length) { nowhere(); return; }
  app.game = null; // what refused the rest may have refused the game, too
  toast(`This address names a ${left.join(", or a ")} that is not there${app.dm ? "" : ", or not yours to see"}. ${left.includes("branch") ? "This is the main line of the story." : "This is the story as it is now."}`, "bad");
  settle({ at: left.includes("turn") || left.includes("branch") ? null : app.at, seat: left.includes("seat") ? own : app.seat, branch: left.includes("branch") ? "main" : app.branch });
}

// Nothing can be shown: says why, and offers the ways on.
function stuck(error) {
  line?.abort();
  arrange($("banner"));
  put($("main"), h("div", { class: "empty" }, h("p", { class: "empty-title" }, app.story ? "This story cannot be opened" : "The stories cannot be shown"), h("p", {}, error.message),
    h("div", { class: "buttons centred" }, h("button", { class: "button primary", onclick: start }, "Try again"), app.story ? h("button", { class: "button quiet", onclick: app.leave }, "All stories") : null)));
}

// What the address asks for.
function asking() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const tab = asked.get("tab");
  return { story: asked.get("story"), branch: asked.get("branch") || "main", seat: asked.get("seat") || "", at: asked.get("at"), tab: Object.hasOwn(TABS, tab) ? tab : "prompt" };
}

let began = 0;
let retry = null;

async function start() {
  const mine = ++began;
  const asked = asking();
  const { story } = asked;
  const again = story === app.story;
  clearTimeout(retry);
  line?.abort();
  try {
    app.me = await get("/me");
    if (mine !== began) return undefined;
    app.dm = app.me.dm;
    if (!again) Object.assign(app, NOTHING, { story: null, budgets: {}, who: "", mode: "act" }); // the story comes with its branch and seat, below
    arrange($("banner"));
    put($("main"), h("p", { class: "loading" }, "Opening the book…"));
    drawTop(app);
    if (!story) { document.title = "Talekeeper"; return await home(app, $("main")); }
    if (!app.dm) asked.seat ||= await ownSeat(story);
    return mine === began ? settle({ ...asked, pane: history.state?.pane ?? "story" }) : undefined;
  } catch (error) { return mine === began ? unreached(error) : undefined; }
}

// A player may have several seats; not every story has all of them.
async function ownSeat(story) {
  for (const seat of app.me.seats) {
    if (app.me.seats.length === 1 || (await get(pathOf(story), { seat }).catch(() => null))) return seat;
  }
  return app.me.seats[0];
}

// Nothing can be shown yet: say why, and go on by itself where that helps.
function unreached(error) {
  if (!(error instanceof Problem) || error.status === 401) return wrong(error);
  if (error.status && error.status < 500) return stuck(error);
  put($("main"), h("div", { class: "empty" }, h("p", { class: "empty-title" }, "The server does not answer"), h("p", {}, "Is “talekeeper serve” still running? This page tries again by itself."), h("button", { class: "button primary", onclick: start }, "Try now")));
  retry = setTimeout(start, 3000);
  return undefined;
}

// Somewhere else in the story that is shown, or in another one.
function readdress() {
  const asked = asking();
  if (!app.story || asked.story !== app.story || !$("table")) return start();
  began += 1; // what was on its way elsewhere is not wanted any more
  if (!app.dm) asked.seat ||= app.seat;
  if (asked.branch !== app.branch || asked.seat !== app.seat || asked.at !== app.at) return settle(asked);
  return app.look({ tab: asked.tab });
}

theme();
listenToKeys(app);
window.addEventListener("popstate", (event) => { if ($("table")) turnTo(event.state?.pane ?? "story"); });
window.addEventListener("hashchange", readdress);
start();
