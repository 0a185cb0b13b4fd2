// Attention between words as two maps, or as bars where there are too many words for a map.

import { byId, element, harmless, quoted } from "./harmless.js";
import { numberText, plural } from "./numbers.js";

const KINDS = ["standard", "effective"];
const FEWEST_PIXELS = 14; // of a cell whose word can be read next to it
const LONGEST_LABEL = 13; // letters
const LIFT = 0.65; // exponent from weight to shade; 1: in proportion
const FONT = "12px system-ui, sans-serif";
let shown = null; // {explanation, layer, words: their numbers, greatest, row, column}

// chosen: the number of a word that must be among those drawn, or null.
export function showMaps(explanation, layer, chosen = null) {
  const maps = explanation.layers[layer], isThere = explanation.words.map(({ left_at_layer: left }) => left === null || left >= layer);
  const there = isThere.flatMap((is, number) => (is ? [number] : []));
  const hasMaps = maps.between !== null && there.length > 0;
  byId("maps").hidden = !hasMaps;
  byId("bars").hidden = maps.between !== null;
  byId("scale").hidden = !hasMaps;
  shown = null;
  if (hasMaps) {
    const words = drawnWords(there, maps, chosen);
    const weights = KINDS.flatMap((kind) => words.flatMap((row) => words.map((column) => maps.between[kind][row][column])));
    shown = { explanation, maps, words, greatest: Math.max(...weights.map(Math.abs)) || 1, hasBelow: weights.some((weight) => weight < -0.0005) };
    if (chosen !== null && words.includes(chosen)) Object.assign(shown, { row: chosen, column: chosen });
    redraw();
  } else if (maps.between === null) {
    showBars(explanation, maps, there);
  }
  byId("maps-note").textContent = noteOf(maps, there.length, shown?.words.length);
  byId("cell-said").hidden = !hasMaps;
  byId("cell-said").textContent = "Point at a cell, or choose a map and move with the arrow keys.";
}

function noteOf(maps, nThere, nDrawn) {
  if (nThere === 0) return "No word is left in this layer: only pieces like [CLS] are there.";
  const isSame = KINDS.every((kind) => maps.received[kind].every((weight, number) => Math.abs(weight - maps.received.standard[number]) < 0.0005));
  const what = `The mean of ${plural(maps.attention_heads, "attention head")}. Effective is what is left of standard attention without the part that changes nothing in the layer’s output`;
  const same = isSame ? "; here both are the same: a text this short wastes nothing." : ".";
  if (maps.between === null) return `${what}${same} With more than 64 words the bars show what each receives.`;
  const drawn = nDrawn < nThere ? ` Drawn are the ${nDrawn} of ${nThere} words that receive most.` : "";
  return `${what}${same} Rows are queries, columns keys.${drawn}`;
}

// As many words as can be labelled: those that receive most, in the order of the text.
function drawnWords(there, maps, chosen) {
  const side = byId("standard").clientWidth || 300, most = Math.max(6, Math.floor((side - 90) / FEWEST_PIXELS));
  const received = (number) => (number === chosen ? Infinity : Math.abs(maps.received.standard[number]) + Math.abs(maps.received.effective[number]));
  return [...there].sort((one, other) => received(other) - received(one)).slice(0, most).sort((one, other) => one - other);
}

// --- pictures

export function redraw() {
  if (!shown) return;
  const colours = Object.fromEntries(["map-zero", "map-for", "map-against", "ink", "soft", "focus"].map((name) => [name, colourOf(name)]));
  for (const kind of KINDS) drawMap(byId(kind), shown.maps.between[kind], colours);
  drawScale(byId("scale"), colours);
}

// A colour of the style sheet as three numbers, whatever the theme.
function colourOf(name) {
  const probe = byId("maps");
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  probe.style.color = "";
  return found;
}

const css = (colour) => `rgb(${colour.join(" ")})`;

// The exponent lifts weak weights; otherwise one strong word would hide all others.
function shadeOf(weight, colours) {
  const share = Math.min(1, Math.abs(weight) / shown.greatest) ** LIFT, end = colours[weight < 0 ? "map-against" : "map-for"];
  return css(colours["map-zero"].map((channel, at) => Math.round(channel + (end[at] - channel) * share)));
}

function sharpContext(canvas, width, height) {
  const dense = window.devicePixelRatio || 1, context = canvas.getContext("2d");
  canvas.width = Math.round(width * dense);
  canvas.height = Math.round(height * dense);
  context.scale(dense, dense);
  context.font = FONT;
  context.textBaseline = "middle";
  return context;
}

function labelOf(number) {
  const letters = [...harmless(shown.explanation.words[number].word)];
  return letters.length > LONGEST_LABEL ? `${letters.slice(0, LONGEST_LABEL - 1).join("")}…` : letters.join("");
}

// The layout of the cells, with room for the longest word to the left and above.
function placesIn(canvas) {
  const context = canvas.getContext("2d"), side = canvas.clientWidth;
  context.font = FONT;
  const margin = Math.max(24, ...shown.words.map((number) => context.measureText(labelOf(number)).width)) + 8;
  return { side, margin, cell: Math.min(44, (side - margin - 2) / shown.words.length) };
}

