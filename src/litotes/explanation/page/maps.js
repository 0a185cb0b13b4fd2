"use strict";
// Attention maps: unpacked when somebody looks (packed.py says how they are packed), and drawn.

const facts = JSON.parse(document.getElementById("facts").textContent);
const unpackedMaps = new Map(); // the last few, by layer, place and kind
const N_REMEMBERED = 40;

function bytesOfBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

async function inflated(id) {
  const packed = new Blob([bytesOfBase64(document.getElementById(id).textContent)]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

// w = scale · (q / levels)²
function fromLevels(buffer, { levels, scales: [scale] }) {
  const steps = levels > 127 ? new Uint8Array(buffer) : new Int8Array(buffer);
  return Float32Array.from(steps, (q) => (Math.sign(q) * scale * q * q) / (levels * levels));
}

// L R, with the scales of the ranks in between; L and R lie piece by piece
function fromFactors(buffer, { scales }, nPieces) {
  const rank = scales.length, steps = new Int8Array(buffer), weights = new Float32Array(nPieces * nPieces);
  const right = steps.subarray(nPieces * rank), scaled = new Float32Array(rank);
  for (let query = 0; query < nPieces; query++) {
    for (let r = 0; r < rank; r++) scaled[r] = steps[query * rank + r] * scales[r];
    for (let key = 0; key < nPieces; key++) {
      let sum = 0;
      for (let r = 0, at = key * rank; r < rank; r++) sum += scaled[r] * right[at + r];
      weights[query * nPieces + key] = sum;
    }
  }
  return weights;
}

// The weights of one attention head, row by row; `place` counts the heads that are there. Without a map of its own the effective one is the standard one.
async function weightsOf(layer, place, kind) {
  const head = facts.layers[layer].heads[place], shown = head[kind] ? kind : "standard";
  const key = `${layer}-${place}-${shown}`;
  if (!unpackedMaps.has(key)) {
    const buffer = await inflated(`map-${key}`), about = head[shown];
    unpackedMaps.set(key, about.levels ? fromLevels(buffer, about) : fromFactors(buffer, about, facts.layers[layer].origin.length));
    if (unpackedMaps.size > N_REMEMBERED) unpackedMaps.delete(unpackedMaps.keys().next().value);
  }
  return unpackedMaps.get(key);
}

async function meanWeights(layer, kind) {
  const key = `${layer}-mean-${kind}`;
  if (!unpackedMaps.has(key)) {
    const nHeads = facts.layers[layer].heads.length, mean = new Float32Array(facts.layers[layer].origin.length ** 2);
    for (let place = 0; place < nHeads; place++) {
      const weights = await weightsOf(layer, place, kind);
      for (let at = 0; at < mean.length; at++) mean[at] += weights[at] / nHeads;
    }
    unpackedMaps.set(key, mean);
  }
  return unpackedMaps.get(key);
}

// How far a weight may be off: half a step of its level, or the greatest error of the factors
function errorOf(layer, place, kind, weight) {
  const heads = facts.layers[layer].heads, shown = place < 0 ? heads : [heads[place]];
  return Math.max(...shown.map((head) => {
    const about = head[kind] || head.standard;
    if (!about.levels) return about.error;
    return Math.max(Math.sqrt(Math.abs(weight) * about.scales[0]) / about.levels, about.scales[0] / (4 * about.levels ** 2));
  }));
}

function greatestOf(weights) {
  let greatest = 0;
  for (const weight of weights) if (Math.abs(weight) > greatest) greatest = Math.abs(weight);
  return greatest || 1;
}

function pieceAt(layer, place) {
  const origin = facts.layers[layer].origin[place];
  return origin < 0 ? "(those gone)" : facts.pieces[origin];
}

function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function rgbOf(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

// 511 colours from the most negative over 0 in the middle to the most positive
function paletteOf() {
  const [zero, above, below] = ["--map-zero", "--map-for", "--map-against"].map((name) => rgbOf(themeColour(name)));
  return Array.from({ length: 511 }, (_, at) => {
    const share = Math.abs(at - 255) / 255, end = at < 255 ? below : above;
    return zero.map((channel, c) => Math.round(channel + (end[c] - channel) * share));
  });
}

function paletteIndex(weight, greatest, power) {
  return 255 + Math.round(Math.sign(weight) * 255 * Math.min(1, Math.abs(weight) / greatest) ** power);
}

// The part of a map that is seen, a pixel for each cell
function bitmapOf(weights, nPieces, seen, greatest, power, palette) {
  const bitmap = document.createElement("canvas");
  bitmap.width = bitmap.height = seen.n;
  const image = new ImageData(seen.n, seen.n);
  for (let row = 0, to = 0; row < seen.n; row++) {
    for (let column = 0, at = (seen.row + row) * nPieces + seen.column; column < seen.n; column++, at++) {
      const colour = palette[paletteIndex(weights[at], greatest, power)];
      image.data[to++] = colour[0]; image.data[to++] = colour[1]; image.data[to++] = colour[2]; image.data[to++] = 255;
    }
  }
  bitmap.getContext("2d").putImageData(image, 0, 0);
  return bitmap;
}

const FEWEST_PIXELS = 10; // of a cell whose piece can be written beside it
const LABEL_FONT = "11px system-ui, sans-serif";

// Where the cells lie in a canvas: beside and above them is room for pieces, or for numbers where cells are too small
function placesIn(canvas, layer, seen) {
  const side = canvas.clientWidth, context = canvas.getContext("2d");
  context.font = LABEL_FONT;
  const isWritten = (side - 80) / seen.n >= FEWEST_PIXELS;
  let margin = 34;
  if (isWritten) {
    for (let k = 0; k < seen.n; k++) {
      for (const start of [seen.row, seen.column]) margin = Math.max(margin, context.measureText(pieceAt(layer, start + k)).width + 8);
    }
  }
  margin = Math.min(margin, 96);
  return { side, margin, isWritten, cell: (side - margin - 2) / seen.n };
}

function drawMap(canvas, bitmap, layer, seen, cursor) {
  const { side, margin, isWritten, cell } = placesIn(canvas, layer, seen), dense = window.devicePixelRatio || 1;
  canvas.width = canvas.height = Math.round(side * dense);
  const context = canvas.getContext("2d"), extent = cell * seen.n;
  context.scale(dense, dense);
  context.imageSmoothingEnabled = cell * dense < 1;
  context.drawImage(bitmap, margin, margin, extent, extent);
  context.strokeStyle = themeColour("--soft");
  context.strokeRect(margin - 0.5, margin - 0.5, extent + 1, extent + 1);
  if (cursor.isPointing) drawCross(context, seen, cursor, margin, cell);
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  context.textAlign = "right";
  (isWritten ? drawPieces : drawNumbers)(context, layer, seen, cursor, margin, cell);
}

// Thin cells are framed from outside, so that the line does not cover them.
function drawCross(context, seen, cursor, margin, cell) {
  const extent = cell * seen.n, apart = cell < 6 ? 1 : 0;
  const row = margin + (cursor.row - seen.row) * cell, column = margin + (cursor.column - seen.column) * cell;
  context.strokeStyle = themeColour("--cross");
  context.lineWidth = cell < 6 ? 1 : 1.5;
  context.strokeRect(margin, row - apart, extent, cell + 2 * apart);
  context.strokeRect(column - apart, margin, cell + 2 * apart, extent);
}

function drawPieces(context, layer, seen, cursor, margin, cell) {
  for (let k = 0; k < seen.n; k++) {
    const middle = margin + (k + 0.5) * cell;
    label(context, pieceAt(layer, seen.row + k), margin - 5, middle, cursor.isPointing && cursor.row === seen.row + k);
    context.save();
    context.translate(middle, margin - 5);
    context.rotate(Math.PI / 2);
    label(context, pieceAt(layer, seen.column + k), 0, 0, cursor.isPointing && cursor.column === seen.column + k);
    context.restore();
  }
}

function drawNumbers(context, layer, seen, cursor, margin, cell) {
  const step = [5, 10, 20, 50, 100, 200].find((distance) => distance * cell > 32) || 500;
  context.strokeStyle = themeColour("--soft");
  for (const [start, isRow] of [[seen.row, true], [seen.column, false]]) {
    for (let place = Math.ceil((start + 1) / step) * step - 1; place < start + seen.n; place += step) {
      const middle = margin + (place - start + 0.5) * cell;
      context.beginPath();
      context.moveTo(...(isRow ? [margin - 5, middle] : [middle, margin - 5]));
      context.lineTo(...(isRow ? [margin, middle] : [middle, margin]));
      context.stroke();
      context.textAlign = isRow ? "right" : "center";
      label(context, String(place + 1), isRow ? margin - 7 : middle, isRow ? middle : margin - 13, false);
    }
  }
}

function label(context, text, x, y, isChosen) {
  context.font = (isChosen ? "bold " : "") + LABEL_FONT;
  context.fillStyle = themeColour(isChosen ? "--cross" : "--ink");
  context.fillText(text.length > 14 ? `${text.slice(0, 13)}…` : text, x, y);
}

function drawScale(canvas, greatest, power, palette, hasBelow) {
  const dense = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight, pad = 26;
  canvas.width = width * dense; canvas.height = height * dense;
  const context = canvas.getContext("2d"), first = hasBelow ? 0 : 255;
  context.scale(dense, dense);
  const xOf = (at) => pad + ((width - 2 * pad) * (at - first)) / (510 - first);
  for (let at = first; at <= 510; at++) {
    context.fillStyle = `rgb(${palette[at].join(" ")})`;
    context.fillRect(xOf(at), 2, (width - 2 * pad) / (510 - first) + 1, 14);
  }
  context.fillStyle = themeColour("--ink");
  context.font = LABEL_FONT;
  context.textAlign = "center";
  for (const share of hasBelow ? [-1, -0.25, 0, 0.25, 1] : [0, 0.0625, 0.25, 0.5625, 1]) {
    const x = xOf(paletteIndex(share * greatest, greatest, power));
    context.fillRect(x - 0.5, 16, 1, 5);
    context.fillText(numberText(share * greatest), x, 33);
  }
}

function drawThumb(canvas, steps, power, palette) {
  const n = Math.round(Math.sqrt(steps.length)), image = new ImageData(n, n);
  canvas.width = canvas.height = n;
  steps.forEach((q, at) => image.data.set([...palette[paletteIndex(q * Math.abs(q), 127 * 127, power)], 255], 4 * at));
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function numberText(value) {
  return String(Number(value.toPrecision(2))).replace(/^-/, "−");
}
