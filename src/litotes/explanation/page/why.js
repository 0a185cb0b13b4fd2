// What the reader looks at: one state, kept in the address, and what is drawn from it.

const byId = (id) => document.getElementById(id);
const nLayers = facts.heads.length, nMapped = facts.layers.length; // the last ones may see no word and have no map
const state = { method: facts.method, step: facts.shown + 1, layer: facts.shown + 1, head: "mean", row: 0, column: 0, isPointing: false, n: 0, power: facts.pieces.length > 64 ? 0.25 : 0.5, thumbs: "standard" };
let shown = null; // the maps on display: {layer, place, nPieces, isOne, greatest, standard, effective, bitmaps}
let asked = 0;

// --- the address: #layer=3&head=5&method=rollout; layers and heads from 1

function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (Object.hasOwn(facts.methods, asked.get("method") ?? "")) state.method = asked.get("method");
  if (asked.has("layer")) state.layer = within(asked.get("layer"), 1, nMapped);
  if (asked.has("step")) state.step = within(asked.get("step"), 1, nLayers);
  if (asked.has("head")) state.head = asked.get("head") === "mean" ? "mean" : within(asked.get("head"), 1, 10000);
  state.isPointing ||= asked.has("query") || asked.has("key");
  if (asked.has("query")) state.row = within(asked.get("query"), 1, 100000) - 1;
  if (asked.has("key")) state.column = within(asked.get("key"), 1, 100000) - 1;
}

function writeAddress() {
  const { method, layer, head, step, row, column } = state;
  const pointed = state.isPointing ? { query: row + 1, key: column + 1 } : {};
  history.replaceState(null, "", `#${new URLSearchParams({ method, layer, head, step, ...pointed })}`);
}

function within(value, low, high) {
  return Math.min(high, Math.max(low, Math.round(Number(value)) || low));
}

// --- words

const wordsIn = (id) => document.querySelectorAll(`#${id} .word`);

function showMethod() {
  const method = facts.methods[state.method];
  for (const span of wordsIn("text")) span.className = `word ${method.classes[span.dataset.word]}`.trim();
  byId("shaded").className = method.isSigned ? "signed" : "unsigned";
  for (const input of document.querySelectorAll('input[name="method"]')) {
    input.checked = input.value === state.method;
    input.closest("tr").classList.toggle("chosen", input.checked);
  }
}

function sayWord(number) {
  const word = facts.words[number], method = facts.methods[state.method], weight = method.weights[number];
  const rank = method.weights.filter((other) => Math.abs(other) > Math.abs(weight)).length + 1;
  const left = word.left === null ? "" : ` It left after layer ${word.left + 1}.`;
  said("word-said", ["", quoted(word.written), `: ${signed(weight)} by ${method.name}, number ${rank} of ${facts.words.length} words.${left}`]);
}

// Words stand between direction marks of their own, so that right-to-left ones do not turn the sentence around.
function said(id, parts) {
  byId(id).replaceChildren(...parts);
}

function quoted(text) {
  const apart = document.createElement("bdi");
  apart.textContent = `“${text}”`;
  return apart;
}

function signed(weight) {
  return `${weight > 0 ? "+" : ""}${numberText(weight)}`;
}