function drawMap(canvas, weights, colours) {
  const { side, margin, cell } = placesIn(canvas), { words } = shown, extent = cell * words.length;
  canvas.style.height = `${margin + extent + 2}px`;
  const context = sharpContext(canvas, side, margin + extent + 2), gap = cell > 10 ? 1 : 0;
  words.forEach((row, y) => words.forEach((column, x) => {
    context.fillStyle = shadeOf(weights[row][column], colours);
    context.fillRect(margin + x * cell, margin + y * cell, cell - gap, cell - gap);
  }));
  context.strokeStyle = css(colours.soft);
  context.globalAlpha = 0.4;
  context.strokeRect(margin - 0.5, margin - 0.5, extent, extent);
  context.globalAlpha = 1;
  drawLabels(context, margin, cell, colours);
  drawCross(context, margin, cell, colours);
}

function drawLabels(context, margin, cell, colours) {
  context.textAlign = "right";
  shown.words.forEach((number, at) => {
    const middle = margin + (at + 0.5) * cell, write = (isChosen, x, y) => {
      context.font = isChosen ? `bold ${FONT}` : FONT;
      context.fillStyle = css(isChosen ? colours.focus : colours.ink);
      context.fillText(labelOf(number), x, y);
    };
    write(number === shown.row, margin - 6, middle);
    context.save();
    context.translate(middle, margin - 6);
    context.rotate(Math.PI / 2);
    write(number === shown.column, 0, 0);
    context.restore();
  });
}

function drawCross(context, margin, cell, colours) {
  const extent = cell * shown.words.length, y = shown.words.indexOf(shown.row), x = shown.words.indexOf(shown.column);
  if (x < 0 || y < 0) return;
  context.strokeStyle = css(colours.focus);
  context.lineWidth = 1.5;
  context.strokeRect(margin, margin + y * cell - 0.5, extent, cell);
  context.strokeRect(margin + x * cell - 0.5, margin, cell, extent);
}

function drawScale(canvas, colours) {
  const width = canvas.clientWidth, height = 38, pad = 30, context = sharpContext(canvas, width, height), n = 120;
  const first = shown.hasBelow ? -1 : 0, xOf = (share) => pad + ((width - 2 * pad) * (share - first)) / (1 - first);
  const weightOf = (share) => Math.sign(share) * Math.abs(share) ** (1 / LIFT) * shown.greatest; // even steps of colour
  for (let at = 0; at < n; at++) {
    const share = first + ((1 - first) * at) / (n - 1);
    context.fillStyle = shadeOf(weightOf(share), colours);
    context.fillRect(xOf(first) + ((width - 2 * pad) * at) / n, 2, (width - 2 * pad) / n + 1, 12);
  }
  context.strokeStyle = css(colours.soft);
  context.strokeRect(pad - 0.5, 1.5, width - 2 * pad + 1, 13);
  context.fillStyle = css(colours.ink);
  context.textAlign = "center";
  for (const share of shown.hasBelow ? [-1, 0, 1] : [0, 0.5, 1]) context.fillText(numberText(weightOf(share)), xOf(share), 27);
}

// --- pointing

function moveTo(row, column) {
  Object.assign(shown, { row, column });
  redraw();
  const [standard, effective] = KINDS.map((kind) => numberText(shown.maps.between[kind][row][column]));
  const [query, key] = [row, column].map((number) => quoted(shown.explanation.words[number].word));
  byId("cell-said").replaceChildren(query, " looks at ", key, `: standard ${standard}, effective ${effective}.`);
}

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export function listenToMaps() {
  for (const kind of KINDS) {
    const canvas = byId(kind);
    canvas.addEventListener("keydown", (event) => {
      if (!shown || !ARROWS[event.key]) return;
      event.preventDefault();
      const { words, row, column } = shown, last = words.length - 1, isNew = row === undefined;
      const [y, x] = [row, column].map((number, at) => (isNew ? 0 : Math.max(0, Math.min(last, words.indexOf(number) + ARROWS[event.key][at]))));
      moveTo(words[y], words[x]);
    });
    for (const how of ["pointermove", "pointerdown"]) {
      canvas.addEventListener(how, (event) => {
        if (!shown) return;
        const { margin, cell } = placesIn(canvas), box = canvas.getBoundingClientRect();
        const [row, column] = [event.clientY - box.top, event.clientX - box.left].map((at) => shown.words[Math.floor((at - margin) / cell)]);
        if (row === undefined || column === undefined || (row === shown.row && column === shown.column)) return;
        moveTo(row, column);
      });
    }
  }
}

// --- bars

function showBars({ words }, { received }, there) {
  const greatest = Math.max(...KINDS.flatMap((kind) => received[kind].map(Math.abs))) || 1;
  const rows = there.map((number) => element("li", {}, element("bdi", { textContent: harmless(words[number].word) }), ...KINDS.map((kind) => barOf(kind, received[kind][number], greatest))));
  const key = element("p", { className: "key" }, ...KINDS.map((kind) => element("span", { className: `key-${kind}`, textContent: kind })));
  byId("bars").replaceChildren(key, element("ol", {}, ...rows));
}

function barOf(kind, weight, greatest) {
  const bar = element("span", { className: `bar ${kind}${weight < 0 ? " below" : ""}`, title: `${kind} ${numberText(weight)}` });
  bar.style.inlineSize = `${(Math.abs(weight) / greatest) * 100}%`;
  return bar;
}
