// Before anything else runs: settle what other scripts would disturb.

// Font Awesome would look for icons in every change of a live figure, which has none.
window.FontAwesomeConfig = { observeMutations: false };

// A reader may forbid scripts to store anything, which then throws, and stops the theme half-way. What
// it stores is then kept until the page is left.
try {
  localStorage.setItem("pu", "1");
  localStorage.removeItem("pu");
} catch {
  const kept = new Map();
  const setItem = (key, value) => kept.set(key, `${value}`);
  const getItem = (key) => kept.get(key) ?? null;
  Object.defineProperty(window, "localStorage", { value: { setItem, getItem } });
}

// The typefaces of formulas are sent for before the first of them is met, so that it does not move.
["MJXTEX", "MJXTEX-I"].forEach((family) => document.fonts.load(`1em ${family}`));

// A page opened from disk may not fetch its neighbours, so that search shows no excerpts there.
if (location.protocol === "file:") {
  document.addEventListener("DOMContentLoaded", () => {
    if (typeof DOCUMENTATION_OPTIONS === "object") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  });
}
