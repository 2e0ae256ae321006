// The public API, and nothing beside it.
const ROOT = "/api/v1";
const KEY = "talekeeper.token";
const PATIENCE = 40_000; // milliseconds for an answer, and of silence on a line on which the server speaks every 15 seconds
const TRIES = 4;

// What to do about an answer that is no help by itself.
const ADVICE = {
  0: "The server does not answer. What you wrote is still here: send it again when the line is back.",
  401: "The token was refused. Ask whoever runs this table for one that holds.",
  409: "What you see now is up to date: look at it, and send again if you still mean it.",
  412: "Someone else was faster, so nothing was done. What you see now is up to date: look at it, and try again if you still mean it.",
  413: "That is too long for this server. Shorten it, and send again.",
  429: "That was too much at once. Wait a moment, and send again.",
  500: "That should not have happened. Nothing was changed; try again, and look into the server's log if it stays.",
  502: "The server is not there just now. Try again in a moment.",
  503: "The server is busy or going down. Try again in a moment.",
  504: "It took too long. Look at the story before you send it again: it may have arrived.",
};

export class Problem extends Error {
  constructor(status, body = null, wait = 0) {
    const said = status === 401 || status === 412 ? "" : body?.detail || ""; // what the server says of headers is no help here
    super([said, said && status !== 409 ? "" : ADVICE[status] || (said ? "" : `The server answered with ${status}.`)].filter(Boolean).join(" "));
    this.status = status;
    this.code = body?.type?.split(":").pop() || "";
    this.needed = body?.needed;
    this.at = body?.errors?.[0]?.at ?? ""; // what of the request was not understood
    this.wait = wait;
  }
}

export const keepToken = (token) => (token ? sessionStorage.setItem(KEY, token) : sessionStorage.removeItem(KEY));
export const hasToken = () => Boolean(sessionStorage.getItem(KEY));

function headers(more = {}) {
  const token = sessionStorage.getItem(KEY);
  return { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...more };
}

function address(path, params = {}) {
  const url = new URL(ROOT + path, location.origin);
  for (const [name, value] of Object.entries(params)) {
    if (Array.isArray(value)) for (const one of value) url.searchParams.append(name, one);
    else if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  return url;
}

const rest = (time) => new Promise((go) => setTimeout(go, time));

async function problem(answer) {
  const body = await answer.json().catch(() => null);
  return new Problem(answer.status, body, Number(answer.headers.get("Retry-After")) || 0);
}

async function send(method, path, { params, body, sent, more } = {}) {
  try {
    return await fetch(address(path, params), { method, body: sent ?? (body === undefined ? undefined : JSON.stringify(body)), signal: AbortSignal.timeout(PATIENCE),
      headers: headers({ ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...more }) });
  } catch {
    throw new Problem(0);
  }
}

// Looking again does no harm, so that a server which asks for patience gets it. `answered` is told the headers of the answer.
export async function call(method, path, options = {}) {
  for (let turn = 1; ; turn++) {
    const answer = await send(method, path, options);
    if (answer.ok) { options.answered?.(answer.headers); return answer.status === 204 ? null : answer.json(); }
    const wrong = await problem(answer);
    if (method !== "GET" || turn === TRIES || (wrong.status !== 429 && wrong.status !== 503)) throw wrong;
    await rest(Math.min(5, wrong.wait || turn) * 1000);
  }
}

export const get = (path, params) => call("GET", path, { params });
export const post = (path, body, params, options) => call("POST", path, { ...options, body: body ?? {}, params });

// Tells something once: what got no answer keeps its name, and when it is sent again the server knows it.
const unanswered = new Map();
export async function once(path, body = {}, params = {}, options = {}) {
  const what = JSON.stringify([path, body, params]);
  const name = unanswered.get(what) ?? crypto.randomUUID();
  unanswered.set(what, name);
  try {
    const answer = await call("POST", path, { ...options, body, params, more: { ...options.more, "Idempotency-Key": name } });
    unanswered.delete(what);
    return answer;
  } catch (error) {
    if (error.status && error.status < 500) unanswered.delete(what);
    throw error;
  }
}
export const upload = (path, file, params) => call("POST", path, { sent: file, params });

export async function download(path, name) {
  const answer = await send("GET", path);
  if (!answer.ok) throw await problem(answer);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// -- what happens, as it happens --------------------------------------------------------------------------------------------

const hurry = new EventTarget();
export const tryNow = () => hurry.dispatchEvent(new Event("now"));
window.addEventListener("online", tryNow);

function pause(time, signal) {
  return new Promise((go) => {
    const end = () => { clearTimeout(timer); hurry.removeEventListener("now", end); signal.removeEventListener("abort", end); go(); };
    const timer = setTimeout(end, time);
    hurry.addEventListener("now", end);
    signal.addEventListener("abort", end);
  });
}

// What asking again does not mend.
const final = (error) => error.status >= 400 && error.status < 500 && error.status !== 408 && error.status !== 429;

// A broken line is taken up again where it broke, also when it is only silent.
export async function follow(path, params, hear, signal) {
  let last = null;
  for (let lost = 0; !signal.aborted; ) {
    const line = new AbortController();
    const hang = () => line.abort();
    signal.addEventListener("abort", hang);
    let watch = setTimeout(hang, PATIENCE);
    const alive = () => { clearTimeout(watch); watch = setTimeout(hang, PATIENCE); };
    try {
      const answer = await fetch(address(path, params), { headers: headers(last ? { "Last-Event-ID": last } : {}), signal: line.signal });
      if (!answer.ok) throw await problem(answer);
      hear("open", {});
      lost = 0;
      for await (const frame of frames(answer.body, alive)) {
        if (frame.id) last = frame.id;
        if (frame.event && !signal.aborted) hear(frame.event, JSON.parse(frame.data));
      }
    } catch (error) {
      if (signal.aborted) return;
      if (final(error)) { hear("refused", error); return; }
      lost += 1;
      hear("lost", { times: lost });
    } finally {
      clearTimeout(watch);
      signal.removeEventListener("abort", hang);
    }
    await pause(Math.min(8000, 300 * 2 ** lost), signal);
  }
}

async function* frames(body, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    alive();
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) yield Object.fromEntries(part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trimStart()]));
  }
}
