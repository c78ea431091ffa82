// Additions to the theme's scripts, mainly for scrolling wide content with the keyboard.
(() => {
  // The toggles in the table of contents show only an arrow, so they need a label.
  document.querySelectorAll("summary:has(> .toctree-toggle)").forEach((toggle) => {
    toggle.setAttribute("aria-label", "Pages below this one");
  });

  // Put an inline formula that is wider than its paragraph on its own scrollable line, like display
  // math. Measure all formulas before changing any, to avoid one layout per formula.
  const unfold = () => {
    const formulas = [...document.querySelectorAll("mjx-container:not([display])")];
    const long = formulas.map((formula) => {
      const width = formula.querySelector("mjx-math")?.getBoundingClientRect().width ?? 0;
      const text = formula.closest("p, li, dd, td, th");
      return Boolean(text?.matches("p, li, dd")) && width > text.clientWidth + 1; // it is rounded
    });
    // without the second argument of toggle, repeated calls would alternate
    formulas.forEach((formula, index) => formula.classList.toggle("pu-long", long[index]));
  };

  // Make elements that scroll horizontally reachable by keyboard.
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

  // Mark printed tables, which are texts of several lines with gaps between columns.
  document.querySelectorAll(".cell_output pre").forEach((text) => {
    text.classList.toggle("pu-columns", text.textContent.match(/\S {2,}\S.*\n/g)?.length > 2);
  });

  // Replace the deprecated role of bibliography entries.
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
  // Return the element named by the fragment of the URL, or null. Decoding an invalid percent
  // encoding throws.
  const named = () => {
    const name = location.hash.slice(1);
    try {
      return document.getElementById(decodeURIComponent(name));
    } catch {
      return document.getElementById(name);
    }
  };
  // The style sheet defers the layout of off-screen sections. Lay out the whole page when the browser
  // is idle, then scroll to the target of the URL, which no longer moves. Measuring earlier would
  // force one layout per section.
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
  window.addEventListener("click", later(arrange)); // a click may expand collapsed content
})();

// "cite" beside the title of a statement opens a dialog with a permanent link and BibTeX.
(() => {
  const meta = (name) => document.querySelector(`meta[name="citation_${name}"]`)?.content ?? "";
  const page = document.querySelector('link[rel="canonical"]')?.href ?? location.href.split("#")[0];
  const dialog = document.createElement("dialog");
  dialog.className = "pu-cite";
  dialog.setAttribute("aria-label", "Cite");

  const element = (tag, text) => {
    const made = document.createElement(tag);
    made.textContent = text;
    return made;
  };
  const button = (text, action) => {
    const made = element("button", text);
    made.addEventListener("click", action);
    return made;
  };
  const copyable = (label, text) => {
    const shown = element("pre", text);
    const copy = button(`Copy ${label}`, () => navigator.clipboard?.writeText(text).then(
      () => (copy.textContent = "Copied"),
      () => getSelection().selectAllChildren(shown),
    ));
    return [shown, copy];
  };
  const show = (words, anchor) => {
    const address = `${page}#${anchor}`;
    const bibtex = [
      `@misc{pulib-${anchor},`,
      `  author = {{${meta("author")}}},`,
      `  title = {${meta("title")}: ${words}},`,
      `  year = {${meta("publication_date")}},`,
      `  note = {Version ${meta("version")}},`,
      ...(location.protocol === "file:" ? [] : [`  url = {${address}}`]),
      "}",
    ].join("\n");
    dialog.replaceChildren(
      element("p", `${words}. The number may change with the version; the link does not.`),
      ...copyable("link", address), ...copyable("BibTeX", bibtex),
      button("Close", () => dialog.close()),
    );
    dialog.showModal();
  };

  document.querySelectorAll("div.proof > p.admonition-title").forEach((title) => {
    const anchor = title.querySelector(".headerlink")?.hash.slice(1);
    if (!anchor) return;
    const number = title.querySelector(".caption-number")?.textContent.trim();
    const plain = title.cloneNode(true);
    plain.querySelectorAll(".caption-number, .headerlink").forEach((part) => part.remove());
    const words = title.closest(".named") ? plain.textContent.trim() : number;
    const cite = button("cite", () => show(words, anchor));
    cite.className = "pu-cite-button";
    cite.ariaLabel = `Cite ${words}`;
    title.append(cite);
  });
  document.body.append(dialog);
})();
