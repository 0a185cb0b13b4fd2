// The label of every task and how sure the model is of it, in words, as a number and as a place between the labels.

import { byId, element, harmless } from "./harmless.js";
import { inWords, shareText } from "./numbers.js";

const QUIET_MS = 1200; // before a screen reader announces it: not after every letter
let cards = {};
let announcing;

// Built once for a model's tasks, {name: labels}; answers only change the content, so nothing flickers.
export function showTasks(tasks) {
  cards = Object.fromEntries(Object.entries(tasks).map(([task, labels]) => [task, cardOf(task, labels)]));
  byId("answers").replaceChildren(...Object.values(cards).map((card) => card.root));
}

function cardOf(task, labels) {
  const said = element("bdi"), share = element("span", { className: "share" }), fill = element("span", { className: "fill" });
  const ends = labels.length === 2 ? labels : ["", ""];
  const track = element("div", { className: "track", ariaHidden: "true" }, fill);
  track.classList.toggle("two-sided", labels.length === 2);
  const root = element(
    "article", { className: "card" },
    element("h3", { textContent: harmless(task), dir: "auto" }),
    element("p", { className: "said" }, said, " ", share),
    track,
    element("p", { className: "ends", ariaHidden: "true" }, ...ends.map((label) => element("bdi", { textContent: harmless(label) }))),
  );
  root.dataset.task = task;
  track.hidden = labels.length === 0; // a number has no share of anything
  return { root, said, share, fill, labels };
}

export function showAnswer(prediction) {
  const sentences = Object.entries(cards).map(([task, card]) => `${task}: ${showCard(card, prediction[task])}`);
  byId("answers").classList.remove("waiting", "empty");
  clearTimeout(announcing);
  announcing = setTimeout(() => { byId("announced").textContent = harmless(`${sentences.join("; ")}.`); }, QUIET_MS);
}

function showCard({ said, share, fill, labels }, answer) {
  const words = inWords(answer), number = answer.probability === null ? "" : shareText(answer.probability);
  said.textContent = harmless(words);
  share.textContent = number;
  if (answer.probability !== null) {
    const [from, to] = labels.length === 2 ? [0.5, secondShare(answer, labels)] : [0, answer.probability];
    fill.style.insetInlineStart = `${Math.min(from, to) * 100}%`;
    fill.style.inlineSize = `${Math.abs(to - from) * 100}%`;
    fill.classList.toggle("towards-first", to < from);
  }
  return number ? `${words}, ${number}` : words;
}

function secondShare({ label, probability }, labels) {
  return label === labels[1] ? probability : 1 - probability;
}

// The last answer stays visible, paler, until the next one arrives.
export function showWaiting() {
  byId("answers").classList.add("waiting");
}

// sentence: why there is no answer.
export function showNoAnswer(sentence) {
  clearTimeout(announcing);
  byId("announced").textContent = "";
  byId("answers").classList.remove("waiting");
  byId("answers").classList.add("empty");
  for (const { said, share, fill } of Object.values(cards)) {
    said.textContent = "–";
    share.textContent = "";
    fill.style.inlineSize = "0";
  }
  noteAnswer(sentence);
}

export function noteAnswer(sentence) {
  byId("answer-note").textContent = sentence;
}
