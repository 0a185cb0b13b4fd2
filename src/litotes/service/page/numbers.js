// Numbers and shares in words.

export const counted = (n) => n.toLocaleString("en-GB");

export const plural = (n, one, many = `${one}s`) => `${counted(n)} ${n === 1 ? one : many}`;

// Two significant digits, with a typographic minus.
export function numberText(value) {
  return String(Number(value.toPrecision(2))).replace(/^-/, "−");
}

export const signedText = (value) => `${value > 0 ? "+" : ""}${numberText(value)}`;

// No model is certain, whatever floating point says.
export function shareText(share) {
  return share >= 0.995 ? "over 99 %" : `${Math.round(share * 100)} %`;
}

const SURENESS = [[0.97, "almost certainly"], [0.9, "clearly"], [0.75, "probably"], [0.6, "leaning"], [0, "barely"]];

// E.g. `leaning sarcastic`; several labels with commas between; a regression's number as it is.
export function inWords({ label, probability }) {
  if (Array.isArray(label)) return label.join(", ") || "none of them";
  if (probability === null) return typeof label === "number" ? numberText(label) : String(label);
  return `${SURENESS.find(([least]) => probability >= least)[1]} ${label}`;
}
