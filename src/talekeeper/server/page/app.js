// The table: one state, and every part of the page is drawn from it.
import { call, download, follow, get, keepToken, post } from "/page/api.js";
import { dot, h, put, toast } from "/page/dom.js";
import { home } from "/page/home.js";
import { renderPanel, TABS } from "/page/panels.js";
import { renderComposer, renderTurns } from "/page/story.js";

const PAGE = 200;
const $ = (id) => document.getElementById(id);

const app = {
  me: null, dm: false, story: null, branch: "main", seat: "", at: null, tab: "prompt", mode: "act", budget: 1500, pane: "story",
  turns: [], all: [], more: false, older: [], play: null, scene: null, seats: [], branches: [],
  get path() { return `/stories/${this.story}`; },
  get where() { return { branch: this.branch }; },
  get point() { return { branch: this.branch, at: this.at }; },
  get eyes() { return this.seat || (this.me.dm ? this.play?.waiting || this.play?.party.find((one) => one.human)?.id || this.play?.party[0]?.id || this.seats[0]?.id : this.me.seats[0]); },
  name: (id) => (id === "dm" ? "DM" : app.seats.find((one) => one.id === id)?.name || app.play?.party.find((one) => one.id === id)?.name || id || "someone"),

  open(story) { location.hash = new URLSearchParams({ story }).toString(); },
  set(change) {
    Object.assign(app, change);
    const kept = { story: app.story, branch: app.branch === "main" ? null : app.branch, seat: app.seat, at: app.at, tab: app.tab };
    const hash = new URLSearchParams(Object.entries(kept).filter(([, value]) => value)).toString();
    history.replaceState(null, "", `#${hash}`);
    return refresh();
  },
  async do(work) {
    try { await work(); } catch (error) { toast(error.message, "bad"); }
    return refresh();
  },
  step: (nudge) => app.do(() => post(`${app.path}/step`, nudge ? { nudge } : {}, app.where)),
  auto: (on) => app.do(() => post(`${app.path}/auto`, { on }, app.where)),
  undo: () => app.do(() => post(`${app.path}/undo`, {}, app.where).then(() => toast("The last round is taken back. It stays as a branch."))),
  travel: (at) => app.set({ at: at && app.all.length && at === app.all.at(-1).id ? null : at }),
  async fork() {
    try {
      const made = await post(`${app.path}/fork`, { at: app.at }, app.where);
      toast(`A new branch: ${made.name}.`);
      listen({ branch: made.name, at: null });
    } catch (error) { toast(error.message, "bad"); }
  },
  people: (seat, human) => app.do(() => call("PUT", `${app.path}/people`, { params: app.where, body: { humans: app.play.party.filter((one) => (one.id === seat ? human : one.human)).map((one) => one.id) } })),
  async earlier() {
    const page = await get(`${app.path}/turns`, { ...app.point, seat: app.seat, limit: PAGE, newest: true, before: app.turns[0].id });
    app.older = [...page.turns, ...app.older];
    return refresh();
  },
  light(sources, scroll = false) {
    const wanted = new Set(sources);
    let first = null;
    for (const one of document.querySelectorAll("article[data-id]")) {
      const lit = wanted.has(one.dataset.id);
      one.classList.toggle("lit", lit);
      if (lit && !first) first = one;
    }
    if (scroll && first) { showPane("story"); first.scrollIntoView({ block: "center", behavior: "smooth" }); }
  },
};

// -- what is shown --------------------------------------------------------------------------------------------------------

let drawing = Promise.resolve();
let wanted = false;

function refresh() {
  if (!app.story) return Promise.resolve();
  if (wanted) return drawing;
  wanted = true;
  drawing = drawing.then(() => new Promise((go) => setTimeout(go, 30))).then(async () => { wanted = false; await draw(); }).catch((error) => problem(error));
  return drawing;
}

