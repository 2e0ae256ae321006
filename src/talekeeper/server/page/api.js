// The public API, and nothing beside it.
const ROOT = "/api/v1";
const KEY = "talekeeper.token";

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail || `The server answered with ${status}.`);
    this.status = status;
    this.code = body?.type?.split(":").pop() || "";
  }
}

export const keepToken = (token) => sessionStorage.setItem(KEY, token);

function headers(more = {}) {
  const token = sessionStorage.getItem(KEY);
  return { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...more };
}

function address(path, params = {}) {
  const url = new URL(ROOT + path, location.origin);
  for (const [name, value] of Object.entries(params)) if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  return url;
}

export async function call(method, path, { params, body, raw } = {}) {
  const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const answer = await fetch(address(path, params), { method, body: sent, headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }) });
  const text = await answer.text();
  const found = text ? JSON.parse(text) : null;
  if (!answer.ok) throw new Problem(answer.status, found);
  return found;
}

export const get = (path, params) => call("GET", path, { params });
export const post = (path, body, params) => call("POST", path, { body: body ?? {}, params });

export async function download(path, name) {
  const answer = await fetch(address(path), { headers: headers() });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// What happens, as it happens. A broken line is taken up again where it broke.
export async function follow(path, params, hear, signal) {
  let last = null;
  while (!signal.aborted) {
    try {
      const answer = await fetch(address(path, params), { headers: headers(last ? { "Last-Event-ID": last } : {}), signal });
      if (!answer.ok) throw new Problem(answer.status, null);
      hear("open", {});
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const frames = (rest + value).split("\n\n");
        rest = frames.pop();
        for (const frame of frames) {
          const fields = {};
          for (const line of frame.split("\n")) {
            const cut = line.indexOf(": ");
            if (cut > 0) fields[line.slice(0, cut)] = line.slice(cut + 2);
          }
          if (fields.id) last = fields.id;
          if (fields.event) hear(fields.event, JSON.parse(fields.data));
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      hear("lost", {});
    }
    await new Promise((go) => setTimeout(go, 1000));
  }
}
