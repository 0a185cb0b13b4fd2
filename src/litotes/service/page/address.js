// The view in the address: #text=…&task=sarcasm&method=effective&layer=3. What follows the # never leaves the browser.

export const LONGEST_LINK = 8000; // characters; mail and chat programs cut longer ones

const KEYS = ["text", "pair", "task", "method", "layer", "reading", "model", "variety"];

export function readAddress() {
  const found = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(KEYS.filter((key) => found.has(key)).map((key) => [key, found.get(key)]));
}

// The link to a view, and whether it is too long to be of use.
export function linkTo(view) {
  const named = KEYS.filter((key) => view[key]).map((key) => [key, String(view[key]).toWellFormed()]);
  const link = `${location.origin}${location.pathname}#${new URLSearchParams(named)}`;
  return { link, isTooLong: link.length > LONGEST_LINK };
}

// Without the text if it is too long: the address must never show another text than the page.
export function writeAddress(view) {
  const { link, isTooLong } = linkTo(view);
  history.replaceState(null, "", isTooLong ? linkTo({ ...view, text: "", pair: "" }).link : link);
}
