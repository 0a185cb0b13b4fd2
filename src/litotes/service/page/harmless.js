// Texts on the page: they stay text, and what cannot be seen is shown by its number (why/harmless.py does the same).

const STEERING = /[\p{Cc}\p{Cf}\p{Cs}]/gu;
const KEPT = "\n\r\t\u200c\u200d"; // ends of lines and blanks; and what cannot be seen, but joins letters and emoji

// The text with characters that steer instead of being read as ‹U+202E›: controls, those that turn the direction, lone surrogates.
export function harmless(text) {
  return text.replace(STEERING, (char) => (KEPT.includes(char) ? char : `‹U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`));
}

// A word in a sentence: apart, so that one written from right to left does not turn the sentence around.
export function quoted(text) {
  return element("bdi", { textContent: `“${harmless(text)}”` });
}

// An element with properties; children are elements or strings, and strings are never read as HTML.
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

// Nothing but blanks, as Python sees it: it takes four old separators for blanks, and JavaScript does not.
export const isBlank = (text) => !/[^\s\x1c-\x1f\x85]/.test(text);

// Characters as the service and Python count them: an emoji is one, not two.
export const nCharacters = (text) => [...text].length;
