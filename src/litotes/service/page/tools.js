// The two buttons at the top: a link to the view, and dark or light.

import { LONGEST_LINK, linkTo, writeAddress } from "./address.js";
import { byId } from "./harmless.js";
import { redraw } from "./maps.js";
import { counted } from "./numbers.js";

// view: read when the button is pressed.
export function listenToTools(view) {
  byId("copy-link").addEventListener("click", () => copyLink(view));
  listenToTheme();
}

async function copyLink(view) {
  const { link, isTooLong } = linkTo(view), button = byId("copy-link");
  if (isTooLong) return showOnButton(button, `Too long for a link: ${counted(link.length)} of ${counted(LONGEST_LINK)} characters`);
  writeAddress(view);
  try {
    await navigator.clipboard.writeText(link);
    showOnButton(button, "Copied");
  } catch {
    showOnButton(button, "The link is in the address bar"); // clipboards need https or localhost, and a permission
  }
}

function showOnButton(button, words) {
  button.textContent = byId("announced").textContent = words;
  setTimeout(() => { button.textContent = "Copy link"; }, 4000);
}

function listenToTheme() {
  const button = byId("theme"), show = () => { button.setAttribute("aria-pressed", theme.isDark); redraw(); };
  button.addEventListener("click", () => theme.choose(theme.isDark ? "light" : "dark"));
  document.addEventListener("themechange", show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  matchMedia("print").addEventListener("change", () => redraw());
  show();
}
