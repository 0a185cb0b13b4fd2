// The view, which the address keeps: what is requested when it changes, and which part shows the answer.

import { readAddress, writeAddress } from "./address.js";
import { aboutAnswer, noteAnswer, showAnswer, showNoAnswer, showTasks, showWaiting } from "./answers.js";
import { EXAMPLES, PAIR } from "./examples.js";
import { byId, element, harmless, isBlank, nCharacters } from "./harmless.js";
import { showLayer, showLayers } from "./layers.js";
import { linesOf, listenToLines, showLines, stopLines } from "./lines.js";
import { showLocus } from "./locus.js";
import { listenToMaps } from "./maps.js";
import { counted, plural } from "./numbers.js";
import { LatestRequest, ask, debounce } from "./service.js";
import { listenToTools } from "./tools.js";
import { askWithRetries, showProblem } from "./retry.js";
import { aboutMethod, listenToWords, methodName, showWords } from "./words.js";

const LABEL_MS = 250, EXPLAIN_MS = 700, WAITING_MS = 200;
const LONGEST_TYPED = 400; // characters of a text that is explained while it is typed; a longer one takes seconds and waits for the button
const FEWEST_PASTED_LINES = 3; // pasted lines that count as texts of their own

const EMPTY = { text: "", pair: "", task: "", method: "", layer: 0, reading: "", model: "", variety: "" };
const view = { ...EMPTY };
const labelling = new LatestRequest(), explaining = new LatestRequest();
let service = null; // what v1/models says
let explanation = null; // on display, with {text, pair, task, model} it was asked for
let chosenWord = null, isModelMissing = false; // the model that a link asked for

const takesPairs = () => Boolean(service && model().pairs);
const pair = () => (takesPairs() ? view.pair : null);
const isInLines = () => !takesPairs() && view.reading === "lines" && linesOf(view.text).length > 1;
const model = () => service.models.find(({ name }) => name === view.model) ?? service.models[0];
const choices = (...names) => Object.fromEntries(names.filter((name) => view[name]).map((name) => [name, view[name]]));
const textChoice = () => ({ text: view.text, ...(takesPairs() && { pair: view.pair }), ...choices("model") });
const keepAddress = debounce(300, () => writeAddress(view));

// --- the service

async function loadService() {
  service = await askWithRetries(() => ask("v1/models"), new LatestRequest().start());
  byId("model").replaceChildren(...service.models.map(({ name }) => new Option(harmless(name), name)));
  byId("model-choice").hidden = service.models.length < 2;
  byId("method").replaceChildren(...service.methods.map((method) => new Option(methodName(method), method)));
  showModel();
}

function showModel() {
  const { name, tasks, multi_label: several, runtime, about } = model();
  isModelMissing = Boolean(view.model) && view.model !== name;
  if (isModelMissing) view.model = "";
  byId("model").value = name;
  showVarieties();
  showTasks(tasks, several);
  byId("tasks").replaceChildren(byId("tasks").firstElementChild, ...Object.keys(tasks).map((task) => {
    const input = element("input", { type: "radio", name: "task", value: task });
    return element("label", {}, input, element("span", { textContent: harmless(task) }));
  }));
  byId("tasks").hidden = Object.keys(tasks).length < 2;
  byId("about").replaceChildren("Answered by ", element("b", { textContent: harmless(name) }), `, run by ${harmless(runtime)}. ${harmless(about.join(" "))} litotes ${harmless(service.version)}.`);
  completeView();
}

// The model says "unsure" by other bounds where the variety is known.
function showVarieties() {
  const varieties = model().unsure?.varieties ?? [];
  if (!varieties.includes(view.variety)) view.variety = "";
  byId("variety").replaceChildren(new Option("not known", ""), ...varieties.map((name) => new Option(harmless(name), name)));
  byId("variety").value = view.variety;
  byId("variety-choice").hidden = varieties.length === 0;
}

// What a link asks for and the service does not have is replaced by a default.
function completeView() {
  const tasks = Object.keys(model().tasks);
  if (!tasks.includes(view.task)) view.task = tasks.includes("sarcasm") ? "sarcasm" : tasks[0];
  if (!service.methods.includes(view.method)) view.method = service.methods.includes("occlusion") ? "occlusion" : service.methods[0];
  for (const input of byId("tasks").querySelectorAll("input")) input.checked = input.value === view.task;
  byId("method").value = view.method;
}

// --- the text