async function draw() {
  const story = app.story;
  const params = { ...app.point, seat: app.seat };
  const quietly = (promise) => promise.catch(() => null);
  const [turns, play, seats, branches] = await Promise.all([
    get(`${app.path}/turns`, { ...params, limit: PAGE, newest: true }), quietly(get(`${app.path}/play`, { ...app.where, seat: app.seat })),
    get(`${app.path}/seats`, app.where), app.dm ? get(`${app.path}/branches`, app.where) : { branches: [] }]);
  const scene = play && await quietly(get(`${app.path}/scene`, { ...app.point, seat: app.at ? app.seat : play.waiting || app.seat }));
  if (story !== app.story) return;
  Object.assign(app, { turns: [...app.older.filter((old) => turns.turns.length && old.number < turns.turns[0].number), ...turns.turns], more: turns.more && !app.older.length, play, seats: seats, scene, branches: branches.branches });
  if (!app.at) app.all = app.turns;
  frame();
  const column = $("scroll");
  const low = column.scrollHeight - column.scrollTop - column.clientHeight < 160;
  renderTurns(app, $("turns"));
  renderComposer(app, $("composer"));
  renderRail($("rail"));
  renderTime($("time"));
  if (low || app.fresh) column.scrollTop = column.scrollHeight;
  app.fresh = false;
  document.title = `${play?.title || app.story} · Talekeeper`;
  await renderPanel(app, $("panel"));
}

function frame() {
  if ($("table")) return tabs();
  put($("main"), h("div", { id: "table", "data-pane": "story" },
    h("aside", { id: "rail", "aria-label": "Seats" }),
    h("section", { id: "story", "aria-label": "Story", tabindex: "-1" }, h("div", { id: "scroll", tabindex: 0, role: "region", "aria-label": "What was told" }, h("div", { id: "turns" })), h("div", { id: "composer" })),
    h("aside", { id: "inspect", "aria-label": "Inspector" }, h("div", { id: "tabs", role: "tablist", "aria-label": "Inspector" }), h("div", { id: "panel", role: "tabpanel", tabindex: 0 })),
    h("section", { id: "time", "aria-label": "Timeline" }),
    h("nav", { id: "bottom", "aria-label": "Parts of the page" }, [["rail", "Seats"], ["story", "Story"], ["inspect", "Memory"], ["time", "Time"]].map(([pane, label]) => h("button", { "data-to": pane, onclick: () => showPane(pane) }, label)))));
  showPane("story");
  header();
  tabs();
}

function showPane(pane) {
  $("table").dataset.pane = pane;
  for (const one of document.querySelectorAll("#bottom button")) one.setAttribute("aria-current", String(one.dataset.to === pane));
}

function tabs() {
  const names = Object.keys(TABS);
  const move = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) { app.set({ tab: names[(names.indexOf(app.tab) + by + names.length) % names.length] }); setTimeout(() => $(`tab-${app.tab}`)?.focus(), 0); }
  };
  if ($("tabs").dataset.tab === app.tab) return;
  $("tabs").dataset.tab = app.tab;
  put($("tabs"), names.map((name) => h("button", { role: "tab", id: `tab-${name}`, "aria-selected": String(app.tab === name), "aria-controls": "panel", tabindex: app.tab === name ? 0 : -1, onclick: () => app.set({ tab: name }), onkeydown: move }, TABS[name])));
  $("panel").setAttribute("aria-labelledby", `tab-${app.tab}`);
}

