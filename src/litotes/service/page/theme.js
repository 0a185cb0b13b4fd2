"use strict";
// Runs before anything is drawn, so that a page chosen dark does not begin with a flash of white. CSS knows the rest.

const theme = {
  key: "litotes-theme",

  // A browser may refuse to keep anything; then the choice lasts as long as the page.
  kept() {
    try { return localStorage.getItem(this.key); } catch { return null; }
  },

  get isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  },

  choose(name) {
    document.documentElement.dataset.theme = name;
    try { localStorage.setItem(this.key, name); } catch { /* see kept */ }
    document.dispatchEvent(new Event("themechange"));
  },
};

if (["dark", "light"].includes(theme.kept())) document.documentElement.dataset.theme = theme.kept();