function roam(spans) {
  const all = [...spans];
  all.forEach((span, at) => {
    span.tabIndex = at ? -1 : 0;
    span.addEventListener("keydown", (event) => {
      const back = event.key === "ArrowLeft" || event.key === "ArrowUp", on = event.key === "ArrowRight" || event.key === "ArrowDown";
      if (event.key === "Enter" || event.key === " ") span.click();
      else if (!back && !on) return;
      event.preventDefault();
      const turned = getComputedStyle(span).direction === "rtl" && event.key.match(/Left|Right/) ? -1 : 1;
      const next = all[at + (back ? -turned : on ? turned : 0)];
      if (!next || next === span) return;
      span.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
    span.addEventListener("focus", () => sayWord(span.dataset.word));
    span.addEventListener("mouseenter", () => sayWord(span.dataset.word));
    span.addEventListener("click", () => followWord(facts.words[span.dataset.word]));
  });
}

// A word chosen in the text is the column the maps point at, where the layer still sees it.
function followWord(word) {
  const at = facts.layers[state.layer - 1].origin.findIndex((origin) => word.pieces.includes(origin));
  if (at >= 0) moveTo(state.row, at);
}

// --- fading

function showStep() {
  if (!byId("step")) return;
  const layer = state.step - 1, isThere = (piece) => facts.left[piece] === null || facts.left[piece] >= layer;
  for (const span of wordsIn("fading-text")) {
    const pieces = facts.words[span.dataset.word].pieces, n = pieces.filter(isThere).length;
    span.className = `word${n === 0 ? " gone" : n < pieces.length ? " partly" : ""}`;
  }
  const nSeen = facts.left.filter((_, piece) => isThere(piece)).length;
  const words = `layer ${state.step} of ${nLayers} sees ${nSeen} of ${facts.left.length} pieces with ${facts.heads[layer].length} attention heads`;
  byId("step").value = state.step;
  byId("step").setAttribute("aria-valuetext", words);
  byId("step-said").textContent = words;
}

// --- maps

const kinds = ["standard", "effective"];
const panels = () => (shown.isOne ? ["standard"] : kinds); // both are one where nothing hides in a null space

async function showMaps() {
  const turn = ++asked, layer = state.layer - 1, heads = facts.layers[layer].heads;
  const place = state.head === "mean" ? -1 : heads.findIndex((head) => head.number + 1 === Number(state.head));
  if (place < 0) state.head = "mean"; // this layer does not have the head
  fillHeads(heads);
  const [standard, effective] = await Promise.all(kinds.map((kind) => (place < 0 ? meanWeights(layer, kind) : weightsOf(layer, place, kind))));
  if (turn !== asked) return; // the reader has gone on
  const nPieces = facts.layers[layer].origin.length;
  // standard weights end at 1, effective ones may lie beyond
  const isOne = nullsOf(heads, place).every((n) => n === 0), greatest = Math.max(1, greatestOf(effective));
  shown = { layer, place, nPieces, isOne, standard, effective, greatest };
  byId("maps").classList.toggle("one", isOne);
  byId("effective").closest("figure").hidden = isOne;
  byId("standard-name").textContent = isOne ? "standard and effective, which are the same" : "standard";
  state.n = Math.min(state.n || nPieces, nPieces);
  byId("null-said").textContent = aboutNullSpace(heads, place, nPieces);
  moveTo(state.row, state.column, { isPointed: state.isPointing });
  markThumb();
  document.documentElement.dataset.shown = `${state.layer}/${state.head}`;
}

function nullsOf(heads, place) {
  return place < 0 ? heads.map((head) => head.nNull) : [heads[place].nNull];
}

function aboutNullSpace(heads, place, nPieces) {
  const nulls = nullsOf(heads, place), low = Math.min(...nulls), high = Math.max(...nulls);
  const which = place < 0 ? `Layer ${state.layer}, the mean of its ${heads.length} attention heads` : `Layer ${state.layer}, attention head ${heads[place].number + 1}`;
  if (high === 0) return `${which}: standard and effective attention are the same, so one map is shown. ${nPieces} pieces are no more than an attention head is wide, and nothing of the weights is lost.`;
  return `${which}: of ${nPieces} dimensions ${low === high ? low : `${low} to ${high}`} lie in the null space and have no effect.`;
}

function fillHeads(heads) {
  const options = [new Option("mean of all", "mean"), ...heads.map((head) => new Option(head.number + 1, head.number + 1))];
  byId("head").replaceChildren(...options);
  byId("head").value = String(state.head);
  byId("layer").value = String(state.layer);
}

// The cursor moves, and what is seen moves along with it.
function moveTo(row, column, { isPointed = true } = {}) {
  if (!shown) return;
  state.isPointing = isPointed;
  state.row = Math.max(0, Math.min(shown.nPieces - 1, row));
  state.column = Math.max(0, Math.min(shown.nPieces - 1, column));
  const before = shown.seen, start = (at, old) => Math.max(0, Math.min(shown.nPieces - state.n, at < old ? at : at >= old + state.n ? at - state.n + 1 : old));
  shown.seen = { n: state.n, row: start(state.row, before ? before.row : 0), column: start(state.column, before ? before.column : 0) };
  const isSame = before && ["n", "row", "column"].every((key) => before[key] === shown.seen[key]);
  drawMaps(!isSame || !shown.bitmaps);
  if (isPointed) sayCell();
}

function drawMaps(isNew) {
  if (isNew) {
    const palette = paletteOf();
    shown.bitmaps = panels().map((kind) => bitmapOf(shown[kind], shown.nPieces, shown.seen, shown.greatest, state.power, palette));
    drawScale(byId("scale"), shown.greatest, state.power, palette, !shown.isOne);
  }
  panels().forEach((kind, at) => drawMap(byId(kind), shown.bitmaps[at], shown.layer, shown.seen, state));
}

function sayCell() {
  const at = state.row * shown.nPieces + state.column;
  const weights = panels().map((kind) => {
    const weight = shown[kind][at];
    return `${kind} ${numberText(weight)} ± ${numberText(errorOf(shown.layer, shown.place, kind, weight))}`;
  });
  const query = quoted(pieceAt(shown.layer, state.row)), key = quoted(pieceAt(shown.layer, state.column));
  said("cell-said", [query, ` (${state.row + 1}) looks at `, key, ` (${state.column + 1}): ${weights.join(", ")}.`]);
}

function zoom(factor) {
  if (!shown) return; // the maps are still being unpacked
  const n = Math.max(Math.min(8, shown.nPieces), Math.min(shown.nPieces, Math.round(state.n * factor)));
  state.n = n;
  shown.seen = { n, row: centred(state.row, n), column: centred(state.column, n) };
  drawMaps(true);
}

function centred(at, n) {
  return Math.max(0, Math.min(shown.nPieces - n, at - Math.floor(n / 2)));
}

function choose(layer, head) {
  state.layer = within(layer, 1, nMapped);
  state.head = head;
  writeAddress();
  return showMaps();
}

// Neighbours of the head on display, among those its layer has; the mean comes first.
function chooseBeside(layers, places) {
  const layer = within(state.layer + layers, 1, nMapped), heads = ["mean", ...facts.layers[layer - 1].heads.map((head) => head.number + 1)];
  const at = Math.max(0, heads.findIndex((head) => String(head) === String(state.head)));
  return choose(layer, heads[within(at + places, 0, heads.length - 1)]);
}

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function listenToMap(canvas) {
  canvas.addEventListener("keydown", (event) => {
    const arrow = ARROWS[event.key];
    if (event.key === "+" || event.key === "=") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (arrow && event.shiftKey) chooseBeside(...arrow);
    else if (arrow) moveTo(state.row + arrow[0], state.column + arrow[1]);
    else return;
    event.preventDefault();
    writeAddress();
  });
  for (const kind of ["pointermove", "pointerdown"]) {
    canvas.addEventListener(kind, (event) => {
      if (!shown) return;
      const { margin, cell } = placesIn(canvas, shown.layer, shown.seen), box = canvas.getBoundingClientRect();
      const row = Math.floor((event.clientY - box.top - margin) / cell), column = Math.floor((event.clientX - box.left - margin) / cell);
      if (Math.min(row, column) < 0 || Math.max(row, column) >= shown.seen.n) return;
      moveTo(shown.seen.row + row, shown.seen.column + column);
    });
  }
}

// --- all attention heads, small

function showThumbs() {
  const all = facts.layers.flatMap((layer) => layer.heads.map((head) => head.number)), columns = Math.max(...all, 0) + 2, palette = paletteOf();
  const cells = [document.createElement("span"), ...["mean", ...Array(columns - 1).keys()].map((head) => spanOf(head === "mean" ? "all" : head + 1))];
  cells[1].title = "mean of all";
  facts.layers.forEach((layer, at) => {
    const steps = new Int8Array(bytesOfBase64(layer.thumbs[state.thumbs]).buffer), size = steps.length / (layer.heads.length + 1);
    const pictures = new Map([["mean", 0], ...layer.heads.map((head, place) => [head.number, place + 1])]);
    cells.push(spanOf(at + 1));
    for (const head of ["mean", ...Array(columns - 1).keys()]) {
      const place = pictures.get(head);
      cells.push(place === undefined ? spanOf("·") : thumbButton(at + 1, head === "mean" ? head : head + 1, steps.subarray(place * size, (place + 1) * size), palette));
    }
  });
  byId("thumbs").style.setProperty("--columns", columns);
  byId("thumbs").replaceChildren(...cells);
  markThumb();
}

function spanOf(text) {
  const span = document.createElement("span");
  span.textContent = text;
  return span;
}

function thumbButton(layer, head, steps, palette) {
  const button = document.createElement("button"), canvas = document.createElement("canvas");
  Object.assign(button, { type: "button", tabIndex: -1, title: `layer ${layer}, ${head === "mean" ? "mean of its heads" : `attention head ${head}`}` });
  Object.assign(button.dataset, { layer, head });
  button.setAttribute("aria-label", button.title);
  drawThumb(canvas, steps, state.power, palette);
  button.append(canvas);
  return button;
}

function markThumb() {
  for (const button of document.querySelectorAll("#thumbs button")) {
    const isShown = Number(button.dataset.layer) === state.layer && button.dataset.head === String(state.head);
    button.setAttribute("aria-pressed", isShown);
    button.tabIndex = isShown ? 0 : -1;
  }
}

function listenToThumbs() {
  byId("thumbs").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) choose(button.dataset.layer, button.dataset.head);
  });
  byId("thumbs").addEventListener("keydown", async (event) => {
    if (!ARROWS[event.key]) return;
    event.preventDefault();
    await chooseBeside(...ARROWS[event.key]);
    document.querySelector('#thumbs [aria-pressed="true"]')?.focus();
  });
}

