// The words that a model of words marks, such as where the sarcasm sits; nothing where the service has no such model.

import { byId, element, harmless } from "./harmless.js";

export function showLocus({ text, locus }) {
  byId("locus").hidden = !locus;
  if (!locus) return;
  const characters = [...text], parts = []; // the service counts characters, JavaScript code units
  let end = 0;
  for (const { start, end: stop, label } of locus.marks) {
    parts.push(harmless(characters.slice(end, start).join("")));
    const named = label === null ? [] : [element("small", { textContent: ` ${harmless(label)}` })];
    parts.push(element("mark", {}, harmless(characters.slice(start, stop).join("")), ...named));
    end = stop;
  }
  byId("locus-title").textContent = locus.title;
  byId("locus-text").replaceChildren(...parts, harmless(characters.slice(end).join("")));
  byId("locus-note").textContent = locus.notes.join(" ");
}