function renderRail(place) {
  const { play, scene } = app;
  const viewed = (id, label, sub, more) => h("li", {}, h("button", { class: "seat", "aria-pressed": String(app.seat === id), title: id ? `View as ${label}` : "View everything", onclick: () => app.set({ seat: id, at: null, older: [] }) }, dot(id || "all", id ? label : "Everything"), h("span", {}, h("strong", {}, label), h("span", { class: "muted small" }, sub))), more);
  const heroes = (play?.party || []).map((one) => viewed(one.id, one.name, [one.calling, one.condition].filter(Boolean).join(" · "), app.dm ? h("button", { class: `plays ${one.human ? "human" : ""}`, "aria-label": `${one.name} is played by ${one.human ? "a person" : "the AI"}: change`, title: one.human ? "Hand over to the AI" : "Take this seat over", disabled: play.running || Boolean(app.at), onclick: () => app.people(one.id, !one.human) }, one.human ? "you" : "AI") : null));
  const others = app.seats.filter((one) => one.id !== "dm" && !play?.party.some((hero) => hero.id === one.id));
  const controls = app.dm && play ? h("div", { class: "controls", role: "group", "aria-label": "Play" },
    h("button", { class: "button", disabled: play.running || Boolean(play.waiting) || Boolean(app.at), onclick: () => app.step() }, "Step"),
    h("button", { class: "button", disabled: Boolean(app.at), "aria-pressed": String(play.auto), onclick: () => app.auto(!play.auto) }, play.auto ? "Pause" : "Play"),
    h("button", { class: "button", id: "undo", disabled: play.running || play.round < 2 || Boolean(app.at), onclick: () => app.undo() }, "Undo")) : null;
  put(place,
    scene ? h("section", { class: "scene" }, h("p", { class: "muted small" }, [scene.act, scene.time].join(" · ")), h("h2", {}, scene.place_name), h("p", { class: "muted small" }, scene.weather), scene.goals.length ? h("p", { class: "goal" }, scene.goals[0].title) : null) : null,
    controls,
    h("h3", {}, "View as"),
    h("ul", { class: "seats" }, app.dm ? viewed("", "Everything", "the author's view") : null, heroes, app.dm ? viewed("dm", "DM", "hears everything") : null),
    others.length ? h("details", { class: "others" }, h("summary", {}, `${others.length} others`), h("ul", { class: "seats" }, others.map((one) => viewed(one.id, one.name, one.role || "")))) : null);
}

function renderTime(place) {
  const turns = app.all;
  const now = app.at ? turns.findIndex((turn) => turn.id === app.at) : turns.length - 1;
  const label = h("output", { class: "number" }, turns.length ? `turn ${turns[Math.max(0, now)]?.number ?? 0}${app.at ? "" : " · now"}` : "");
  const slider = h("input", { type: "range", id: "scrub", min: 0, max: Math.max(0, turns.length - 1), value: Math.max(0, now), disabled: turns.length < 2, "aria-label": "Point in the story", "aria-valuetext": label.value,
    oninput: () => { label.value = `turn ${turns[slider.value].number}`; }, onchange: () => app.travel(turns[slider.value].id) });
  const focused = document.activeElement?.id === "scrub";
  const ticks = h("div", { class: "ticks", "aria-hidden": "true" }, turns.map((turn, number) => h("span", { class: `tick ${turn.kind} ${number <= now ? "" : "after"}` })));
  const branches = app.dm && app.branches.length ? h("div", { class: "branches", role: "group", "aria-label": "Branches" }, app.branches.map((one) => h("button", { class: "branch", "aria-pressed": String(one.name === app.branch), title: one.parent ? `from ${one.parent} after ${one.forked_at}` : "the first line", onclick: () => listen({ branch: one.name, at: null }) }, one.name))) : null;
  put(place, h("div", { class: "scrubber" }, ticks, slider), label, branches, app.at && app.dm ? h("button", { class: "button primary", id: "fork", onclick: () => app.fork() }, "Continue from here") : null, app.at ? h("button", { class: "button quiet", onclick: () => app.travel(null) }, "Now") : null);
  if (focused) slider.focus();
}

// -- the top --------------------------------------------------------------------------------------------------------------

const THEMES = { "": "auto", light: "light", dark: "dark" };

function header() {
  const theme = h("button", { class: "button quiet", "aria-label": "Light or dark", onclick: () => { const names = Object.keys(THEMES); paint(names[(names.indexOf(document.documentElement.dataset.theme || "") + 1) % 3]); theme.textContent = THEMES[document.documentElement.dataset.theme || ""]; } }, THEMES[document.documentElement.dataset.theme || ""]);
  put($("top"), h("a", { class: "brand", href: "#", onclick: (event) => { event.preventDefault(); location.hash = ""; } }, "Talekeeper"),
    app.story ? h("span", { class: "muted title" }, [app.play?.title, app.story.split(".").pop()].filter(Boolean).join(" · ")) : null, h("span", { class: "grow" }),
    h("span", { id: "line", class: "muted small", role: "status" }),
    app.story && app.dm ? h("button", { class: "button quiet wide", onclick: () => download(`${app.path}/export`, `${app.story}.jsonl`) }, "Export") : null,
    theme, h("button", { class: "button quiet", "aria-label": "Keyboard shortcuts", onclick: shortcuts }, "?"));
}

