// The family between NPG and DI: the updates that undo n, for every index of the Tsallis entropy.

const MOST = 100000;
const HIGH = 290;

// 1 + k / 2^m, as it is spoken of
function index(alpha) {
  if (Number.isInteger(alpha)) return `${alpha}`;
  let [part, whole] = [alpha - 1, 1];
  while (!Number.isInteger(part)) [part, whole] = [2 * part, 2 * whole];
  return `1 + ${part}/${whole}`;
}

function render({ model, el }) {
  const { get, put, values } = attributes(model);
  const [labels, colours] = ["labels", "colours"].map(get);
  const [alphas, weights] = ["alpha", "weight"].map(values);
  let tried = false; // whether alpha has left 1
  let decided = false; // whether it has been where the three answers differ
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const asked = question("With α = 1 it takes n updates to undo n. From which α on does their number stop growing with n?",
    [["once", "as soon as α leaves 1"], ["half", "from half way on"], ["end", "only at α = 2"]], () => say());
  const alpha = slider("index α", 0, alphas.length - 1, 1, alphas.indexOf(get("alpha")), (i) => index(alphas[i]), (i) => put({ alpha: alphas[i] }));
  const weight = slider("step size w", 0, weights.length - 1, 1, weights.indexOf(get("weight")), (i) => fraction(weights[i]), (i) => put({ weight: weights[i] }));
  const picture = svg("svg", { "aria-hidden": "true" });
  const room = html("div", {}, picture);
  const hues = ["--hue:color-mix(in oklab, var(--ink), var(--paper))", `--tone:${colours.npg}`, `--tone:${colours.di}`];
  const entries = ["this α", `α = 1, ${labels.npg}`, `α = 2, ${labels.di}`].map((text, i) =>
    html("span", { class: "pu-live-entry", style: hues[i] }, html("span", { class: "pu-live-swatch" }), text));
  frame(el, "family", asked.box, html("div", { class: "pu-live-bar" }, alpha.row, weight.row), room,
    html("p", { class: "pu-live-key" }, ...entries),
    html("p", { class: "pu-live-key" }, "Two actions with the values 1 and 0, then 0 and 1; uniform start, constant step sizes."), words);

  const count = (n, kind = get("alpha")) => familyCount(n, kind, get("weight"));

  const redraw = fit(room, (width) => {
    const { line, at, up } = axes(picture, width, HIGH, { from: 1, to: MOST, log: true, title: "updates n" },
      { from: 1, to: MOST, log: true, title: "updates n′ that undo them" });
    const looks = [{ style: "stroke-width: 6" }, { "stroke-dasharray": "7 5" }, { "stroke-dasharray": "2 4" }];
    [get("alpha"), 1, 2].forEach((kind, i) => line(moments(1, MOST).map((n) => [n, count(n, kind)]),
      { class: "pu-live-curve", ...looks[i] }, svg("g", { style: hues[i] }, picture)));
    const most = count(MOST);
    const aside = most < 1000 ? -8 : 18; // clear of the diagonal
    if (most < MOST) svg("text", { x: at(MOST), y: up(most) + aside, "text-anchor": "end", "font-weight": 600 }, picture, `n′ = ${digits(most)}`);
  });

  function say() {
    const [now, most] = [get("alpha"), count(MOST)];
    const setting = `α = ${index(now)}, w = ${fraction(get("weight"))}`;
    let text;
    if (!tried) text = `${setting}: every step back takes off what one step out has added, so that n′\u00a0=\u00a0n. ${asked.guess() ? "Now move α." : "Make a guess, then move α."}`;
    else if (most === MOST) text = `${setting}: n′\u00a0=\u00a0n, with any step size. No corner is in reach here: the log-odds go on and on, and have to come all the way back.`;
    else text = `${decided ? asked.judge(["once"], "For every α above 1 the corner is a finite number of steps away.")
      : asked.guess() ? "All three answers can still be right: move α to just above 1. " : ""}${setting}: ${plural(most, "update")} ${most === 1 ? "is" : "are"} enough to undo any number of them. The corner, where a₁ has everything, is ${
      plural(most, "step")} away, 1/((α − 1) w) rounded up, and no update goes beyond it.`;
    if (words.textContent !== text) words.textContent = text;
  }

  function draw() {
    tried ||= get("alpha") !== 1;
    decided ||= get("alpha") > 1 && get("alpha") < 1.5;
    alpha.set(alphas.indexOf(get("alpha")));
    weight.set(weights.indexOf(get("weight")));
    redraw();
    say();
  }
  ["alpha", "weight"].forEach((key) => model.on(`change:${key}`, later(draw)));
  draw();
}

export default kept(render);
