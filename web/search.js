// Additions to Sphinx's search.
document.addEventListener("DOMContentLoaded", () => {
  // Excerpts contain no formulas, which would appear as LaTeX.
  const toText = Search.htmlToText;
  Search.htmlToText = (text, anchor) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    page.querySelectorAll(".math").forEach((formula) => formula.replaceWith("\u2026"));
    return toText(page.documentElement.outerHTML, anchor);
  };

  // The search looks words up in two objects, where it finds "constructor" and "__proto__" even if
  // no page has these words. Let the objects inherit only the method that the search calls.
  const bare = Object.create(null, { hasOwnProperty: { value: Object.prototype.hasOwnProperty } });
  const { terms, titleterms } = Search._index;
  [terms, titleterms].forEach((words) => Object.setPrototypeOf(words, bare));

  // Titles and index entries that equal the query come first, and the reference of the library last.
  const words = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
  const perform = Search._performSearch;
  let query = "";
  Search._performSearch = (text, ...parsed) => {
    query = words(text);
    return perform(text, ...parsed);
  };
  Scorer.score = ([page, title, , , score]) => {
    const weight = page.includes("/api/") ? 0.25 : 1;
    const last = title.slice(title.lastIndexOf(" > ") + 1);
    return weight * (words(title) === query || words(last) === query ? 1000 : score);
  };
});
