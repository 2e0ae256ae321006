// Elements from values. Text goes in as text: nothing here reads markup.
export function h(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name === "value" || name === "checked" || name === "disabled" || name === "open" || name === "selected") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const put = (place, ...children) => place.replaceChildren(...children.flat(Infinity).filter(Boolean));

export const empty = (title, words) => h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), h("p", {}, words));

// A few muted hues, the same for the same name.
export function hue(name) {
  let sum = 7;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)) % 360;
  return sum;
}

export function dot(id, label, more = "") {
  const made = h("span", { class: `dot ${more}`, title: label, "aria-hidden": "true" }, initials(label));
  made.style.setProperty("--hue", hue(id));
  return made;
}

const initials = (label) => (id(label) === "DM" ? "DM" : label.split(/\s+/).filter((word) => /^\p{Lu}/u.test(word)).map((word) => word[0]).slice(0, 2).join("") || label.slice(0, 2));
const id = (label) => label.toUpperCase();

export function toast(words, kind = "") {
  const made = h("div", { class: `toast ${kind}` }, words);
  document.getElementById("toasts").append(made);
  setTimeout(() => made.remove(), 5000);
}
