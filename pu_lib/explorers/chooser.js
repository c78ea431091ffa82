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

  // Whether every answer to question i leads to the same recommendation.
  const idle = (i) => new Set(questions[i][2].map(([value]) => chosen(get("rules"), answers().with(i, value)))).size === 1;

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
    el.querySelectorAll("select").forEach((choice, i) => { choice.disabled = idle(i); });
  }
  questions.forEach(([key], i) => model.on(`change:${key}`, () => {
    el.querySelectorAll("select")[i].value = get(key);
    draw();
  }));
  draw();
}

export default kept(render);
