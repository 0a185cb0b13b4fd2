// The service over HTTP: its answer, or a Problem whose message is a sentence.

const TOKEN = "litotes-token";
let token = storedToken();

// Shown instead of the service's own sentence where that is meant for programs.
const SENTENCES = {
  401: "This service asks for a token.",
  429: "The service is busy.",
  503: "The service is starting or stopping.",
};

export class Problem extends Error {
  // status: 0 if the service did not answer. retryAfter: in seconds.
  constructor(status, sentence, retryAfter = 1) {
    super(sentence);
    Object.assign(this, { status, retryAfter });
  }
}

function storedToken() {
  try { return sessionStorage.getItem(TOKEN); } catch { return null; } // a browser may refuse to store anything
}

export function useToken(given) {
  token = given;
  try { sessionStorage.setItem(TOKEN, given); } catch { /* then the page asks for it again after a reload */ }
}

// GET, or POST if there is a body.
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
  const content = await response.json().catch(() => ({})); // a proxy in between may answer with a page of its own
  const sentence = sentenceOf(content) || `The service answered with the status ${response.status}, and not why.`;
  return new Problem(response.status, SENTENCES[response.status] ?? sentence, Math.min(60, Number(response.headers.get("Retry-After")) || 1));
}

// A problem (RFC 9457) in words.
export const sentenceOf = ({ title, detail }) => [title, detail].filter(Boolean).join(". ");

// One request at a time: starting the next one aborts the last, so an older answer never arrives after a newer one.
export class LatestRequest {
  start() {
    this.stop();
    this.controller = new AbortController();
    return this.controller.signal;
  }

  stop() {
    this.controller?.abort();
  }
}

// A function that runs `action` once it has not been called for `milliseconds`.
export function debounce(milliseconds, action) {
  let timer;
  const later = () => { clearTimeout(timer); timer = setTimeout(action, milliseconds); };
  later.now = () => { clearTimeout(timer); return action(); };
  later.cancel = () => clearTimeout(timer);
  return later;
}