function showText() {
  const nLines = linesOf(view.text).length, inLines = isInLines();
  for (const id of ["text", "pair"]) if (byId(id).value !== view[id]) byId(id).value = view[id];
  byId("second").hidden = !takesPairs();
  byId("examples").hidden = takesPairs();
  byId("reading").hidden = nLines < 2 || takesPairs();
  for (const input of document.querySelectorAll('input[name="reading"]')) input.checked = (input.value === "lines") === inLines;
  document.body.classList.toggle("in-lines", inLines);
  byId("lines").hidden = !inLines;
  for (const id of ["why", "layers"]) byId(id).hidden = inLines || !service || (id === "layers" && !explanation?.layers.length);
  document.querySelector(".answers").hidden = inLines;
  const n = nCharacters(view.text), most = service?.limits.characters ?? Infinity, isOver = !inLines && n > most;
  byId("count").textContent = inLines ? plural(nLines, "line") : `${plural(n, "character")}${isOver ? ` of at most ${counted(most)}` : ""}`;
  byId("count").classList.toggle("problem", isOver);
  for (const chip of byId("examples").children) chip.setAttribute("aria-pressed", chip.dataset.text === view.text);
}

// Of the text, or of the longer of two.
const nLongest = () => Math.max(nCharacters(view.text), nCharacters(pair() ?? ""));
const isUnfinished = () => isBlank(view.text) || (takesPairs() && isBlank(view.pair));

function tooLong(n, most, what) {
  return `${plural(n, "character")} are ${counted(n - most)} more than the ${counted(most)} that can be ${what}: shorten the text.`;
}

const labelSoon = debounce(LABEL_MS, label), explainSoon = debounce(EXPLAIN_MS, explain), linesSoon = debounce(LABEL_MS, askLines);

// isDeliberate: by an example, a link or a button; while the user types, requests are debounced.
function textChanged({ isDeliberate = false } = {}) {
  showText();
  if (!service) return;
  for (const soon of [labelSoon, explainSoon, linesSoon]) soon.cancel();
  if (isInLines()) return isDeliberate ? linesSoon.now() : linesSoon();
  stopLines();
  if (isDeliberate) {
    labelSoon.now();
    return explainSoon.now();
  }
  labelSoon();
  const n = nLongest();
  if (n <= LONGEST_TYPED || n > service.limits.explained_characters) return explainSoon();
  explaining.stop();
  noteExplanation();
}

function askLines() {
  labelling.stop();
  explaining.stop();
  return showLines(view.text, { tasks: model().tasks, limits: service.limits, model: view.model, variety: view.variety, unsure: model().unsure, several: model().multi_label });
}

// --- the label

async function label() {
  const signal = labelling.start(), n = nLongest(), most = service.limits.characters;
  if (isUnfinished()) return showNoAnswer(takesPairs() ? "This model reads two texts: type both." : "There is nothing to label yet: type a sentence, or take an example.");
  if (n > most) return showNoAnswer(tooLong(n, most, "read"));
  const waiting = setTimeout(showWaiting, WAITING_MS);
  try {
    const { predictions } = await askWithRetries(() => ask("v1/predict", { body: { ...textChoice(), ...choices("variety") }, signal }), signal);
    if (signal.aborted) return;
    const [prediction] = predictions, note = aboutAnswer(prediction, model(), isModelMissing);
    if (prediction.unreadable) return showNoAnswer(note); // a share would look like knowledge
    showAnswer(prediction);
    noteAnswer(note);
  } catch (problem) {
    if (signal.aborted) return;
    showNoAnswer(problem.message);
    if (![413, 422].includes(problem.status)) showProblem(problem);
  } finally {
    clearTimeout(waiting);
  }
}

// --- the explanation

const isOfText = (shown) => shown.text === view.text && shown.pair === pair();
const isOf = (shown) => shown !== null && isOfText(shown) && shown.task === view.task && shown.askedModel === view.model;

async function explain() {
  const signal = explaining.start(), { task, method } = view, n = nLongest(), most = service.limits.explained_characters;
  if (isUnfinished() || n > most) {
    noteExplanation(isUnfinished() ? "Here the words will be shaded by how much they count." : tooLong(n, most, "explained"));
    return hideExplanation();
  }
  const methods = [...new Set([method, "effective", "standard"])].filter((name) => service.methods.includes(name));
  const body = { ...textChoice(), task, method, methods };
  const waiting = setTimeout(() => { byId("why").classList.add("waiting"); noteExplanation("Explaining …"); }, WAITING_MS);
  try {
    const found = await askWithRetries(() => ask("v1/explain", { body, signal }), signal);
    if (signal.aborted) return;
    const shadings = isOf(explanation) ? { ...explanation.shadings, ...found.shadings } : found.shadings;
    explanation = { ...found, shadings, askedModel: view.model };
    chosenWord = null;
    showExplanation();
  } catch (problem) {
    if (signal.aborted) return;
    hideExplanation();
    noteExplanation(problem.message);
  } finally {
    clearTimeout(waiting);
    if (!signal.aborted) byId("why").classList.remove("waiting");
  }
}

