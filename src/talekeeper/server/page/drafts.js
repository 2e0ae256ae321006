// What is being written. It is kept as long as the tab, so that neither another view nor a reload takes it away.
const KEY = "talekeeper.drafts";

let all = {};
try { all = JSON.parse(sessionStorage.getItem(KEY)) ?? {}; } catch { /* what cannot be read is no draft */ }

export const draftOf = (app, name) => all[`${app.story} ${name}`];

// Nothing in place of a draft drops it.
export function keepDraft(app, name, value = null) {
  if (value === null) delete all[`${app.story} ${name}`];
  else all[`${app.story} ${name}`] = value;
  sessionStorage.setItem(KEY, JSON.stringify(all));
}

export function dropDrafts() {
  all = {};
  sessionStorage.removeItem(KEY);
}
