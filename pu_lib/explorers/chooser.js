// Chooser: three questions, one recommendation with the number it rests on.

// The first rule that the answers meet; a rule asks for nothing where it holds null.
export function chosen(rules, answers) {
  const meets = ([asked]) => asked.every((want, i) => want === null || want === answers[i]);
  return rules.find(meets)[1];
}

function render({ model, el }) {
  const { get, put } = attributes(model);
  const questions = get("questions");
  const answers = () => questions.map(([key]) => get(key));
  const ask = ([key, label, options]) => select(label, options, get(key), (value) => put({ [key]: value }));
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const asked = html("div", { class: "pu-live-bar" }, ...questions.map(ask));
  frame(el, "chooser", asked, words);

  // Whether every answer to question i leads to the same recommendation.
  const idle = (i) => new Set(questions[i][2].map(([value]) => chosen(get("rules"), answers().with(i, value)))).size === 1;

  function draw() {
    const entry = get("advice")[chosen(get("rules"), answers())];
    const how = `Loss: ${entry.loss}. Step size: ${entry["step size"]}. Exploration: ${entry.exploration}.`;
    words.replaceChildren(
      html("strong", {}, entry.update), ` ${how} ${entry.why} ${entry.scope} `, html("a", { href: entry.link }, entry.page),
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
