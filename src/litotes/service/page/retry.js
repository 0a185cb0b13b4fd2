// Problems that pass: the service is away, busy, or needs a token. Requests wait here and are sent again.

import { byId } from "./harmless.js";
import { Problem, ask, useToken } from "./service.js";

const SECONDS_BETWEEN_TRIES = 5;
const TRANSIENT = new Set([0, 401, 429, 503]); // statuses; 0: the service does not answer
let waiting = null; // one promise for all requests that wait
let onAnswer = () => {}; // called when any request has an answer
let hasGivenToken = false;

// Sends a request until it is answered; throws only problems that do not pass.
export async function askWithRetries(request, signal) {
  for (;;) {
    try {
      const answer = await request();
      if (!signal.aborted) hideNotice();
      return answer;
    } catch (problem) {
      if (signal.aborted || !(problem instanceof Problem) || !TRANSIENT.has(problem.status)) throw problem;
      waiting ??= waitFor(problem).finally(() => { waiting = null; });
      await Promise.race([waiting, rejectOnAbort(signal)]);
    }
  }
}

function rejectOnAbort(signal) {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

// Resolves when it is worth sending the request again.
async function waitFor(problem) {
  if (problem.status === 401) return askForToken(problem);
  if (problem.status === 429) return countDown(problem.message, problem.retryAfter);
  const isBack = new Promise((resolve) => { onAnswer = () => resolve(true); });
  for (let latest = problem; ;) {
    if (await Promise.race([countDown(latest.message, SECONDS_BETWEEN_TRIES), isBack])) return;
    try {
      await ask("ready");
      return showNotice("The service is back.");
    } catch (stillAway) {
      latest = stillAway;
    }
  }
}

// The seconds are hidden from screen readers, which announce the sentence once.
async function countDown(sentence, seconds) {
  const ticking = document.createElement("span");
  ticking.ariaHidden = "true";
  for (let left = seconds; left > 0; left--) {
    ticking.textContent = ` Trying again in ${left} s.`;
    if (left === seconds) showNotice(sentence, ticking);
    await new Promise((done) => setTimeout(done, 1000));
  }
}

function showNotice(...parts) {
  byId("notice-said").replaceChildren(...parts);
  byId("again").hidden = true;
  byId("notice").hidden = false;
}

function hideNotice() {
  byId("notice").hidden = true;
  onAnswer();
}

// A problem that does not pass, and a button to try again.
export function showProblem(problem) {
  showNotice(problem.message);
  byId("again").hidden = false;
}

function askForToken(problem) {
  const dialog = byId("token-dialog"), input = byId("token");
  if (hasGivenToken) byId("token-said").textContent = "The service did not accept that token. Look for a missing or an extra letter.";
  input.value = "";
  dialog.showModal();
  return new Promise((resolve, reject) => {
    byId("token-form").onsubmit = (event) => {
      event.preventDefault();
      const isPlain = /^[\x21-\x7e]+$/.test(input.value.trim());
      input.setCustomValidity(isPlain ? "" : "A token has letters, digits and signs without blanks.");
      if (!input.reportValidity()) return;
      hasGivenToken = true;
      useToken(input.value.trim());
      dialog.onclose = null;
      dialog.close();
      resolve();
    };
    input.oninput = () => input.setCustomValidity("");
    byId("no-token").onclick = () => dialog.close();
    dialog.onclose = () => reject(problem);
  });
}
