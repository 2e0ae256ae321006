// The top: where one is, how the line stands, light or dark. And the door, where a token is asked for.
import { download, hasToken, keepToken, tryNow } from "/page/api.js";
import { $, arrange, h, put, sign } from "/page/dom.js";
import { dropDrafts } from "/page/drafts.js";
import { shortcuts } from "/page/keys.js";

const THEMES = ["", "light", "dark"];
const THEME = "talekeeper.theme";
const titles = { "": "Light or dark: as the system", light: "Light", dark: "Dark" };

export function theme(next = localStorage.getItem(THEME) || "") {
  document.documentElement.dataset.theme = next;
  localStorage.setItem(THEME, next);
}

const themeNow = () => document.documentElement.dataset.theme || "";

export function drawTop(app) {
  const state = JSON.stringify([app.story, app.play?.title, app.dm, app.me?.name]);
  document.title = app.story ? `${app.play?.title || storyName(app)} · Talekeeper` : "Talekeeper";
  if ($("top").dataset.state === state) return;
  $("top").dataset.state = state;
  const change = () => {
    theme(THEMES[(THEMES.indexOf(themeNow()) + 1) % 3]);
    painted.title = titles[themeNow()];
    painted.setAttribute("aria-label", titles[themeNow()]);
  };
  const painted = h("button", { class: "button quiet icon", id: "theme", title: titles[themeNow()], "aria-label": titles[themeNow()], onclick: change }, sign("theme"));
  put($("top"), h("a", { class: "brand", href: "#", "aria-label": "Talekeeper: all stories", onclick: (event) => { event.preventDefault(); app.leave(); } }, h("img", { src: "/page/mark.svg", alt: "", width: 24, height: 24 }), h("span", {}, "Talekeeper")),
    app.story ? h("h1", { class: "title" }, app.play ? h("strong", {}, app.play.title) : null, h("span", { class: "muted" }, storyName(app))) : null,
    h("span", { class: "grow" }), h("span", { id: "line", class: "muted small", role: "status" }),
    app.story && app.dm ? h("button", { class: "button quiet", id: "export", title: "Export the story", "aria-label": "Export the story", onclick: () => app.do(() => download(`${app.path}/export`, `${app.story}.jsonl`)) }, sign("save"), h("span", { class: "wide" }, "Export")) : null,
    app.me && hasToken() ? h("button", { class: "button quiet", id: "leave", title: `Leave (signed in as ${app.me.name})`, "aria-label": "Leave", onclick: () => { keepToken(""); dropDrafts(); location.reload(); } }, sign("leave"), h("span", { class: "wide" }, "Leave")) : null,
    painted, app.story ? h("button", { class: "button quiet icon", id: "keys", title: "Keyboard shortcuts (?)", "aria-label": "Keyboard shortcuts", onclick: shortcuts }, "?") : null);
}

// How the story is called, from its id; an address may hold anything.
function storyName(app) {
  const name = (app.story || "").split(".").pop();
  try { return decodeURIComponent(name.replaceAll("~", "%")); } catch { return name; }
}

let was = "open";

// How the line stands.
export function lineState(now) {
  if (now === "lost" && was !== "lost") {
    put($("banner"), h("div", { class: "banner" }, h("p", {}, h("strong", {}, "The server does not answer. "), "Nothing is lost: this page takes up the line again by itself, and what you write stays where it is."), h("button", { class: "button", onclick: tryNow }, "Try now")));
  }
  if (now === "open") arrange($("banner"));
  was = now;
}

export function login(error, again) {
  const refused = hasToken();
  keepToken("");
  const token = h("input", { type: "password", required: true, autocomplete: "current-password", id: "token", placeholder: "tk_…", "aria-describedby": "token-help" });
  const sit = (event) => { event.preventDefault(); keepToken(token.value.trim()); again(); };
  arrange($("banner"));
  put($("main"), h("div", { class: "door" }, h("form", { class: "login", onsubmit: sit }, h("img", { src: "/page/mark.svg", alt: "", width: 56, height: 56 }), h("h1", {}, "Talekeeper"),
    refused ? h("p", { class: "failed", role: "alert" }, error.message) : h("p", { class: "muted" }, "This table is not open to everyone."),
    h("label", { class: "stack", for: "token" }, "Your token", token), h("p", { class: "muted small", id: "token-help" }, "It says which stories and which seat are yours, and stays in this tab until you close it."), h("button", { class: "button primary" }, "Sit down"))));
  token.focus();
}
