// Before a story: begin one from a scenario, go on with one, bring one in.
import { call, get, post } from "/page/api.js";
import { dot, empty, h, put, toast } from "/page/dom.js";

export async function home(app, place) {
  put(place, h("p", { class: "loading" }, "Looking for stories…"));
  const [{ scenarios }, { stories }] = await Promise.all([get("/scenarios"), get("/stories")]);
  put(place, h("div", { class: "home" },
    h("section", { class: "hero" }, h("h1", {}, "Talekeeper"), h("p", {}, "Tell long stories together. Everyone remembers what they heard, and nothing else.")),
    h("section", { "aria-label": "Begin" }, h("h2", {}, "Begin a story"), scenarios.map((one) => scenario(app, one, stories))),
    h("section", { "aria-label": "Resume" }, h("h2", {}, "Go on with one"), resume(app, stories)),
  ));
}

function resume(app, stories) {
  const file = h("input", { type: "file", accept: ".jsonl,application/x-ndjson", class: "sr", id: "import", onchange: () => bring(app, file) });
  return [
    stories.length
      ? h("ul", { class: "stories" }, stories.map((one) => h("li", {}, h("button", { class: "row", onclick: () => app.open(one.id) }, h("strong", {}, one.name), h("span", { class: "muted" }, one.user)))))
      : empty("No stories yet", "What you begin will wait for you here."),
    h("p", {}, file, h("label", { for: "import", class: "button quiet" }, "Import a story…")),
  ];
}

async function bring(app, file) {
  try {
    app.open((await call("POST", "/import", { raw: file.files[0] })).id);
  } catch (error) {
    toast(error.message, "bad");
  }
}

function scenario(app, one, stories) {
  const taken = new Set(stories.map((story) => story.name));
  let name = one.id;
  for (let number = 2; taken.has(name); number++) name = `${one.id}-${number}`;
  const title = h("input", { name: "name", value: name, required: true, maxlength: 80, autocomplete: "off" });
  const seed = h("input", { name: "seed", type: "number", min: 0, max: 99999, value: Math.floor(Math.random() * 1000) });
  const heroes = one.heroes.map((hero, number) => {
    const plays = h("select", { "aria-label": `Who plays ${hero.name}` }, h("option", { value: "human" }, "you"), h("option", { value: "ai" }, "AI"), h("option", { value: "" }, "not there"));
    plays.value = number === 0 ? "human" : number < 3 ? "ai" : "";
    return { hero, plays };
  });
  const begin = async (event) => {
    event.preventDefault();
    event.submitter.disabled = true;
    const party = heroes.filter(({ plays }) => plays.value);
    const body = { name: title.value, scenario: one.id, party: party.map(({ hero }) => hero.id), humans: party.filter(({ plays }) => plays.value === "human").map(({ hero }) => hero.id), seed: Number(seed.value) };
    try {
      const made = await post("/games", body);
      await post(`/stories/${made.id}/step`);
      app.open(made.id);
    } catch (error) {
      toast(error.message, "bad");
      event.submitter.disabled = false;
    }
  };
  return h("details", { class: "scenario", name: "scenario" },
    h("summary", {}, h("h3", {}, one.title), h("p", { class: "tagline" }, one.tagline)),
    h("form", { onsubmit: begin }, h("p", { class: "prose" }, one.premise[0]),
    h("ul", { class: "heroes" }, heroes.map(({ hero, plays }) => h("li", {}, dot(hero.id, hero.name), h("div", {}, h("strong", {}, hero.name), h("span", { class: "muted" }, hero.calling)), plays))),
    h("div", { class: "fields" }, h("label", {}, "Name", title), h("label", {}, "Seed", seed), h("button", { class: "button primary" }, "Begin"))),
  );
}
