// What the pages need beyond the theme, above all wide content that can be scrolled by keyboard.
(() => {
  // The contents' toggles show an arrow only.
  document.querySelectorAll("summary:has(> .toctree-toggle)").forEach((toggle) => {
    toggle.setAttribute("aria-label", "Pages below this one");
  });

  // A formula wider than its text gets a line of its own, which scrolls as displayed ones do. All are
  // measured before the first is changed: else the page would be laid out anew for each.
  const unfold = () => {
    const formulas = [...document.querySelectorAll("mjx-container:not([display])")];
    const long = formulas.map((formula) => {
      const width = formula.querySelector("mjx-math")?.getBoundingClientRect().width ?? 0;
      const text = formula.closest("p, li, dd, td, th");
      return Boolean(text?.matches("p, li, dd")) && width > text.clientWidth;
    });
    // without a second value it would go to and fro
    formulas.forEach((formula, index) => formula.classList.toggle("pu-long", long[index]));
  };

  // Whatever scrolls sideways can be reached by the keyboard.
  const scrollers = "mjx-container:is([display], .pu-long), div.math, table, pre, .cell_output, .verdict";
  const reach = () => {
    const boxes = [...document.querySelectorAll(scrollers)];
    const scroll = boxes.map((box) => box.scrollWidth > box.clientWidth + 1
      && ["auto", "scroll"].includes(getComputedStyle(box).overflowX));
    boxes.forEach((box, index) => {
      if (scroll[index]) {
        box.tabIndex = 0;
        if (box.matches("table:not(:has(> caption))")) box.ariaLabel = "Table that scrolls sideways";
      } else if (box.getAttribute("tabindex") === "0") box.removeAttribute("tabindex");
    });
  };

  // Printed tables: several lines with gaps inside.
  document.querySelectorAll(".cell_output pre").forEach((text) => {
    text.classList.toggle("pu-columns", text.textContent.match(/\S {2,}\S.*\n/g)?.length > 2);
  });

  // The bibliography is a list whose items carry a role that is no longer in use.
  document.querySelectorAll("[role=doc-biblioentry]").forEach((entry) => (entry.role = "listitem"));

  const arrange = () => {
    unfold();
    reach();
  };
  const later = (action) => {
    let pending;
    return () => {
      clearTimeout(pending);
      pending = setTimeout(action, 60);
    };
  };
  // The element that the address names, if any. A percent sign that encodes nothing is an error.
  const named = () => {
    const name = location.hash.slice(1);
    try {
      return document.getElementById(decodeURIComponent(name));
    } catch {
      return document.getElementById(name);
    }
  };
  // The style sheet lets a long page show before all of it is laid out. Once there is time, the rest
  // follows, and what the address names is where it will stay. To measure earlier would lay out
  // section by section what then is laid out as a whole.
  const settle = () => {
    document.documentElement.classList.add("pu-settled");
    arrange();
    named()?.scrollIntoView();
    new MutationObserver(later(reach)).observe(document.querySelector("main") ?? document.body, {
      childList: true,
      characterData: true,
      subtree: true,
    });
  };
  window.addEventListener("load", () => {
    if (location.hash || !window.requestIdleCallback) setTimeout(settle);
    else requestIdleCallback(settle, { timeout: 2000 });
  });
  window.addEventListener("beforeprint", () => document.documentElement.classList.add("pu-settled"));
  window.addEventListener("resize", later(arrange));
  window.addEventListener("click", later(arrange)); // may have opened what was folded
})();
