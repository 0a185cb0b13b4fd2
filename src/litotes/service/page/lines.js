// Many lines, each a text of its own: requested in portions, shown as a table, saved as CSV.

import { linkTo } from "./address.js";
import { csvOf, download } from "./csv.js";
import { byId, element, harmless, isBlank, nCharacters } from "./harmless.js";
import { counted, inWords, plural, shareText } from "./numbers.js";
import { LatestRequest, ask, sentenceOf } from "./service.js";
import { askWithRetries, showProblem } from "./retry.js";

const MAX_ROWS = 1000; // drawn; the CSV has all
const REDRAW_MS = 1000; // while answers arrive: drawing a thousand rows takes as long as answering some
const running = new LatestRequest();
let rows = []; // {number, text, prediction, problem}
let known = new Map(); // text → prediction or problem: when a line is edited, the others are not requested again
let about = null; // {tasks, limits, model, variety, unsure, several}
let drawnAt = 0;
let order = { column: "number", isUp: true };

export const linesOf = (text) => text.split(/\r\n|\n|\r/).filter((line) => !isBlank(line));

export function showLines(text, { tasks, limits, model, variety, unsure, several }) {
  if (about?.model !== model || about?.variety !== variety) known = new Map(); // another model has other answers
  about = { tasks, limits, model, variety, unsure, several };
  rows = linesOf(text).map((line, at) => ({ number: at + 1, text: line, ...known.get(line) }));
  drawHead();
  drawRows();
  return askAll();
}

export function stopLines() {
  running.stop();
}

// --- requests

async function askAll() {
  const signal = running.start(), waiting = rows.filter((row) => !row.prediction && !row.problem);
  showProgress(true);
  try {
    for (const portion of portionsOf(waiting, about.limits)) {
      await askPortion(portion, signal);
      if (signal.aborted) return;
      if (performance.now() - drawnAt > REDRAW_MS) drawRows();
      showProgress(true);
    }
  } catch (problem) {
    if (signal.aborted) return;
    showProblem(problem);
  } finally {
    if (!signal.aborted) {
      drawRows();
      showProgress(false);
    }
  }
}

// At most so many texts and so many bytes in one request.
function* portionsOf(waiting, limits) {
  const nBytes = (row) => new Blob([JSON.stringify(row.text)]).size + 2;
  let portion = [], size = 0;
  for (const row of waiting) {
    const over = nCharacters(row.text) - limits.characters;
    if (over > 0) {
      settle(row, { problem: `Too long by ${plural(over, "character")}; the limit is ${counted(limits.characters)}.` });
      continue;
    }
    if (portion.length === limits.texts || (portion.length && size + nBytes(row) > 0.9 * limits.body_bytes)) {
      yield portion;
      [portion, size] = [[], 0];
    }
    portion.push(row);
    size += nBytes(row);
  }
  if (portion.length) yield portion;
}

// A text that cannot be answered has a problem of its own.
async function askPortion(portion, signal) {
  const body = { texts: portion.map((row) => row.text), ...(about.model && { model: about.model }), ...(about.variety && { variety: about.variety }) };
  const { predictions } = await askWithRetries(() => ask("v1/predict", { body, signal }), signal);
  portion.forEach((row, at) => {
    const prediction = predictions[at], { problem } = prediction;
    settle(row, problem ? { problem: sentenceOf(problem) } : { prediction });
  });
}

function settle(row, outcome) {
  known.set(row.text, outcome);
  Object.assign(row, outcome);
}

function showProgress(isRunning) {
  const nDone = rows.filter((row) => row.prediction || row.problem).length, nFailed = rows.filter((row) => row.problem).length;
  byId("progress").max = rows.length || 1;
  byId("progress").value = nDone;
  byId("progress").hidden = nDone === rows.length;
  byId("stop").hidden = nDone === rows.length;
  byId("stop").textContent = isRunning ? "Stop" : "Go on";
  byId("download").disabled = nDone === 0;
  const failed = nFailed ? ` ${plural(nFailed, "line")} could not be answered; the reason stands in the row.` : "";
  const nUnreadable = rows.filter((row) => row.prediction?.unreadable).length;
  const unreadable = nUnreadable ? ` ${plural(nUnreadable, "line is", "lines are")} unreadable: the model knows no part of them.` : "";
  const drawn = rows.length > MAX_ROWS ? ` The first ${counted(MAX_ROWS)} rows are shown; the CSV has all.` : "";
  byId("lines-note").textContent = nDone === rows.length
    ? `All ${plural(rows.length, "line")} answered.${failed}${unreadable}${drawn}`
    : `${counted(nDone)} of ${plural(rows.length, "line")} answered${isRunning ? " …" : "; stopped."}${failed}${unreadable}${drawn}`;
}

// --- the table

// In one cell; several labels as `litotes predict` writes them.
const cellOf = (label) => (Array.isArray(label) ? label.join("|") : label);

// The answers to show: the model has some for an unreadable text too, which only the CSV keeps.
const readable = ({ prediction }) => (prediction?.unreadable ? undefined : prediction);

function columns() {
  const tasks = Object.keys(about.tasks).flatMap((task) => [
    { name: task, title: task, value: (row) => (readable(row)?.[task].unsure ? "unsure" : cellOf(readable(row)?.[task].label)) },
    { name: `${task}_probability`, title: "sure", ofTask: task, value: (row) => readable(row)?.[task].probability },
  ]);
  return [
    { name: "number", title: "line", value: (row) => row.number },
    { name: "text", title: "text", value: (row) => row.text },
    ...tasks.filter(({ ofTask }) => !ofTask || (about.tasks[ofTask].length && !about.several.includes(ofTask))),
    { name: "truncated", title: "cut", value: (row) => row.prediction && Number(row.prediction.truncated) },
  ];
}

