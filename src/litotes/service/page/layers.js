// A slider over the layers: which words are still there, how many pieces each layer sees, and what looks at what.

import { byId, element } from "./harmless.js";
import { counted, plural } from "./numbers.js";
import { showMaps } from "./maps.js";
import { fillText } from "./words.js";

// How many pieces each layer sees, as keys and values.
function nSeen({ pieces, layers }) {
  return layers.map((_, layer) => pieces.filter(({ left_at_layer: left }) => left === null || left >= layer).length);
}

// Called once for each explanation.
export function showLayers(explanation) {
  if (explanation.layers.length === 0) return; // a service without torch does not look inside
  const { layers, pieces } = explanation, seen = nSeen(explanation), slider = byId("layer");
  slider.max = layers.length;
  slider.style.inlineSize = `calc(${(100 * (layers.length - 1)) / layers.length}% + 1rem)`; // its ends stand under the first and the last bar
  byId("leaving-note").textContent = seen.at(-1) === pieces.length && seen[0] === pieces.length
    ? `No word leaves: each of the ${plural(layers.length, "layer")} sees all ${plural(pieces.length, "piece")} of the text. The slider changes the attention below.`
    : `Of ${plural(pieces.length, "piece")} the last layer sees ${counted(seen.at(-1))}. What has left does not come back.`;
  byId("funnel").replaceChildren(...seen.map((n) => {
    const column = element("span", {}, element("b", { textContent: counted(n) }), element("i"));
    column.lastChild.style.setProperty("--share", n / pieces.length);
    return column;
  }));
  fillText(byId("fading"), explanation, (number, letters) => {
    const word = element("span", { className: "word", textContent: letters });
    word.dataset.word = number;
    return word;
  });
}

// layer: from 1, as people count.
export function showLayer(explanation, layer, chosen) {
  if (explanation.layers.length === 0) return;
  const { words, layers, pieces } = explanation, number = layer - 1;
  const said = `Layer ${layer} of ${layers.length} sees ${counted(nSeen(explanation)[number])} of ${plural(pieces.length, "piece")} with ${plural(layers[number].attention_heads, "attention head")}.`;
  byId("layer").value = layer;
  byId("layer").setAttribute("aria-valuetext", said);
  byId("layer-said").textContent = said;
  [...byId("funnel").children].forEach((column, at) => column.classList.toggle("here", at === number));
  for (const span of byId("fading").querySelectorAll(".word")) {
    const left = words[span.dataset.word].left_at_layer;
    span.classList.toggle("gone", left !== null && left < number);
  }
  showMaps(explanation, number, chosen);
}
