// The centre: what was told and what is being told. A window on the story moves with the reader.
import { $, arrange, ask, clip, count, dot, empty, h, known, pip, placeName, put, rank, sign } from "/page/dom.js";

const NEAR = 140; // pixels from the end within which the page goes along with the story
const EDGE = 600; // pixels from an edge at which more is asked for
const SHOWN = 7;

const articles = new Map();
let called = ""; // how everyone was called when they were made
let watched = null;

const below = (column) => column.scrollHeight - column.scrollTop - column.clientHeight; // pixels of it that are out of sight

export function drawTurns(app) {
  const column = $("scroll");
  const key = `${app.story} ${app.branch} ${app.seat} ${app.at}`;
  const fresh = column.dataset.place !== key;
  const low = fresh || (below(column) < NEAR && !app.after);
  const anchor = low ? null : firstInSight(column);
  const people = JSON.stringify([app.dm, known(), app.party.map((one) => one.name), app.seats.map((one) => one.name)]);
  if (fresh || called !== people) articles.clear(); // every line says who heard it
  column.dataset.place = key;
  called = people;
  arrange($("turns"), more(app, "before"), rows(app, fresh), more(app, "after"), app.after || app.at ? [] : flight(app), nothing(app));
  if (low && !app.lit?.held) column.scrollTop = column.scrollHeight;
  else if (articles.has(anchor?.id)) column.scrollTop += articles.get(anchor.id).getBoundingClientRect().top - anchor.top;
  lightTurns(app);
  if (watched !== column) watch(app, column);
  announce(app, fresh);
}

// -- for those who listen -------------------------------------------------------------------------------------------------------

const KEPT = 30; // lines that stand there, for a screen reader to come round to
let newest = 0; // the number of the last turn that was there
const heard = new Set(); // lines in flight that were read out,
let again = []; // and their words, which come again as turns

// What comes after what was there, once, and whole: a line that is still growing waits for its end.
function announce(app, fresh) {
  if (fresh) { heard.clear(); again = []; put($("log")); }
  const silent = fresh || app.at || app.after;
  const say = (name, text) => { if (!silent) $("log").append(h("p", {}, name ? `${name}: ${text}` : text)); };
  for (const line of app.at ? [] : app.play?.lines ?? []) {
    if (!line.ended) break; // what comes after it is read out after it
    if (!line.text.trim() || heard.has(line.line)) continue;
    heard.add(line.line);
    again = [...again, line.text.trim()].slice(-KEPT);
    say(line.role === "pc" ? app.name(line.seat) : "", line.text);
  }
  for (const turn of app.turns.filter((one) => one.number > newest)) {
    const at = again.indexOf(turn.text.trim());
    if (at >= 0) again.splice(at, 1);
    else say(nameOf(app, turn), turn.text);
  }
  if (!app.after) newest = app.turns.at(-1)?.number ?? 0;
  while ($("log").children.length > KEPT) $("log").firstChild.remove();
}

// Going along with the story also when something else takes room, and asking for more where the window ends.
function watch(app, column) {
  watched = column;
  let low = true;
  column.addEventListener("scroll", () => { low = below(column) < NEAR; edge(app, column); }, { passive: true });
  new ResizeObserver(() => { if (low && !app.after && !app.lit?.held) column.scrollTop = column.scrollHeight; }).observe(column);
}

function firstInSight(column) {
  const top = column.getBoundingClientRect().top;
  const one = [...column.querySelectorAll("article[data-id]")].find((row) => row.getBoundingClientRect().bottom > top);
  return one ? { id: one.dataset.id, top: one.getBoundingClientRect().top } : null;
}

function edge(app, column) {
  if (app.before && column.scrollTop < EDGE) app.earlier();
  else if (app.after && below(column) < EDGE) app.later();
}

const more = (app, way) => (app[way] ? h("button", { class: "button quiet more", onclick: () => (way === "before" ? app.earlier() : app.later()) }, way === "before" ? "Earlier turns" : "Later turns") : null);