function showExplanation() {
  const { layers } = explanation;
  view.layer = Math.max(1, Math.min(layers.length, Math.round(Number(view.layer)) || layers.length));
  byId("explained").hidden = false;
  byId("layers").hidden = layers.length === 0;
  showShading();
  showLocus(explanation);
  showLayers(explanation);
  showLayer(explanation, view.layer, chosenWord);
  document.documentElement.dataset.explained = `${explanation.task}/${view.method}/${view.layer}`;
}

function showShading() {
  showWords(explanation, view.method);
  markChosen();
  noteExplanation(aboutMethod(view.method));
}

function markChosen() {
  for (const word of document.querySelectorAll("#shaded .word, #fading .word")) word.classList.toggle("chosen", Number(word.dataset.word) === chosenWord);
}

function hideExplanation() {
  explanation = null;
  byId("explained").hidden = byId("layers").hidden = true;
  delete document.documentElement.dataset.explained;
}

// The note above the shaded text: the sentence given, or that the text is an older one.
function noteExplanation(sentence) {
  const isOld = explanation !== null && !isOfText(explanation);
  for (const id of ["explained", "layers"]) byId(id).classList.toggle("old", isOld);
  const older = isOld ? "Below is the last text that was explained. " : "";
  byId("why-note").textContent = sentence ?? `${older}A text this long is explained when you press Explain, or Ctrl and Enter.`;
}

// --- events

function changeMethod(method) {
  view.method = method;
  keepAddress();
  if (isOf(explanation) && explanation.shadings[method]) showShading();
  else explainSoon.now();
}

function listenToText() {
  const box = byId("text");
  let isPasted = false;
  box.addEventListener("paste", () => { isPasted = true; });
  box.addEventListener("input", () => {
    view.text = box.value;
    if (linesOf(view.text).length < 2) view.reading = "";
    else if (isPasted && !view.reading && linesOf(view.text).length >= FEWEST_PASTED_LINES) view.reading = "lines";
    isPasted = false;
    keepAddress();
    textChanged();
  });
  byId("pair").addEventListener("input", (event) => { view.pair = event.target.value; keepAddress(); textChanged(); });
  byId("ask").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) textChanged({ isDeliberate: true });
  });
  for (const input of document.querySelectorAll('input[name="reading"]')) {
    input.addEventListener("change", () => { view.reading = input.value; keepAddress(); textChanged({ isDeliberate: true }); });
  }
  byId("examples").replaceChildren(...EXAMPLES.map(([variety, text]) => {
    const chip = element("button", { type: "button", className: "chip", textContent: variety, title: text });
    chip.dataset.text = text;
    chip.addEventListener("click", () => { Object.assign(view, { text, reading: "" }); keepAddress(); textChanged({ isDeliberate: true }); });
    return chip;
  }));
}

function listenToChoices() {
  byId("tasks").addEventListener("change", (event) => { view.task = event.target.value; keepAddress(); explainSoon.now(); });
  byId("method").addEventListener("change", (event) => changeMethod(event.target.value));
  byId("explain").addEventListener("click", () => explainSoon.now());
  listenToWords((word) => {
    chosenWord = word;
    markChosen();
    showLayer(explanation, view.layer, word);
  });
  byId("layer").addEventListener("input", (event) => {
    view.layer = Number(event.target.value);
    keepAddress();
    if (explanation) showLayer(explanation, view.layer, chosenWord);
  });
  byId("model").addEventListener("change", (event) => {
    view.model = event.target.value === service.models[0].name ? "" : event.target.value;
    keepAddress();
    showModel();
    textChanged({ isDeliberate: true });
  });
  byId("variety").addEventListener("change", (event) => {
    view.variety = event.target.value;
    keepAddress();
    return isInLines() ? linesSoon.now() : labelSoon.now();
  });
  byId("again").addEventListener("click", () => (service ? textChanged({ isDeliberate: true }) : begin()));
}

// The words that fit next to the cells depend on the width.
function listenToWidth() {
  let before = innerWidth;
  addEventListener("resize", debounce(150, () => {
    if (innerWidth !== before && explanation) showLayer(explanation, view.layer, chosenWord);
    before = innerWidth;
  }));
}

function readView() {
  Object.assign(view, EMPTY, readAddress());
  if (!location.hash) view.text = EXAMPLES[0][1];
}

async function begin() {
  try {
    await loadService();
    if (!location.hash && takesPairs()) Object.assign(view, PAIR);
    textChanged({ isDeliberate: true });
  } catch (problem) {
    showProblem(problem);
  }
}

readView();
listenToText();
listenToChoices();
listenToLines();
listenToMaps();
listenToTools(view);
listenToWidth();
addEventListener("hashchange", () => { readView(); if (service) showModel(); textChanged({ isDeliberate: true }); });
showText();
begin();
