// Elements from values. Text goes in as text: nothing here reads markup.
const PROPERTIES = new Set(["value", "checked", "disabled", "open", "selected", "hidden"]);

export function h(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name === "style") for (const [key, one] of Object.entries(value)) made.style.setProperty(key, one);
    else if (PROPERTIES.has(name)) made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...flat(children));
  return made;
}

export function svg(tag, props = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) if (value !== null && value !== undefined) made.setAttribute(name, value);
  made.append(...flat(children));
  return made;
}

const flat = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

export const $ = (id) => document.getElementById(id);
export const put = (place, ...children) => place.replaceChildren(...flat(children));
export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
// A place by its name; where it has none, by its id.
export function placeName({ location, place_name }) {
  const words = place_name || location.replaceAll(/[_-]+/g, " ");
  return words[0].toUpperCase() + words.slice(1);
}
export const clip = (text, length) => (text.length > length ? `${text.slice(0, length - 1).trimEnd()}…` : text);

// Makes `nodes` the children of a place, and touches only what differs: what has the focus keeps it.
export function arrange(place, ...nodes) {
  const wanted = flat(nodes);
  const staying = new Set(wanted);
  for (const child of [...place.childNodes]) if (!staying.has(child)) child.remove();
  wanted.forEach((node, at) => { if (place.childNodes[at] !== node) place.insertBefore(node, place.childNodes[at] ?? null); });
}

// Draws a place anew and keeps what the reader did to it: where they are, what they opened, what has the focus.
export function redraw(place, ...children) {
  const opened = new Map([...place.querySelectorAll("details[data-key]")].map((one) => [one.dataset.key, one.open]));
  const focus = place.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const top = place.scrollTop;
  put(place, ...children);
  for (const one of place.querySelectorAll("details[data-key]")) if (opened.has(one.dataset.key)) one.open = opened.get(one.dataset.key);
  if (focus) place.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
  place.scrollTop = top;
}

export const empty = (title, words) => h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), h("p", {}, words));

// -- who is who -------------------------------------------------------------------------------------------------------------

// Those of the party are told apart by colour; everyone else is quieter, and the same for the same name.
const HUES = [12, 205, 140, 275, 42, 330, 175, 95];
let party = [];
export const know = (ids) => { party = ids; };
export const known = () => party.join(" ");
export const rank = (id) => party.indexOf(id) + 1 || party.length + 1;

function colours(id) {
  const place = party.indexOf(id);
  if (place >= 0) return { "--hue": HUES[place % HUES.length], "--chroma": "46%" };
  let sum = 7;
  for (const letter of id) sum = (sum * 31 + letter.codePointAt(0)) % 360;
  return { "--hue": sum, "--chroma": id === "dm" || !id ? "6%" : "16%" };
}

export const dot = (id, label, more = "") => h("span", { class: `dot ${more}`, style: colours(id), "aria-hidden": "true" }, initials(label));
export const pip = (id) => h("span", { class: "pip", style: colours(id), "aria-hidden": "true" });

function initials(label) {
  if (label.length < 3) return label.toUpperCase();
  const capitals = label.split(/\s+/).filter((word) => /^\p{Lu}/u.test(word)).map((word) => [...word][0]);
  return capitals.slice(0, 2).join("") || [...label].slice(0, 2).join("");
}

// -- signs ------------------------------------------------------------------------------------------------------------------

const SIGNS = {
  step: "M5 4v12l8-6zM15 4v12", play: "M6 4v12l10-6z", pause: "M6 4v12M14 4v12", undo: "M8 5 4 9l4 4M4 9h8a4 4 0 0 1 0 8H9",
  pin: "M8 3h4l1 6 2 2H5l2-2zM10 11v6", look: "M10 5v5l3 2M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14", forget: "M5 6h10M8 6V4h4v2M6 6l1 11h6l1-11",
  leave: "M12 4H5v12h7M9 10h8M14 7l3 3-3 3", edit: "M4 16l1-4 8-8 3 3-8 8z", history: "M4 10a6 6 0 1 0 2-4.5M4 4v3h3M10 7v3l2 2", close: "M5 5l10 10M15 5 5 15", eye: "M2 10s3-5 8-5 8 5 8 5-3 5-8 5-8-5-8-5zM10 8a2 2 0 1 0 0 4 2 2 0 0 0 0-4",
  prev: "M12 4l-6 6 6 6", next: "M8 4l6 6-6 6", theme: "M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14", save: "M10 3v9M6 9l4 4 4-4M4 16h12", flag: "M5 17V4h9l-2 3 2 3H5",
};

export const sign = (name) => svg("svg", { class: "sign", viewBox: "0 0 20 20", "aria-hidden": "true" }, svg("path", { d: SIGNS[name] }));

// -- asking and telling -----------------------------------------------------------------------------------------------------

let numbered = 0;

// Asks in a dialog; answers with what was written (true where nothing is asked for), or null.
export function ask({ title, words, quote, verb, field, value = "", bad = false, stay = "Cancel" }) {
  return new Promise((answer) => {
    const named = `dialog-${++numbered}`;
    const input = field ? filled(h("input", { value, required: true, maxlength: 120, autocomplete: "off" }), `${field}: write a word or two.`) : null;
    const close = (found) => { answer(found); box.close(); };
    const box = h("dialog", { class: "dialog", "aria-labelledby": named },
      h("form", { onsubmit: (event) => { event.preventDefault(); close(input ? input.value.trim() : true); } },
        h("h2", { id: named }, title), words ? h("p", {}, words) : null, quote ? h("blockquote", {}, quote) : null, input ? h("label", { class: "stack" }, field, input) : null,
        h("div", { class: "buttons end" }, h("button", { type: "button", class: "button quiet", onclick: () => close(null) }, stay),
          h("button", { class: `button ${bad ? "bad" : "primary"}` }, verb))));
    box.addEventListener("close", () => { answer(null); box.remove(); });
    document.body.append(box);
    box.showModal();
    input?.select();
  });
}

// A field that says what it wants where it is empty, or as good as empty.
export function filled(input, words) {
  const look = () => input.setCustomValidity(input.value.trim() ? "" : words);
  input.addEventListener("input", look);
  look();
  return input;
}

export const quiet = () => put($("toasts"));

export function toast(words, kind = "") {
  if ([...$("toasts").children].some((one) => one.firstChild.textContent === words)) return;
  const made = h("div", { class: `toast ${kind}` }, h("span", {}, words), h("button", { class: "tool", "aria-label": "Dismiss", onclick: () => made.remove() }, sign("close")));
  $("toasts").append(made);
  while ($("toasts").children.length > 3) $("toasts").firstChild.remove();
  setTimeout(() => made.remove(), kind === "bad" ? 12000 : 5000);
}