function nothing(app) {
  if (app.turns.length || (app.play?.lines.length && !app.at)) return null;
  if (app.at) return empty("Before the first line", app.seat ? `${app.name(app.seat)} had heard nothing by then.` : "Nothing had been told by then.");
  if (app.seat) return empty(`${app.name(app.seat)} has heard nothing yet`, "What this seat hears from now on will stand here, and nothing else.");
  return empty("A blank page", app.game ? "Play a round, and the story begins." : "Write the first line below.");
}

function rows(app, fresh) {
  const had = articles.size;
  let before = null;
  const shown = app.turns.map((turn) => {
    const scene = sceneOf(turn, before);
    before = { location: turn.location ?? before?.location ?? null, when: turn.when ?? before?.when ?? null };
    const stamp = JSON.stringify([turn.text, turn.pinned, turn.revision, turn.number]);
    let made = articles.get(turn.id);
    if (made?.dataset.stamp !== stamp) {
      const isNew = !made && had && !fresh && turn.id === app.turns.at(-1).id;
      made = article(app, turn);
      made.dataset.stamp = stamp;
      if (isNew) made.classList.add("new");
      articles.set(turn.id, made);
    }
    if ((made.scene?.textContent ?? "") !== scene) made.scene = scene ? h("p", { class: "place" }, h("span", {}, scene)) : null;
    return [made.scene, made];
  });
  const here = new Set(app.turns.map((turn) => turn.id));
  for (const id of articles.keys()) if (!here.has(id)) articles.delete(id);
  return shown;
}

// Where and when, where that changes.
function sceneOf(turn, before) {
  const place = turn.location && turn.location !== before?.location ? placeName(turn) : "";
  const when = turn.when && turn.when !== before?.when ? turn.when : "";
  return [place, when].filter(Boolean).join(" · ");
}

const isTold = (turn) => turn.speaker === "dm" && (!turn.voice || turn.voice === "DM");
const nameOf = (app, turn) => (["said", "whisper", "thought"].includes(turn.kind) && !(isTold(turn) && turn.kind === "said") ? turn.voice || app.name(turn.speaker) : "");

function article(app, turn) {
  const told = isTold(turn);
  const name = nameOf(app, turn);
  const kind = told && turn.kind === "said" ? "told" : turn.kind;
  const heard = hearers(app, turn.audience);
  return h("article", { class: `turn ${kind} ${turn.pinned ? "pinned" : ""}`, style: { "--ears": heard?.children.length ?? 0 }, "data-id": turn.id, "data-kind": turn.kind, tabindex: -1, onclick: (event) => open(event) },
    name ? dot(turn.speaker || turn.voice, name, "face") : null,
    h("div", { class: "said-by" }, name ? h("span", { class: "who" }, name) : null, turn.kind === "whisper" ? h("span", { class: "tag whispered" }, "whispers") : turn.kind === "thought" ? h("span", { class: "tag" }, "thinks") : null,
      turn.revision ? h("span", { class: "tag" }, "edited") : null, turn.pinned ? h("span", { class: "tag pin" }, "pinned") : null),
    h("div", { class: "words" }, turn.text.split(/\n+/).map((part) => h("p", {}, part))),
    heard, h("div", { class: "foot" }, h("span", { class: "muted small" }, [`turn ${turn.number}`, heard?.title].filter(Boolean).join(" · ")), app.dm && !app.seat && !app.at ? tools(app, turn) : back(app, turn)));
}

// On a screen without a pointer a tap shows what a pointer would.
function open(event) {
  if (event.target.closest("button")) return;
  for (const one of document.querySelectorAll(".turn.open")) if (one !== event.currentTarget) one.classList.remove("open");
  if (!matchMedia("(hover: none)").matches) return;
  if (event.currentTarget.classList.toggle("open")) event.currentTarget.scrollIntoView({ block: "nearest" });
  else event.currentTarget.blur(); // what has the focus shows it, too
}

