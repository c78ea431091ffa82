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

  // All index entries of this book are main entries: they say which page to read.
  for (const places of Object.values(Search._index.indexentries)) {
    for (const place of places) place[2] = true;
  }

  // Titles that equal the query come first, then index entries. A chapter comes before its page
  // "More on", and the library last.
  const WEIGHTS = [["/api/", 0.01], ["/ledger-", 0.5], ["/more-on-", 0.9], ["/bibliography", 0.5]];
  const words = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
  const perform = Search._performSearch;
  let query = "";
  Search._performSearch = (text, ...parsed) => {
    query = words(text);
    return perform(text, ...parsed);
  };
  Scorer.score = ([page, title, , , score]) => {
    const [, weight] = WEIGHTS.find(([part]) => page.includes(part)) ?? ["", 1];
    const last = title.slice(title.lastIndexOf(" > ") + 1);
    return weight * (words(title) === query || words(last) === query ? 1000 : score);
  };
});
