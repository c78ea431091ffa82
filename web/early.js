// This script runs before all others.

// Stop Font Awesome from searching for icons after every change of a live figure; there are none.
window.FontAwesomeConfig = { observeMutations: false };

// If the browser blocks localStorage, accessing it throws an error that stops the theme's script.
// Replace it with an in-memory store.
try {
  localStorage.setItem("pu", "1");
  localStorage.removeItem("pu");
} catch {
  const kept = new Map();
  const setItem = (key, value) => kept.set(key, `${value}`);
  const getItem = (key) => kept.get(key) ?? null;
  Object.defineProperty(window, "localStorage", { value: { setItem, getItem } });
}

// Load the formula fonts early, so that formulas do not move when the fonts arrive.
["MJXTEX", "MJXTEX-I"].forEach((family) => document.fonts.load(`1em ${family}`));

// A page opened from disk cannot fetch other pages, so the search shows no excerpts.
if (location.protocol === "file:") {
  document.addEventListener("DOMContentLoaded", () => {
    if (typeof DOCUMENTATION_OPTIONS === "object") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  });
}