function paint(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("talekeeper.theme", theme);
}

const KEYS = [["n", "next round", () => app.dm && app.step()], ["p", "play on, or pause", () => app.dm && app.auto(!app.play?.auto)], ["u", "undo the last round", () => app.dm && app.undo()], ["a", "answer", () => $("answer")?.focus()],
  ["w", "whisper", () => app.set({ mode: "whisper" }).then(() => $("whisper")?.focus())], ["t", "timeline", () => $("scrub")?.focus()], ["0", "view everything", () => app.dm && app.set({ seat: "" })], ["1–9", "view as that seat", null], ["?", "this list", () => shortcuts()]];

function shortcuts() {
  const box = h("dialog", { class: "dialog", "aria-label": "Keyboard shortcuts" }, h("h2", {}, "Keyboard"), h("dl", { class: "keys" }, KEYS.map(([key, words]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, words)])), h("button", { class: "button primary", onclick: () => box.close() }, "Close"));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

document.addEventListener("keydown", (event) => {
  if (!app.story || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  const number = Number(event.key);
  const key = KEYS.find(([name]) => name === event.key);
  if (key?.[2]) { event.preventDefault(); key[2](); }
  else if (number > 0 && app.play?.party[number - 1] && app.dm) app.set({ seat: app.play.party[number - 1].id });
});

// -- coming and going -----------------------------------------------------------------------------------------------------

let line = null;

function listen(change) {
  line?.abort();
  line = new AbortController();
  Object.assign(app, { older: [], fresh: true });
  const done = app.set(change);
  follow(`${app.path}/events`, { ...app.where }, hear, line.signal);
  return done;
}

function hear(event, data) {
  if ($("line")) $("line").textContent = event === "lost" ? "reconnecting…" : "";
  if (event === "line" && app.play && !app.at) return spoken(data);
  if (event === "deleted") { location.hash = ""; return undefined; }
  return refresh();
}

// What is being said, between two looks at the whole. The line itself comes with every look.
function spoken(data) {
  if (app.seat) return refresh();
  app.play.lines[data.line] = data;
  app.play.running = true;
  app.play.lines = [...app.play.lines].filter(Boolean);
  if ($("turns")) renderTurns(app, $("turns"));
  const column = $("scroll");
  if (column && column.scrollHeight - column.scrollTop - column.clientHeight < 400) column.scrollTop = column.scrollHeight;
  return undefined;
}

function problem(error) {
  if (error.status === 401) return login();
  if (error.status === 404 && app.story) { toast("There is no such story here.", "bad"); location.hash = ""; return undefined; }
  return toast(error.message, "bad");
}

function login() {
  const token = h("input", { type: "password", required: true, autocomplete: "off", id: "token", placeholder: "tk_…" });
  put($("main"), h("form", { class: "login", onsubmit: (event) => { event.preventDefault(); keepToken(token.value.trim()); start(); } }, h("h1", {}, "Talekeeper"), h("label", { for: "token" }, "This table asks for a token."), token, h("button", { class: "button primary" }, "Sit down")));
  token.focus();
}

async function start() {
  const asked = new URLSearchParams(location.hash.slice(1));
  try {
    app.me ??= await get("/me");
    app.dm = app.me.dm;
    app.story = asked.get("story");
    if (!app.story) { line?.abort(); header(); document.title = "Talekeeper"; return await home(app, $("main")); }
    put($("main"), h("p", { class: "loading" }, "Opening the book…"));
    header();
    return await listen({ branch: asked.get("branch") || "main", seat: asked.get("seat") || (app.dm ? "" : app.me.seats[0]), at: asked.get("at"), tab: asked.get("tab") in TABS ? asked.get("tab") : "prompt", all: [], turns: [] });
  } catch (error) { return problem(error); }
}

paint(localStorage.getItem("talekeeper.theme") || "");
window.addEventListener("hashchange", start);
start();