function hearers(app, audience) {
  if (!audience) return null;
  const others = audience.filter((one) => one !== "dm").sort((a, b) => rank(a) - rank(b));
  const label = others.length ? `heard by ${others.map((one) => app.name(one)).join(", ")}` : "for the DM alone";
  return h("span", { class: "hearers", role: "img", "aria-label": label, title: label }, others.slice(0, SHOWN).map(pip), others.length > SHOWN ? h("span", { class: "rest" }, `+${others.length - SHOWN}`) : null, others.length ? null : pip("dm"));
}

const tool = (label, name, words, act) => h("button", { class: "tool", title: label, "aria-label": `${label}: ${words}`, onclick: act }, sign(name), h("span", {}, label));
const back = (app, turn) => h("span", { class: "tools" }, tool("Look", "look", `go to turn ${turn.number}`, () => app.travel(turn.id)));

function tools(app, turn) {
  const which = `turn ${turn.number}`;
  return h("span", { class: "tools" }, tool(turn.pinned ? "Unpin" : "Pin", "pin", which, () => app.pin(turn.id, !turn.pinned)), tool("Look", "look", `go to ${which}`, () => app.travel(turn.id)), tool("Forget", "forget", which, () => forget(app, turn)));
}

export async function forget(app, turn) {
  const words = "It is removed for good, with every memory made from it, on all branches. There is no undo.";
  if (await ask({ title: "Forget this turn?", words, quote: clip(turn.text, 160), verb: "Forget", bad: true, stay: "Keep it" })) app.forget(turn.id);
}

// -- what is being said -------------------------------------------------------------------------------------------------------

const lines = new Map();

function flight(app) {
  const shown = (app.play?.lines ?? []).map((line) => {
    let made = lines.get(line.line);
    if (!made) lines.set(line.line, (made = inFlight(app, line)));
    const words = made.querySelector(".words");
    const parts = line.text.split(/\n+/);
    while (words.children.length > parts.length) words.lastChild.remove();
    parts.forEach((part, at) => { if (words.children[at]) { if (words.children[at].textContent !== part) words.children[at].textContent = part; } else words.append(h("p", {}, part)); });
    made.classList.toggle("speaking", !line.ended);
    return made;
  });
  const here = new Set((app.play?.lines ?? []).map((line) => line.line));
  for (const key of lines.keys()) if (!here.has(key)) lines.delete(key);
  return shown;
}

function inFlight(app, line) {
  const kind = line.role === "ruling" ? "event" : line.role === "pc" ? "said" : "told";
  const name = kind === "said" ? app.name(line.seat) : "";
  return h("article", { class: `turn flight ${kind}`, "data-line": line.line }, name ? dot(line.seat, name, "face") : null, h("div", { class: "said-by" }, name ? h("span", { class: "who" }, name) : null), h("div", { class: "words" }),
    app.dm && !app.seat ? h("span", { class: "hearers" }) : null); // their room, so that the lines do not break anew when it is known
}

// -- where a memory came from -------------------------------------------------------------------------------------------------

export function lightTurns(app, scroll = false) {
  const ids = app.lit?.ids ?? new Set();
  let first = null;
  for (const { id } of app.turns) {
    const one = articles.get(id);
    one?.classList.toggle("lit", ids.has(id));
    if (ids.has(id)) first ??= one;
  }
  const state = app.lit?.held ? [...ids].join() : "";
  if ($("lit").dataset.state !== state) put($("lit"), app.lit?.held ? h("div", { class: "lit-note" }, h("span", {}, h("strong", {}, `From ${count(ids.size, "turn")}`), app.lit.words ? `: “${clip(app.lit.words, 90)}”` : ""),
    h("button", { class: "tool narrow", onclick: () => app.show("inspect") }, "Back to the memory"), h("button", { class: "tool", "aria-label": "Stop showing where it came from", onclick: () => app.dim() }, sign("close"))) : null);
  $("lit").dataset.state = state;
  if (scroll && first) first.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}
