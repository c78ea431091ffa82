// Chooser: three questions, and a card with the recommendation and the number it rests on.

// The first rule that the answers meet; a rule asks for nothing where it holds null.
export function chosen(rules, answers) {
  const meets = ([asked]) => asked.every((want, i) => want === null || want === answers[i]);
  return rules.find(meets)[1];
}

// The sentences of a text, in order.
const sentences = (text) => text.split(/(?<=\.) (?=[A-Z])/);

function render({ model, el }) {
  const { get, put } = attributes(model);
  const questions = get("questions");
  const answers = () => questions.map(([key]) => get(key));
  const ask = ([key, label, options]) => select(label, options, get(key), (value) => put({ [key]: value }));
  const card = html("div", { class: "pu-live-words pu-live-card", "aria-live": "polite" });
  const asked = html("div", { class: "pu-live-bar" }, ...questions.map(ask));
  frame(el, "chooser", asked, card);

  // The recommendations for some answers, whatever the answers to the questions after them.
  const advised = (given) => given.length === questions.length ? [chosen(get("rules"), given)]
    : questions[given.length][2].flatMap(([value]) => advised([...given, value]));

  // The first answer to question i that leads to the same recommendations as this one.
  function first(i, value) {
    const after = (other) => `${advised([...answers().slice(0, i), other])}`;
    return questions[i][2].find(([other]) => after(other) === after(value))[0];
  }

  function draw() {
    const entry = get("advice")[chosen(get("rules"), answers())];
    const [why, scope] = [entry.why, entry.scope].map(sentences);
    const link = html("a", { href: entry.link }, entry.page);
    const lines = [
      ["Loss", html("code", {}, entry.loss)],
      ["Step size", entry["step size"]],
      ["Exploration", entry.exploration],
      ["Evidence", why[0]],
      ["Limit", scope[0]],
      ["Read", link],
    ];
    const rest = [...why.slice(1), ...scope.slice(1)];
    card.replaceChildren(
      html("strong", {}, entry.update.replace(/\.$/, "")),
      html("dl", {}, ...lines.flatMap(([name, text]) => [html("dt", {}, name), html("dd", {}, text)])),
      ...(rest.length ? [html("details", { class: "pu-live-fold" }, html("summary", {}, "More evidence and limits"), html("p", {}, rest.join(" ")))] : []),
    );
    // An answer that no measurement tells from an earlier one is grey, and the earlier one is shown.
    // A question whose answers all are the same is grey and empty.
    el.querySelectorAll("select").forEach((choice, i) => {
      const options = [...choice.options];
      options.forEach((option) => { option.disabled = first(i, option.value) !== option.value; });
      choice.disabled = options.filter((option) => !option.disabled).length === 1;
      choice.value = choice.disabled ? "" : first(i, answers()[i]);
    });
  }
  questions.forEach(([key]) => model.on(`change:${key}`, draw));
  draw();
}

export default kept(render);
