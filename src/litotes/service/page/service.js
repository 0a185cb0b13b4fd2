// The service over HTTP: its answer, or a Problem whose message is a sentence.

const TOKEN = "litotes-token";
let token = keptToken();

// Where the service's own sentence is meant for programs.
const SENTENCES = {
  401: "This service asks for a token.",
  429: "The service is busy.",
  503: "The service is starting or stopping.",
};

export class Problem extends Error {
  // status: 0 where nobody answered. retryAfter: in seconds.
  constructor(status, sentence, retryAfter = 1) {
    super(sentence);
    Object.assign(this, { status, retryAfter });
  }
}

function keptToken() {
  try { return sessionStorage.getItem(TOKEN); } catch { return null; } // a browser may refuse to keep anything
}

export function useToken(given) {
  token = given;
  try { sessionStorage.setItem(TOKEN, given); } catch { /* then it is asked for again after a reload */ }
}

// GET, or POST where there is a body.
export async function ask(path, { body, signal } = {}) {
  const headers = { ...(body && { "Content-Type": "application/json" }), ...(token && { Authorization: `Bearer ${token}` }) };
  let response;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
    if (response.ok) return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, "The service does not answer.");
  }
  throw await problemOf(response);
}

async function problemOf(response) {
  const told = await response.json().catch(() => ({})); // a proxy in between may answer with a page of its own
  const sentence = [told.title, told.detail].filter(Boolean).join(". ") || `The service answered with the status ${response.status}, and not why.`;
  return new Problem(response.status, SENTENCES[response.status] ?? sentence, Math.min(60, Number(response.headers.get("Retry-After")) || 1));
}

// One question at a time: starting the next one ends the last, so an older answer never comes after a newer one.
export class Latest {
  start() {
    this.stop();
    this.controller = new AbortController();
    return this.controller.signal;
  }

  stop() {
    this.controller?.abort();
  }
}

// Runs `action` once nobody has called for `milliseconds`.
export function debounced(milliseconds, action) {
  let timer;
  const later = () => { clearTimeout(timer); timer = setTimeout(action, milliseconds); };
  later.now = () => { clearTimeout(timer); return action(); };
  later.never = () => clearTimeout(timer);
  return later;
}
