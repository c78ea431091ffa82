// Before anything else runs: settle what other scripts would disturb.

// Font Awesome would replace the icons inside widgets and break their play buttons.
window.FontAwesomeConfig = { observeMutations: false };

// The typefaces of formulas are sent for before the first of them is met, so that it does not move.
["MJXTEX", "MJXTEX-I"].forEach((family) => document.fonts.load(`1em ${family}`));

// The formulas of a page are typeset when the book is built. The widgets ask MathJax 2 to typeset
// their labels: with the first that holds a formula MathJax 3 is loaded, and is handed the request.
(() => {
  const program = new URL("vendor/mathjax/tex-chtml.js", document.currentScript.src).href;
  let typesetter;
  const load = () => new Promise((resolve) => {
    const ready = () => {
      MathJax.startup.defaultReady();
      // vendor/formulas.css has declared the typefaces: declared again, they are lost in print
      MathJax.startup.output.font.addFontURLs = () => {};
      resolve();
    };
    window.MathJax = { options: { enableMenu: false }, startup: { typeset: false, ready } };
    document.head.append(Object.assign(document.createElement("script"), { src: program }));
  });
  const typeset = (element) => {
    if (!/\$[^$]+\$/.test(element.textContent)) return;
    element.dataset.words ??= element.textContent.replace(/[$\\{}]/g, "");
    element.textContent = element.textContent.replace(/\$([^$]+)\$/g, "\\($1\\)");
    typesetter = (typesetter ?? load()).then(() => MathJax.typesetPromise([element]));
  };
  const Hub = { Queue: ([, , element]) => typeset(element), Config() {}, Configured() {} };
  let value = { Hub };
  // MathJax replaces the object that configures it, so that the shim is put on whichever is there.
  Object.defineProperty(window, "MathJax", {
    configurable: true,
    get: () => value,
    set: (next) => {
      value = next;
      if (value && !value.Hub) value.Hub = Hub;
    },
  });
})();

// A page opened from disk may not fetch its neighbours, so that search shows no excerpts there.
if (location.protocol === "file:") {
  document.addEventListener("DOMContentLoaded", () => {
    if (typeof DOCUMENTATION_OPTIONS === "object") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  });
}
