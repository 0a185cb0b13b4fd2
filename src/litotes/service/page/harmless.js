// Texts on the page: they are never read as HTML, and invisible characters are shown by their code (core/harmless.py does the same).

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}]/gu;
const KEPT = "\n\r\t\u200c\u200d"; // white space, and invisible characters that join letters and emoji

// Shows control characters, marks of text direction and lone surrogates by their code, as ‹U+202E›.
export function harmless(text) {
  return text.replace(INVISIBLE, (char) => (KEPT.includes(char) ? char : `‹U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`));
}

// A word in a sentence; isolated, so that one written from right to left does not reorder the sentence.
export function quoted(text) {
  return element("bdi", { textContent: `“${harmless(text)}”` });
}

// An element with properties; children are elements or strings, and strings are never read as HTML.
export function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

export const byId = (id) => document.getElementById(id);

// Only white space, as Python defines it: four old separators count there, and not in JavaScript.
export const isBlank = (text) => !/[^\s\x1c-\x1f\x85]/.test(text);

// Characters as the service and Python count them: an emoji is one, not two.
export const nCharacters = (text) => [...text].length;
