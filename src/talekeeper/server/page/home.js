// Before a story: begin one from a scenario, go on with one, bring one in.
import { get, post, upload } from "/page/api.js";
import { ask, dot, empty, filled, h, know, put, toast } from "/page/dom.js";

const FIRST = 8; // stories that are shown, and looked into to say how far they are
const SEVERAL = 50; // stories that come when more are asked for

export async function home(app, place) {
  const [{ scenarios }, { stories }] = await Promise.all([app.dm ? get("/scenarios") : { scenarios: [] }, get("/stories", { limit: FIRST })]);
  if (app.story) return;
  put(place, h("div", { class: "home-scroll", tabindex: -1 }, h("div", { class: "home" },
    h("section", { class: "hero" }, h("img", { src: "/page/mark.svg", alt: "", width: 64, height: 64 }), h("h1", {}, "Talekeeper"), h("p", {}, "Tell long stories together. Everyone remembers what they heard, and nothing else.")),
    stories.length ? resume(app, stories) : null,
    app.dm ? h("section", { "aria-labelledby": "begin" }, h("h2", { id: "begin" }, "Begin a story"), scenarios.map((one) => scenario(app, one, stories))) : null,
    stories.length ? null : h("section", {}, empty("No stories yet", app.dm ? "What you begin will wait for you here." : "When the DM has begun a story with a seat for you, it will stand here.")),
    app.dm ? bringing(app) : null)));
}

// -- going on -----------------------------------------------------------------------------------------------------------------

function resume(app, stories) {
  const list = h("ul", { class: "stories" }, stories.map((one, number) => row(app, one, number < FIRST)));
  const more = h("button", { class: "button quiet", onclick: async () => {
    const page = await get("/stories", { limit: SEVERAL, after: stories.at(-1).id }).catch((error) => { toast(error.message, "bad"); return { stories: [] }; });
    stories.push(...page.stories);
    list.append(...page.stories.map((one) => row(app, one, false)));
    more.hidden = page.stories.length < SEVERAL;
  } }, "More stories");
  more.hidden = stories.length < FIRST;
  return h("section", { "aria-labelledby": "resume" }, h("h2", { id: "resume" }, "Go on with one"), list, more);
}

function row(app, one, look) {
  const told = h("span", { class: "muted small" }, one.user === "local" ? "" : one.user);
  const faces = h("span", { class: "faces", "aria-hidden": "true" });
  const inside = (seat) => Promise.all([get(`/stories/${one.id}/timeline`, { seat, points: 2 }), get(`/stories/${one.id}/seats`, { seat: app.dm ? "" : seat })]);
  if (look) app.ownView(one.id).then(inside).then(([line, seats]) => {
    const last = line.points.at(-1)?.number; // the number that its newest turn bears on the timeline, in the view that opens
    told.textContent = [one.user === "local" ? "" : one.user, last ? `turn ${last.toLocaleString("en")}` : "not begun"].filter(Boolean).join(" · ");
    const heroes = seats.filter((seat) => seat.role === "pc");
    know(heroes.map((seat) => seat.id));
    put(faces, heroes.slice(0, 5).map((seat) => dot(seat.id, seat.name, "small")));
  }).catch(() => {}); // it can be opened all the same
  return h("li", {}, h("button", { class: "row", "data-story": one.id, onclick: () => app.resume(one.id) }, h("strong", {}, one.name), told, faces));
}

function bringing(app) {
  const file = h("input", { type: "file", accept: ".jsonl,application/x-ndjson", class: "sr", id: "import", onchange: () => { bring(app, file.files[0]).finally(() => { file.value = ""; }); } });
  return h("section", { class: "bringing" }, file, h("label", { for: "import", class: "button" }, "Import a story…"), h("span", { class: "muted small" }, "a file that was exported here or with “talekeeper export”"));
}

// A story comes with its name; where that is taken, it gets another.
async function bring(app, file, story = null) {
  if (!file) return;
  try {
    await app.resume((await upload("/import", file, { story })).id);
  } catch (error) {
    if (error.code !== "story-exists") { toast(`This cannot be imported. ${error.message}`, "bad"); return; }
    const name = await ask({ title: "There is a story of that name already", words: "Both can stay: give the one that you import another name.", field: "Name", value: file.name.replace(/(\.jsonl)?$/, "").split(".").pop() + "-2", verb: "Import" });
    if (name) await bring(app, file, `local.${[...name].map((letter) => (/[A-Za-z0-9_-]/.test(letter) ? letter : spelt(letter))).join("")}`);
  }
}

const spelt = (letter) => [...new TextEncoder().encode(letter)].map((byte) => `~${byte.toString(16).padStart(2, "0")}`).join("");

// -- beginning ----------------------------------------------------------------------------------------------------------------

function scenario(app, one, stories) {
  const taken = new Set(stories.map((story) => story.name));
  let name = one.id;
  for (let number = 2; taken.has(name); number++) name = `${one.id}-${number}`;
  const title = filled(h("input", { name: "name", value: name, required: true, maxlength: 80, autocomplete: "off" }), "Give the story a name: a word or two, by which you find it again.");
  const seed = h("input", { name: "seed", type: "number", min: 0, max: 99999, value: Math.floor(Math.random() * 1000), title: "The same seed and the same answers give the same game" });
  know(one.heroes.map((hero) => hero.id));
  const heroes = one.heroes.map((hero, number) => {
    const plays = h("select", { name: hero.id, "aria-label": `Who plays ${hero.name}` }, h("option", { value: "human" }, "you"), h("option", { value: "ai" }, "AI"), h("option", { value: "" }, "not there"));
    plays.value = number === 0 ? "human" : number < 3 ? "ai" : "";
    return { hero, plays, face: dot(hero.id, hero.name) };
  });
  const begin = async (event) => {
    event.preventDefault();
    const party = heroes.filter(({ plays }) => plays.value);
    if (!party.length) { toast("Someone has to go: choose who plays.", "bad"); return; }
    event.submitter.disabled = true;
    const body = { name: title.value.trim(), scenario: one.id, party: party.map(({ hero }) => hero.id), humans: party.filter(({ plays }) => plays.value === "human").map(({ hero }) => hero.id), seed: Number(seed.value) };
    try {
      const made = await post("/games", body);
      await post(`/stories/${made.id}/step`);
      app.open(made.id, body.humans[0]);
    } catch (error) {
      toast(error.message, "bad");
      event.submitter.disabled = false;
    }
  };
  return h("details", { class: "scenario", name: "scenario", "data-scenario": one.id },
    h("summary", {}, h("h3", {}, one.title), h("p", { class: "tagline" }, one.tagline), h("p", { class: "muted small" }, one.mood)),
    h("form", { onsubmit: begin }, one.premise.map((part) => h("p", { class: "prose" }, part)), h("h4", { class: "label" }, "Who goes"),
      h("ul", { class: "heroes" }, heroes.map(({ hero, plays, face }) => h("li", {}, face, h("div", {}, h("strong", {}, hero.name), h("span", { class: "muted small" }, hero.calling)), plays))),
      h("div", { class: "fields" }, h("label", { class: "stack" }, "Name", title), h("label", { class: "stack seed" }, "Seed", seed), h("button", { class: "button primary large" }, "Begin"))));
}
