// The label of every task and how sure the model is of it, in words, as a number, and as a place between two labels or a bar for each of several.

import { byId, element, harmless } from "./harmless.js";
import { counted, inWords, shareText } from "./numbers.js";

const QUIET_MS = 1200; // before a screen reader announces it: not after every letter
let cards = {};
let announcing;

// Built once for a model's tasks, {name: labels}; answers only change the content, so nothing flickers. several: the tasks that may have several labels.
export function showTasks(tasks, several) {
  cards = Object.fromEntries(Object.entries(tasks).map(([task, labels]) => [task, cardOf(task, labels, several.includes(task))]));
  byId("answers").replaceChildren(...Object.values(cards).map((card) => card.root));
}

function cardOf(task, labels, isSeveral) {
  const said = element("bdi"), share = element("span", { className: "share" });
  share.hidden = labels.length > 2; // it stands beside its bar
  const chart = labels.length === 0 ? NO_CHART : labels.length === 2 && !isSeveral ? twoSided(labels) : barForEach(labels); // a number has no share of anything
  const doubt = element("p", { className: "note doubt", hidden: true });
  const root = element("article", { className: "card" }, element("h3", { textContent: harmless(task), dir: "auto" }), element("p", { className: "said" }, said, " ", share), ...chart.nodes, doubt);
  root.dataset.task = task;
  return { root, said, share, chart, doubt };
}

// Each draws an answer, or none: null.
const NO_CHART = { nodes: [], draw: () => {} };

function twoSided(labels) {
  const fill = element("span", { className: "fill" }), track = element("div", { className: "track two-sided", ariaHidden: "true" }, fill);
  const ends = element("p", { className: "ends", ariaHidden: "true" }, ...labels.map((label) => element("bdi", { textContent: harmless(label) })));
  const draw = (answer) => {
    const to = answer ? answer.probabilities[labels[1]] : 0.5;
    fill.style.insetInlineStart = `${Math.min(0.5, to) * 100}%`;
    fill.style.inlineSize = `${Math.abs(to - 0.5) * 100}%`;
  };
  return { nodes: [track, ends], draw };
}

function barForEach(labels) {
  const bars = labels.map((label) => {
    const share = element("span", { className: "share" }), fill = element("span", { className: "fill" });
    const row = element("li", {}, element("bdi", { textContent: harmless(label) }), element("span", { className: "track", ariaHidden: "true" }, fill), share);
    return { label, row, share, fill };
  });
  const draw = (answer) => {
    for (const { label, row, share, fill } of bars) {
      const own = answer?.probabilities[label] ?? 0;
      share.textContent = answer ? shareText(own) : "";
      fill.style.inlineSize = `${own * 100}%`;
      row.ariaCurrent = answer && [answer.label].flat().includes(label) ? "true" : null;
    }
  };
  return { nodes: [element("ul", { className: "labels" }, ...bars.map(({ row }) => row))], draw };
}

export function showAnswer(prediction) {
  const sentences = Object.entries(cards).map(([task, card]) => `${task}: ${showCard(card, prediction[task])}`);
  byId("answers").classList.remove("waiting", "empty");
  clearTimeout(announcing);
  announcing = setTimeout(() => { byId("announced").textContent = harmless(`${sentences.join("; ")}.`); }, QUIET_MS);
}

function showCard({ said, share, chart, doubt }, answer) {
  const words = inWords(answer), number = answer.probability === null ? "" : shareText(answer.probability);
  const sentence = number ? `${words}, ${number}` : words;
  said.textContent = answer.unsure ? "unsure" : harmless(words);
  share.textContent = answer.unsure ? "" : number;
  doubt.textContent = answer.unsure ? harmless(`${answer.unsure} (${sentence.replaceAll(" %", "\u00a0%")})`) : "";
  doubt.hidden = !answer.unsure;
  chart.draw(answer);
  return answer.unsure ? `unsure, ${answer.unsure}` : sentence;
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
  for (const { said, share, chart, doubt } of Object.values(cards)) {
    said.textContent = "–";
    share.textContent = "";
    doubt.hidden = true;
    chart.draw(null);
  }
  noteAnswer(sentence);
}

export function noteAnswer(sentence) {
  byId("answer-note").textContent = sentence;
}

// What stands below the answer. model: as v1/models describes it. isMissing: whether a link asked for another.
export function aboutAnswer({ truncated, unreadable, answered_at_layer: layer, ...answers }, model, isMissing) {
  const isLess = !unreadable && Object.keys(model.tasks).some((task) => answers[task].probability !== null && answers[task].probability < Math.max(...Object.values(answers[task].probabilities)));
  const cut = `The text is longer than the model reads: it saw the first ${counted(model.most_pieces)} pieces and nothing after them.`;
  const unknown = "Unreadable: the model knows no part of this text, so no answer is shown.";
  const less = "Another label is more probable: a threshold that was fitted on held-out texts chose this one.";
  const missing = "The model this link asks for is not here; the first one answers.";
  const place = layer === 0 ? "before the first layer, by a table of pieces" : `after layer ${layer} of ${model.n_layers}`;
  const early = layer < model.n_layers && `An exit was sure of it ${place}.`;
  return [isMissing && missing, unreadable && unknown, truncated && cut, isLess && less, early].filter(Boolean).join(" ");
}
