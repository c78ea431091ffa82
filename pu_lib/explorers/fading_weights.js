// Weights that fade: four actions, MCE with weights eta (t + 1)^-x, and what is left of the others.

const ACTIONS = 4;
const END = 1000000;
const LOWEST = 1e-6; // no smaller share is drawn
const HIGH = 270;

function render({ model, el }) {
  const { get, put, range, values } = attributes(model);
  const labels = get("labels");
  const tone = get("colours").mce;
  const reason = "The weights need an infinite sum, and it is infinite up to x = 1.";
  let tried = false; // whether the reader has moved the exponent
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const asked = question(`Weights that fade like 1/tˣ. Up to which x does ${labels.mce} still get to the best action?`,
    [["0", "only x = 0"], ["half", "up to ½"], ["one", "up to 1"], ["all", "for every x"]], () => say());
  const exponent = slider("exponent x", ...range("exponent"), 0.05, get("exponent"), (x) => x.toFixed(2), (x) => {
    tried = true;
    put({ exponent: x });
  });
  const size = select("first weight", values("eta").map((x) => [x, `${x}`]), get("eta"), (x) => put({ eta: Number(x) }));
  const setting = html("p", { class: "pu-live-key" });
  const picture = svg("svg", { "aria-hidden": "true" });
  const room = html("div", {}, picture);
  frame(el, "fading", asked.box,
    html("div", { class: "pu-live-bar" }, exponent.row), room,
    setting, html("p", { class: "pu-live-key" }, "Line: the share of the three worse actions. Dashed: the proved upper bound. Dotted: the floor, below which the weights spent so far cannot bring the share."),
    words, html("details", { class: "pu-live-fold" }, html("summary", {}, "First weight"), size));
  let curves = null;

  const redraw = fit(room, (width) => {
    // A finite sum leaves a share that would be a flat line at the top of the whole axis.
    const from = Math.max(LOWEST, 10 ** Math.floor(Math.log10(curves.floor.at(-1))));
    const { at, up, line } = axes(picture, width, HIGH, { from: 1, to: END, log: true, title: "updates" },
      { from, to: 1, ticks: from < 0.1 ? undefined : [0.1, 0.2, 0.5, 1], log: true, title: "share of the worse actions" });
    const group = svg("g", { style: `--tone:${tone}` }, picture);
    const points = (key) => curves.times.map((t, i) => [t, curves[key][i]]).filter(([t]) => t > 0);
    line(points("bound"), { class: "pu-live-bound" });
    line(points("floor"), { class: "pu-live-floor" });
    line(points("mass"), { class: "pu-live-curve" }, group);
    const left = curves.mass.at(-1);
    svg("circle", { cx: at(END), cy: up(left), r: 4, class: "pu-live-fill" }, group);
    svg("text", { x: at(END) - 8, y: up(left) + (left > 10 * from ? 18 : -10), "text-anchor": "end", class: "pu-live-faint" }, picture, `${brief(left)} left`);
  });

  function say() {
    const [x, mass] = [get("exponent"), curves.mass.at(-1)];
    const spent = curves.spent.at(-1);
    let text;
    if (!tried) {
      text = `Here x = ${x.toFixed(2)}: each weight is ${x === 0 ? "as large as the first" : "smaller than the one before"}. After a million updates the worse actions have ${brief(mass)}. ${asked.guess() ? "" : "Make a guess, then "}${asked.guess() ? "Move" : "move"} the exponent.`;
    } else if (x > 1) {
      const rest = (get("eta") * END ** (1 - x)) / (x - 1);
      const floor = (1 - 1 / ACTIONS) * Math.exp((-ACTIONS / (ACTIONS - 1)) * (spent + rest));
      text = `${asked.judge(["one"], reason)}x = ${x.toFixed(2)}: a million weights add up to ${brief(spent)}, and all that follow to at most ${brief(rest)} more. So the worse actions keep ${
        floor > 1e-9 ? `at least ${brief(floor)}` : "a positive share, tiny as it may be,"} for ever; now they have ${brief(mass)}.`;
    } else {
      text = `${asked.judge(["one"], reason)}x = ${x.toFixed(2)}: the weights add up without end, so that the worse actions do lose everything. After a million updates the weights have come to ${brief(spent)}, and ${brief(mass)} is left.${
        x > 0.99 ? " It gets there, but ever more slowly: in the end, to halve what is left, the number of updates has to be squared." : ""}`;
    }
    if (words.textContent !== text) words.textContent = text;
  }

  function draw() {
    curves = fading(get("exponent"), get("eta"), ACTIONS, END);
    exponent.set(get("exponent"));
    size.set(get("eta"));
    setting.textContent = `Four actions, uniform start; the first weight is ${get("eta")}, and it is divided by (t + 1)ˣ.`;
    redraw();
    say();
  }
  ["exponent", "eta"].forEach((key) => model.on(`change:${key}`, later(draw)));
  draw();
}

export default kept(render);