// --- all together

function showAll() {
  showMethod();
  showStep();
  return showMaps();
}

function recolour() {
  if (shown) drawMaps(true);
  showThumbs();
}

function listen() {
  byId("power").value = String(state.power);
  byId("thumb-kinds").hidden = facts.layers.every((layer) => layer.heads.every((head) => head.nNull === 0));
  for (const input of document.querySelectorAll('input[name="method"]')) {
    input.addEventListener("change", () => { state.method = input.value; showMethod(); writeAddress(); });
  }
  for (const input of document.querySelectorAll('input[name="thumbs"]')) {
    input.addEventListener("change", () => { state.thumbs = input.value; showThumbs(); });
  }
  byId("step")?.addEventListener("input", (event) => { state.step = Number(event.target.value); showStep(); writeAddress(); });
  byId("layer").addEventListener("change", (event) => choose(event.target.value, state.head));
  byId("head").addEventListener("change", (event) => choose(state.layer, event.target.value));
  byId("power").addEventListener("change", (event) => { state.power = Number(event.target.value); recolour(); });
  byId("closer").addEventListener("click", () => zoom(0.5));
  byId("further").addEventListener("click", () => zoom(2));
  for (const kind of kinds) listenToMap(byId(kind));
  listenToThumbs();
  roam(wordsIn("text"));
  addEventListener("hashchange", () => { readAddress(); showAll(); });
  addEventListener("resize", () => { if (shown) drawMaps(true); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  addEventListener("beforeprint", () => { document.documentElement.dataset.print = ""; recolour(); });
  addEventListener("afterprint", () => { delete document.documentElement.dataset.print; recolour(); });
}

document.documentElement.classList.add("scripted");
readAddress();
listen();
showThumbs();
showAll();
