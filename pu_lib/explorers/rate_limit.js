// The rate of MCE: how many updates until all but a thousandth is on the best action.

const MOST = 1000000;
const GOAL = 0.001;
const HIGH = 270;

function render({ model, el }) {
  const { get, put, values } = attributes(model);
  const labels = get("labels");
  const tone = get("colours").mce;
  const [few, many] = [2, 100];
  let tried = false;
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const guesses = [[2, "about twice"], [10, "about ten times"], [50, "about fifty times"]];
  const asked = question(`A hundred actions instead of two: how many times as many updates does ${labels.mce} need until the best action has 99.9 %?`,
    guesses, () => say());
  const counts = values("actions");
  const actions = slider("actions", 0, counts.length - 1, 1, counts.indexOf(get("actions")), (i) => digits(counts[i]), (i) => {
    tried = true;
    put({ actions: counts[i] });
  });
  const sizes = values("eta");
  const size = slider("step size", 0, sizes.length - 1, 1, sizes.indexOf(get("eta")), (i) => `${sizes[i]}`, (i) => put({ eta: sizes[i] }));
  const picture = svg("svg", { "aria-hidden": "true" });
  const room = html("div", {}, picture);
  frame(el, "rate", asked.box,
    html("div", { class: "pu-live-bar" }, actions.row, size.row), room,
    html("p", { class: "pu-live-key" }, "Uniform start, constant weights. Line: the share of all other actions. Thin: the same with two actions. Dashed: (|A| − 1) / (|A| η t), where the line ends up."),
    words);
  let now = null;
  let base = null;

  const redraw = fit(room, (width) => {
    const end = 10 ** Math.ceil(Math.log10(Math.max(now.count, base.count, 10)));
    const { line, at, up } = axes(picture, width, HIGH, { from: 1, to: end, log: true, title: "updates" },
      { from: 1e-4, to: 1, log: true, title: "share of the other actions" });
    const group = svg("g", { style: `--tone:${tone}` }, picture);
    const points = ({ times, mass }) => times.map((t, i) => [t, mass[i]]).filter(([t]) => t > 0 && t <= end);
    const n = get("actions");
    const limit = (t) => (n - 1) / (n * get("eta") * t);
    line(now.times.filter((t) => t > 0 && t <= end && limit(t) <= 1 && limit(t) >= 1e-4).map((t) => [t, limit(t)]), { class: "pu-live-bound" });
    line(points(base), { class: "pu-live-stream" }, group);
    line(points(now), { class: "pu-live-curve" }, group);
    if (Number.isFinite(now.count)) svg("circle", { cx: at(now.count), cy: up(GOAL), r: 5, class: "pu-live-fill" }, group);
    if (now.count === base.count || !Number.isFinite(now.count)) return;
    svg("circle", { cx: at(base.count), cy: up(GOAL), r: 4, class: "pu-live-ring" }, group);
    svg("line", { x1: at(base.count), x2: at(now.count), y1: up(GOAL), y2: up(GOAL), class: "pu-live-line" }, group);
    svg("text", { x: at(base.count) - 10, y: up(GOAL) + 5, "text-anchor": "end", "font-weight": 600 }, picture, `${(now.count / base.count).toFixed(1)} times`);
  });

  function say() {
    const [n, eta] = [get("actions"), get("eta")];
    const [t, mass] = Number.isFinite(now.count) ? [now.count, now.reached] : [now.times, now.mass].map((all) => all.at(-1));
    const product = mass * eta * t;
    const ratio = rateRun(many, eta, GOAL, MOST).count / base.count;
    const reason = "In the long run the share of the others is (|A| − 1) / (|A| η t): half of 1 / (η t) with two actions, and never more than 1 / (η t).";
    const right = guesses.map(([factor]) => factor).filter((factor) => Math.abs(ratio / factor - 1) < 0.2);
    const clock = (count) => (Number.isFinite(count) ? plural(count, "update") : `more than ${plural(MOST, "update")}`);
    const verdict = n === many ? asked.judge(right, reason) : asked.guess() ? "Your guess is about 100 actions. " : "";
    const text = tried || n !== few
      ? `${verdict}With ${digits(n)} actions and step size ${eta}, the best one has 99.9 % after ${clock(now.count)}${
        n === few ? "" : `, with two after ${digits(base.count)}: ${(now.count / base.count).toFixed(1)} times as many`}. There the share of the others, times η t, is ${product.toFixed(3)}; its limit is (|A| − 1) / |A| = ${((n - 1) / n).toFixed(3)}, which never exceeds 1.`
      : `With two actions and step size ${eta}, ${labels.mce} needs ${clock(now.count)} until the best one has 99.9 %. ${asked.guess() ? "Now move the actions to 100." : "Make a guess, then move the actions to 100."}`;
    if (words.textContent !== text) words.textContent = text;
  }

  function draw() {
    now = rateRun(get("actions"), get("eta"), GOAL, MOST);
    base = rateRun(few, get("eta"), GOAL, MOST);
    actions.set(counts.indexOf(get("actions")));
    size.set(sizes.indexOf(get("eta")));
    redraw();
    say();
  }
  ["actions", "eta"].forEach((key) => model.on(`change:${key}`, later(draw)));
  draw();
}

export default kept(render);
