// Hides the lines of the ledger that do not fit; see ledger_filter.py.

function labelled(name, control) {
  const label = document.createElement("label");
  label.append(`${name} `, control);
  return label;
}

function choice(options, total) {
  const select = document.createElement("select");
  select.append(new Option(`any (${total})`, ""));
  Object.entries(options).forEach(([name, [words, count]]) => select.append(new Option(`${words} (${count})`, name)));
  return select;
}

function render({ model, el }) {
  const total = Object.values(model.get("statuses")).reduce((sum, [, count]) => sum + count, 0);
  const controls = {
    scope: choice(model.get("scopes"), total),
    status: choice(model.get("statuses"), total),
    words: document.createElement("input"),
  };
  controls.words.type = "search";
  controls.words.placeholder = "Theorem 4";
  const counter = document.createElement("p");
  counter.setAttribute("aria-live", "polite");

  Object.entries(controls).forEach(([key, control]) => {
    control.name = key;
    control.addEventListener(key === "words" ? "input" : "change", () => { model.set(key, control.value); model.save_changes(); });
  });

  const refresh = () => {
    Object.entries(controls).forEach(([key, control]) => { if (control.value !== model.get(key)) control.value = model.get(key); });
    const wanted = model.get("words").trim().toLowerCase();
    const fits = ({ dataset, textContent }) =>
      ["scope", "status"].every((key) => !model.get(key) || dataset[key] === model.get(key))
      && `${textContent} ${dataset.words}`.toLowerCase().includes(wanted);
    let shown = 0;
    document.querySelectorAll(".ledger-index > section").forEach((chapter) => {
      let left = 0;
      chapter.querySelectorAll("li").forEach((line) => {
        line.hidden = !fits(line);
        left += !line.hidden;
      });
      chapter.hidden = left === 0;
      shown += left;
    });
    counter.textContent = `${shown} of ${total} claims`;
  };
  Object.keys(controls).forEach((key) => model.on(`change:${key}`, refresh));

  const root = document.createElement("div");
  root.className = "pu-ledger-filter";
  root.append(labelled("of", controls.scope), labelled("status", controls.status), labelled("with the words", controls.words), counter);
  el.append(root);
  const asked = new URLSearchParams(location.search);
  [["scope", "scopes"], ["status", "statuses"]].forEach(([key, known]) => {
    if (Object.hasOwn(model.get(known), asked.get(key))) model.set(key, asked.get(key));
  });
  refresh();
}

export default { render };
