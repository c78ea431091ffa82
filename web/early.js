// Before anything else runs: settle what other scripts would disturb.

// Font Awesome would replace the icons inside widgets and break their play buttons.
window.FontAwesomeConfig = { observeMutations: false };

// The widgets ask MathJax 2 to typeset their labels; hand the request to MathJax 3.
(() => {
  const waiting = [];
  const typeset = (element) => {
    element.dataset.words ??= element.textContent.replace(/[$\\{}]/g, "");
    element.textContent = element.textContent.replace(/\$([^$]+)\$/g, "\\($1\\)");
    return MathJax.typesetPromise([element]).catch(() => {});
  };
  window.puTypesetWaiting = () => waiting.splice(0).forEach(typeset);
  const Queue = ([, , element]) => {
    if (window.MathJax?.typesetPromise) typeset(element);
    else waiting.push(element);
  };
  const Hub = { Queue: Queue, Config() {}, Configured() {} };
  let value;
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
