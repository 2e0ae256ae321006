// The left: where the party is, who sits at the table and who plays them, and through whose eyes one looks.
import { ask, count, dot, h, redraw, sign } from "/page/dom.js";

const ROLES = { pc: "a player", npc: "of the story" };

export function drawSeats(app, place) {
  const { play, scene } = app;
  const state = JSON.stringify([app.awaited, app.seat, app.at, app.dm, app.story, play && { ...play, lines: play.lines.map((line) => line.ended || line.seat) }, scene && [scene.place, scene.act, scene.time, scene.weather, scene.goals], app.seats]);
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  const party = new Set(app.party.map((one) => one.id));
  const others = app.seats.filter((one) => one.id !== "dm" && !party.has(one.id));
  const heroes = play ? app.party.map((one) => hero(app, one)) : others.map((one) => seat(app, one.id, one.name, ROLES[one.role] ?? ""));
  const mine = (id) => app.dm || app.me.seats.includes(id);
  redraw(place, scene ? sceneOf(scene) : null, app.dm && play ? controls(app) : null,
    h("h2", { class: "label" }, app.dm ? "View as" : "At the table"),
    h("ul", { class: "seats" }, app.dm ? seat(app, "", "Everything", "with every secret") : null, heroes, app.dm && app.seats.some((one) => one.id === "dm") ? seat(app, "dm", "DM", "hears everything") : null),
    play && others.length ? h("details", { class: "others", "data-key": "others" }, h("summary", {}, count(others.length, "other")), h("ul", { class: "seats" }, others.filter((one) => mine(one.id)).map((one) => seat(app, one.id, one.name, ROLES[one.role] ?? "")))) : null);
}

const sceneOf = (scene) => h("section", { class: "scene", "aria-label": "Where they are" },
  h("p", { class: "muted small" }, [scene.act, scene.time].filter(Boolean).join(" · ")), h("h2", {}, scene.place_name),
  h("p", { class: "muted small" }, [scene.weather, scene.danger === "safe" ? "" : scene.danger].filter(Boolean).join(" · ")),
  scene.goals.length ? h("p", { class: "goal" }, scene.goals[0].title) : null);

function controls(app) {
  const { play } = app;
  const past = Boolean(app.at);
  const end = async () => { if (await ask({ title: "Bring it to an end?", words: "The epilogue is told, wherever the story is. You can undo it.", verb: "Tell the end", stay: "Play on" })) app.finish(); };
  const button = (name, label, more) => h("button", { class: "button", "data-key": name, ...more }, sign(name), h("span", {}, label));
  return h("div", { class: "controls", role: "group", "aria-label": "Play" },
    button("step", "Step", { id: "step-once", title: "Play one round (n)", disabled: play.running || Boolean(app.awaited) || past, onclick: () => app.step() }),
    button(play.auto ? "pause" : "play", play.auto ? "Pause" : "Play", { id: "auto", title: "Let the AI seats play on, or pause (p)", disabled: past, "aria-pressed": String(play.auto), onclick: () => app.auto(!play.auto) }),
    button("undo", "Undo", { id: "undo", title: "Take the last round back (u)", disabled: play.running || play.round < 2 || past, onclick: () => app.undo() }),
    button("flag", "End", { id: "finish", title: "Bring the story to its end", disabled: play.running || Boolean(app.awaited) || Boolean(play.ending) || play.told || past, onclick: end }));
}

function seat(app, id, label, sub, more = null, now = "") {
  const seen = app.dm || app.me.seats.includes(id);
  const body = [id ? dot(id, label) : h("span", { class: "dot all", "aria-hidden": "true" }, sign("eye")), h("span", { class: "who-is" }, h("strong", {}, label), h("span", { class: "muted small" }, now || sub))];
  return h("li", { class: now ? "busy" : "" }, seen
    ? h("button", { class: "seat", "data-key": `seat-${id}`, "data-seat": id, "aria-pressed": String(app.seat === id), title: id ? `View as ${label}` : "View everything", onclick: () => app.as(id) }, body)
    : h("span", { class: "seat" }, body), more);
}

function hero(app, one) {
  const { play } = app;
  const speaking = play.running && play.lines.some((line) => line.seat === one.id && !line.ended);
  const now = app.awaited === one.id && !play.running ? "waiting for you" : speaking ? "speaking…" : "";
  const change = app.dm ? h("button", { class: `plays ${one.human ? "human" : ""}`, "data-key": `plays-${one.id}`, "aria-label": `${one.name} is played by ${one.human ? "a person" : "the AI"}: change`, title: one.human ? "Hand over to the AI" : "Take this seat over", disabled: play.running || Boolean(app.at), onclick: () => app.people(one.id, !one.human) }, one.human ? "you" : "AI")
    : h("span", { class: `plays ${one.human ? "human" : ""}` }, one.human ? (app.me.seats.includes(one.id) ? "you" : "person") : "AI");
  const condition = app.at ? app.scene?.here.find((other) => other.id === one.id)?.condition : one.condition;
  return seat(app, one.id, one.name, [one.calling, condition].filter(Boolean).join(" · "), change, now);
}
