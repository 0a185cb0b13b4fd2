// What goes wrong and passes by itself: the service is away, busy, or wants a token. Whoever asks waits here and asks again.

import { byId } from "./harmless.js";
import { Problem, ask, useToken } from "./service.js";

const SECONDS_BETWEEN_TRIES = 5;
const PASSES = new Set([0, 401, 429, 503]); // 0: nobody answers
let passing = null; // one wait for all who ask
let answered = () => {}; // called when anybody has an answer
let hasGivenToken = false;

// Asks until there is an answer; only what does not pass is thrown.
export async function persistently(question, signal) {
  for (;;) {
    try {
      const answer = await question();
      if (!signal.aborted) calm();
      return answer;
    } catch (problem) {
      if (signal.aborted || !(problem instanceof Problem) || !PASSES.has(problem.status)) throw problem;
      passing ??= passed(problem).finally(() => { passing = null; });
      await Promise.race([passing, aborted(signal)]);
    }
  }
}

function aborted(signal) {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

// Resolves when it is worth asking again.
async function passed(problem) {
  if (problem.status === 401) return askForToken(problem);
  if (problem.status === 429) return countDown(problem.message, problem.retryAfter);
  const isBack = new Promise((resolve) => { answered = () => resolve(true); });
  for (let told = problem; ;) {
    if (await Promise.race([countDown(told.message, SECONDS_BETWEEN_TRIES), isBack])) return;
    try {
      await ask("ready");
      return say("The service is back.");
    } catch (stillAway) {
      told = stillAway;
    }
  }
}

// The seconds are for the eyes: a screen reader is told once.
async function countDown(sentence, seconds) {
  const ticking = document.createElement("span");
  ticking.ariaHidden = "true";
  for (let left = seconds; left > 0; left--) {
    ticking.textContent = ` Trying again in ${left} s.`;
    if (left === seconds) say(sentence, ticking);
    await new Promise((done) => setTimeout(done, 1000));
  }
}

function say(...parts) {
  byId("notice-said").replaceChildren(...parts);
  byId("again").hidden = true;
  byId("notice").hidden = false;
}

function calm() {
  byId("notice").hidden = true;
  answered();
}

// A problem that does not pass by itself, and a button to try all the same.
export function sayProblem(problem) {
  say(problem.message);
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
