// The text with every word shaded by how much the method says it counts.

import { byId, element, harmless, quoted } from "./harmless.js";
import { plural, counted, signedText } from "./numbers.js";

const FAINT = 0.1; // share of the greatest weight below which a word is not shaded
const MAX_UNREAD = 300; // characters shown of what the model did not read

// What each method measures; other methods are shown by their name alone.
const METHODS = {
  occlusion: "What the answer loses when the word is left out.",
  integrated_gradients: "The word’s share in the way from an empty text to this answer.",
  gradient_input: "How the answer would move if the word were a little more itself.",
  effective: "Attention to the word that has an effect on the layer’s output.",
  standard: "Attention to the word, whether it has an effect or not.",
  value_norm: "Attention to the word times the length of what it brings.",
  rollout: "Attention multiplied through all layers.",
  random: "Random numbers: what every method has to beat.",
};

export const methodName = (method) => harmless(method.replaceAll("_", " "));
export const aboutMethod = (method) => METHODS[method] ?? "";

// The text in parts, each with the number of its word or null. The service counts characters, JavaScript code units.
function partsOf({ text, pair, words, truncated }, isPair) {
  const characters = [...(isPair ? pair : text)], parts = [];
  let end = 0;
  words.forEach((word, number) => {
    if (word.is_pair !== isPair || word.end <= end) return;
    const start = Math.max(word.start, end); // a tokenizer may let words share a letter
    if (start > end) parts.push([characters.slice(end, start).join(""), null]);
    parts.push([characters.slice(start, word.end).join(""), number]);
    end = word.end;
  });
  const rest = characters.slice(end);
  return { parts, between: truncated ? "" : rest.join(""), unread: truncated ? rest : [] };
}

// Fills a paragraph with the text, and the second one of a pair; `makeWord` makes the element of a word from its number and letters.
export function fillText(paragraph, explanation, makeWord) {
  fillSide(paragraph, explanation, makeWord, false);
  if (typeof explanation.pair !== "string") return;
  const second = element("span", { className: "second", dir: "auto" });
  fillSide(second, explanation, makeWord, true);
  paragraph.append(second);
}

function fillSide(paragraph, explanation, makeWord, isPair) {
  const { parts, between, unread } = partsOf(explanation, isPair), hidden = unread.length - MAX_UNREAD;
  paragraph.replaceChildren(...parts.map(([letters, number]) => (number === null ? harmless(letters) : makeWord(number, harmless(letters)))), harmless(between));
  if (unread.length) {
    const more = hidden > 0 ? `… and ${plural(hidden, "more character")}` : "";
    paragraph.append(element("i", { className: "unread", textContent: harmless(unread.slice(0, MAX_UNREAD).join("")) + more, title: "not read" }));
  }
}

let shown = null; // {explanation, shading}

export function showWords(explanation, method) {
  const shading = explanation.shadings[method], greatest = Math.max(...shading.weights.map(Math.abs)) || 1;
  fillText(byId("shaded"), explanation, (number, letters) => {
    const weight = shading.weights[number], share = Math.abs(weight) / greatest;
    const word = element("span", { className: `word ${share < FAINT ? "" : weight > 0 ? "for" : "against"}`.trim(), textContent: letters, role: "button", tabIndex: -1 });
    word.style.setProperty("--share", share.toFixed(3));
    word.dataset.word = number;
    word.ariaLabel = `${letters}: ${weightText(explanation, shading, weight)}`;
    return word;
  });
  byId("shaded").querySelector(".word")?.setAttribute("tabindex", 0); // one stop for Tab; arrows go on from there
  shown = { explanation, shading };
  byId("word-said").textContent = "Point at a word, or go from word to word with the arrow keys.";
  showLegend(explanation, shading);
  showTable(explanation);
}

// What the words are for or against; of several labels one is explained.
function explained({ task, answers, explained_label: one }) {
  const { label, probability } = answers[task];
  return harmless(one ?? (probability === null ? "a higher value" : String(label)));
}

function weightText(explanation, { is_signed: isSigned }, weight) {
  if (!isSigned) return signedText(weight).replace("+", "");
  return `${signedText(weight)} (${weight < 0 ? "against" : "for"} ${explained(explanation)})`;
}

const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -Infinity, End: Infinity };

// Called once. choose: called with the number of a word that is clicked, or chosen with Enter.
export function listenToWords(choose) {
  const all = () => [...byId("shaded").querySelectorAll(".word")];
  const listen = (kind, act) => byId("shaded").addEventListener(kind, (event) => {
    const word = event.target.closest(".word");
    if (word) act(word, event);
  });
  listen("click", (word) => choose(Number(word.dataset.word)));
  listen("pointerover", (word) => sayWord(Number(word.dataset.word)));
  listen("focusin", (word) => {
    for (const other of all()) other.tabIndex = other === word ? 0 : -1;
    sayWord(Number(word.dataset.word));
  });
  listen("keydown", (word, event) => {
    const words = all(), last = words.length - 1;
    if (event.key === "Enter" || event.key === " ") choose(Number(word.dataset.word));
    else if (event.key in STEPS) words[Math.max(0, Math.min(last, words.indexOf(word) + STEPS[event.key]))].focus();
    else return;
    event.preventDefault();
  });
}

function sayWord(number) {
  const { explanation, shading } = shown;
  const weight = shading.weights[number], { word, left_at_layer: left } = explanation.words[number];
  const rank = shading.weights.filter((other) => Math.abs(other) > Math.abs(weight)).length + 1;
  const leaving = left === null ? "" : ` It leaves after layer ${left + 1}.`;
  byId("word-said").replaceChildren(quoted(word), `: ${weightText(explanation, shading, weight)}, number ${rank} of ${plural(shading.weights.length, "word")}.${leaving}`);
}

function showLegend(explanation, { is_signed: isSigned }) {
  const swatch = (kind, share, text) => {
    const made = element("span", { className: `word ${kind}`, textContent: text });
    made.style.setProperty("--share", share);
    return made;
  };
  const answer = explained(explanation);
  const swatches = isSigned
    ? [swatch("against", 1, `against ${answer}`), swatch("against", 0.4, "…"), swatch("", 0, "0"), swatch("for", 0.4, "…"), swatch("for", 1, `for ${answer}`)]
    : [swatch("", 0, "0"), swatch("for", 0.4, "…"), swatch("for", 1, "most used")];
  byId("legend").replaceChildren(...swatches, element("span", { textContent: isSigned ? "Underlined: for; dotted: against. The strongest shade is the greatest weight." : "The strongest shade is the greatest weight." }));
}

function showTable({ words, shadings }) {
  const methods = Object.keys(shadings), hasLeft = words.some((word) => word.left_at_layer !== null);
  const heads = ["word", ...methods.map(methodName), ...(hasLeft ? ["leaves after layer"] : [])];
  const rows = words.map((word, number) => {
    const cells = methods.map((method) => signedText(shadings[method].weights[number]));
    if (hasLeft) cells.push(word.left_at_layer === null ? "stays" : counted(word.left_at_layer + 1));
    return element("tr", {}, element("th", { scope: "row", dir: "auto", textContent: harmless(word.word) }), ...cells.map((textContent) => element("td", { textContent })));
  });
  byId("weights").querySelector("table").replaceChildren(
    element("thead", {}, element("tr", {}, ...heads.map((textContent) => element("th", { scope: "col", textContent })))),
    element("tbody", {}, ...rows),
  );
}
