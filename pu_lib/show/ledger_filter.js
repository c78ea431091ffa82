// Hides the rows of the ledger's tables that do not fit; see ledger_filter.py.

function labelled(name, control) {
  const label = document.createElement("label");
  label.append(`${name} `, control);
  return label;
}

function render({ model, el }) {
  const statuses = model.get("statuses");
  const total = Object.values(statuses).reduce((sum, [, count]) => sum + count, 0);

  const status = document.createElement("select");
  status.append(new Option(`any (${total})`, ""));
  Object.entries(statuses).forEach(([name, [words, count]]) => status.append(new Option(`${words} (${count})`, name)));
  const words = document.createElement("input");
  words.type = "search";
  words.placeholder = "Theorem 4";
  const found = document.createElement("p");
  found.setAttribute("aria-live", "polite");

  const set = (key, value) => { model.set(key, value); model.save_changes(); };
  status.addEventListener("change", () => set("status", status.value));
  words.addEventListener("input", () => set("words", words.value));

  const refresh = () => {
    status.value = model.get("status");
    if (words.value !== model.get("words")) words.value = model.get("words");
    const wanted = model.get("words").trim().toLowerCase();
    let shown = 0;
    document.querySelectorAll("table.ledger:has(tr[data-status])").forEach((table) => {
      let left = 0;
      table.querySelectorAll("tr[data-status]").forEach((row) => {
        const fits = !status.value || row.dataset.status === status.value;
        row.hidden = !(fits && row.dataset.words.includes(wanted));
        left += !row.hidden;
      });
      table.hidden = left === 0;
      shown += left;
    });
    found.textContent = `${shown} of ${total} claims`;
  };
  ["status", "words"].forEach((key) => model.on(`change:${key}`, refresh));

  const root = document.createElement("div");
  root.className = "pu-ledger-filter";
  root.append(labelled("status", status), labelled("with the words", words), found);
  el.append(root);
  const asked = new URLSearchParams(location.search).get("status");
  if (asked in statuses) model.set("status", asked);
  refresh();
}

export default { render };
