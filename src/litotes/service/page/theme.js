"use strict";
// Runs before anything is drawn, so that a dark page does not begin with a white flash. The style sheet does the rest.

const theme = {
  key: "litotes-theme",

  // A browser may refuse to store anything; then the choice lasts as long as the page.
  stored() {
    try { return localStorage.getItem(this.key); } catch { return null; }
  },

  get isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  },

  choose(name) {
    document.documentElement.dataset.theme = name;
    try { localStorage.setItem(this.key, name); } catch { /* see stored */ }
    document.dispatchEvent(new Event("themechange"));
  },
};

if (["dark", "light"].includes(theme.stored())) document.documentElement.dataset.theme = theme.stored();
