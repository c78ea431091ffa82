// The counterexample of Proposition 1 and its neighbours: what one step of CE adds to the value.

const HIGH = 290;
const TOPS = Array.from({ length: 201 }, (_, i) => i / 10);
const PAIR = ["ce", "mce"];

function render({ model, el }) {
  const { get, put, range, values } = attributes(model);
  const [labels, colours] = ["labels", "colours"].map(get);
  const sizes = values("eta");
  const printed = get("first"); // the paper's value of a₁, at which the reader starts
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const asked = question("Here a₁, the likeliest action, is nearly as good as the best one. If it were worse, would a step of "
    + `${labels.ce} cost more or less?`, [["more", "more"], ["less", "less, but always something"], ["nothing", "less, and in the end nothing"]], () => say());
  const first = slider("q(a₁)", ...range("first"), 0.01, printed, (x) => x.toFixed(2), (x) => put({ first: Math.round(100 * x) / 100 }));
  const top = slider("θ₁", ...range("top"), 0.1, get("top"), (x) => x.toFixed(1), (x) => put({ top: Math.round(10 * x) / 10 }));
  const size = slider("step size", 0, sizes.length - 1, 1, sizes.indexOf(get("eta")), (i) => `${sizes[i]}`, (i) => put({ eta: sizes[i] }));
  const picture = svg("svg", { "aria-hidden": "true" });
  const room = html("div", {}, picture);
  const entries = PAIR.map((name) => html("span", { class: "pu-live-entry", style: `--tone:${colours[name]}` },
    html("span", { class: "pu-live-swatch" }), labels[name]));
  frame(el, "counterexample", asked.box,
    html("div", { class: "pu-live-bar" }, first.row, size.row), html("div", { class: "pu-live-bar" }, top.row), room,
    html("p", { class: "pu-live-key" }, ...entries, "Three actions, θ = (θ₁, 0, 0), q = (q(a₁), 1, 0). Dashed: no CE step of this size can cost more, with three actions and values in [0, 1]."),
    words);
  const changes = {};

  // The axis is the same for all values of a₁, so that the curves move and not the axis. The gain is largest if a₁ is worth 0.
  const scale = () => {
    const from = -1.1 * get("worst")[sizes.indexOf(get("eta"))];
    const to = Math.max(...PAIR.flatMap((name) => lowering(name, 0, get("eta"), TOPS)));
    const digit = 10 ** Math.floor(Math.log10(to - from));
    const unit = [0.1, 0.2, 0.5, 1].map((x) => x * digit).find((x) => to - from <= 8 * x);
    const ticks = [];
    for (let k = Math.ceil(from / unit); k * unit <= to; k += 1) ticks.push(Number((k * unit).toPrecision(2)));
    return { from, to, ticks };
  };

  const redraw = fit(room, (width) => {
    const { line, at, up } = axes(picture, width, HIGH, { from: 0, to: 20, ticks: [0, 5, 10, 15, 20], title: "θ₁" },
      { ...scale(), title: "value added by a step" });
    svg("line", { x1: at(0), x2: at(20), y1: up(0), y2: up(0), class: "pu-live-axis" }, picture);
    const floor = -get("worst")[sizes.indexOf(get("eta"))];
    line([[0, floor], [20, floor]], { class: "pu-live-bound" });
    PAIR.forEach((name, k) => {
      const group = svg("g", { style: `--tone:${colours[name]}` }, picture);
      line(TOPS.map((x, i) => [x, changes[name][i]]), { class: "pu-live-curve" }, group);
      svg("circle", { cx: at(get("top")), cy: up(changes[name][Math.round(10 * get("top"))]), r: 7 - 2 * k, class: "pu-live-fill" }, group);
    });
  });

  const signed = (x) => (Math.abs(x) < 1e-12 ? "nothing" : `${x < 0 ? "−" : "+"}${brief(Math.abs(x))}`);

  function say() {
    const [x, i] = [get("top"), Math.round(10 * get("top"))];
    const most = Math.min(...changes.ce);
    const harmful = TOPS.filter((_, k) => changes.ce[k] < -1e-12);
    if (get("first") === printed && !asked.guess()) {
      const effect = (change) => (Math.abs(change) < 1e-12 ? "does not change" : change < 0 ? "lowers" : "raises");
      words.textContent = `At θ₁ = ${x.toFixed(1)} one step of ${labels.ce} ${effect(changes.ce[i])} the value, one of ${labels.mce} ${effect(changes.mce[i])} it. Make a guess, then lower q(a₁).`;
      return;
    }
    const here = `At θ₁ = ${x.toFixed(1)} one step of ${labels.ce} adds ${signed(changes.ce[i])} to the value, one of ${labels.mce} ${signed(changes.mce[i])}.`;
    const over = harmful.length
      ? `${labels.ce} lowers it from θ₁ = ${harmful[0].toFixed(1)} on, at worst by ${brief(-most)}, at θ₁ = ${TOPS[changes.ce.indexOf(most)].toFixed(1)}.`
      : `With q(a₁) = ${get("first").toFixed(2)} and this step size no θ₁ makes ${labels.ce} lower it.`;
    const verdict = get("first") === printed ? "" : asked.judge(["nothing"], `${labels.ce} takes most from the likeliest action. That does harm only if this action is nearly as good as the best one.`);
    const next = get("first") === printed ? " Now lower q(a₁)." : "";
    const text = `${verdict}${here} ${over}${next}`;
    if (words.textContent !== text) words.textContent = text;
  }

  function draw() {
    PAIR.forEach((name) => { changes[name] = lowering(name, get("first"), get("eta"), TOPS); });
    first.set(get("first"));
    top.set(get("top"));
    size.set(sizes.indexOf(get("eta")));
    redraw();
    say();
  }
  ["first", "top", "eta"].forEach((key) => model.on(`change:${key}`, later(draw)));
  draw();
}

export default kept(render);