function drawHead() {
  const cells = columns().map((column) => {
    const title = column.ofTask ? `${column.ofTask}: how sure` : column.name === "truncated" ? "cut: longer than the model reads" : column.title;
    const button = element("button", { type: "button", textContent: harmless(column.title), ariaLabel: `sort by ${title}`, title });
    if (column.ofTask) button.dataset.task = column.ofTask;
    button.onclick = () => sortBy(column.name);
    const cell = element("th", { scope: "col", className: kindOf(column) }, button);
    if (order.column === column.name) cell.ariaSort = order.isUp ? "ascending" : "descending";
    return cell;
  });
  byId("table").tHead.replaceChildren(element("tr", {}, ...cells));
}

const kindOf = (column) => (column.ofTask ? "share" : ["number", "text", "truncated"].includes(column.name) ? column.name : "label");

function sortBy(column) {
  order = { column, isUp: order.column === column ? !order.isUp : !column.endsWith("_probability") }; // the most certain first
  drawHead();
  drawRows();
  [...byId("table").tHead.rows[0].cells].find((cell) => cell.ariaSort)?.firstChild.focus();
}

// Rows without an answer come last in either direction.
function sorted() {
  const { value } = columns().find((column) => column.name === order.column) ?? columns()[0], sign = order.isUp ? 1 : -1;
  const compare = (one, other) => (typeof one === "string" ? one.localeCompare(other) : one - other);
  return [...rows].sort((one, other) => {
    const [left, right] = [value(one), value(other)], missing = (left === undefined) - (right === undefined);
    return missing || (left === undefined ? 0 : sign * compare(left, right)) || one.number - other.number;
  });
}

function drawRows() {
  drawnAt = performance.now();
  byId("table").tBodies[0].replaceChildren(...sorted().slice(0, MAX_ROWS).map(rowOf));
}

function rowOf(row) {
  const cells = columns().map((column) => {
    const cell = element("td", { className: kindOf(column) }), value = column.value(row);
    cell.dataset.title = column.title;
    if (column.name === "text") cell.append(textOf(row));
    else if (column.name === "number") cell.textContent = row.number;
    else if (value === undefined) cell.textContent = row.problem || row.prediction ? "" : "…";
    else if (column.name === "truncated") cell.textContent = value ? "cut" : "";
    else if (column.ofTask) cell.append(sureness(row.prediction[column.ofTask]));
    else cell.append(element("bdi", { textContent: typeof value === "number" ? inWords({ label: value, probability: null }) : harmless(value) }));
    return cell;
  });
  return element("tr", {}, ...cells);
}

// The text leads to its explanation, in a tab of its own: the table stays.
function textOf({ text, prediction, problem }) {
  const note = prediction?.unreadable ? "unreadable: the model knows no part of it" : problem;
  const { link } = linkTo({ text, model: about.model, variety: about.variety });
  const shown = element("a", { href: link, target: "_blank", rel: "noopener", dir: "auto", textContent: harmless(text), title: "why? (opens in a new tab)" });
  return note ? element("div", {}, shown, element("small", { className: "problem", textContent: note })) : shown;
}

// Of an unsure answer, the labels that are possible in place of a share.
function sureness(answer) {
  if (!answer.unsure) return shareOf(answer);
  return element("small", { className: "note", textContent: harmless(answer.labels.join(" or ")) || "none is likely enough" });
}

// Of three labels or more, the next one too; the CSV has all.
function shareOf({ label, probability, probabilities }) {
  const bar = element("span", { className: "small-bar" }, element("i"));
  bar.firstChild.style.inlineSize = `${probability * 100}%`;
  const cell = element("span", { className: "share-cell" }, shareText(probability), bar);
  const others = Object.entries(probabilities).filter(([other]) => other !== label).sort(([, one], [, other]) => other - one);
  if (others.length > 1) cell.append(element("small", { className: "note" }, "then ", element("bdi", { textContent: harmless(others[0][0]) }), ` ${shareText(others[0][1]).replaceAll(" ", "\u00a0")}`));
  return cell;
}

// --- buttons

// The columns of `litotes predict --format csv --probabilities`.
function csvColumns() {
  const flag = (name) => ({ name, value: ({ prediction, problem }) => (prediction?.[name] ? "True" : prediction || problem ? "False" : "") });
  const answers = Object.entries(about.tasks).flatMap(([task, labels]) => {
    const column = (name, value) => ({ name, value: ({ prediction }) => prediction && value(prediction[task]) });
    const label = column(task, (answer) => cellOf(answer.label));
    if (labels.length === 0) return [label];
    const shares = labels.map((own) => column(`${task}_probability_${own}`, (answer) => answer.probabilities[own]));
    if (about.several.includes(task)) return [label, ...shares];
    const possible = about.unsure?.coverage[task] ? [column(`${task}_labels`, (answer) => answer.labels.join("|")), column(`${task}_unsure`, (answer) => answer.unsure)] : [];
    return [label, column(`${task}_probability`, (answer) => answer.probability), ...shares, ...possible];
  });
  return [{ name: "text", value: (row) => row.text }, ...answers, flag("truncated"), flag("unreadable"), { name: "problem", value: (row) => row.problem }];
}

function saveCsv() {
  const all = csvColumns(), lines = sorted().map((row) => all.map(({ value }) => value(row)));
  download("litotes.csv", csvOf([all.map(({ name }) => name), ...lines]));
}

export function listenToLines() {
  byId("download").addEventListener("click", saveCsv);
  byId("stop").addEventListener("click", () => {
    if (byId("stop").textContent !== "Stop") return askAll();
    running.stop();
    drawRows();
    showProgress(false);
  });
}
