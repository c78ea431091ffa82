// Linear DI on contexts: the fit before the projection or after it, and weights that grow.

const LOW = 1e-5; // below every distance that is not 0
const HIGH = 280;

function render({ model, el }) {
  const { get, put, range } = attributes(model);
  const label = get("labels").di;
  const tone = get("colours").di;
  const [task, first, steps] = ["task", "first", "steps"].map(get);
  let tried = false; // whether the fit has been moved
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const asked = question(`${label} has to fit a linear model. Which fit leads it to the optimum?`,
    [["before", "the one before the projection"], ["after", "the one after it"], ["both", "both, if the weights grow"]], () => say());
  const place = select("fit", [["before", "before the projection"], ["after", "after the projection"]], get("place"), (where) => put({ place: where }));
  const growth = slider("growth", ...range("growth"), 0.01, get("growth"), (x) => x.toFixed(2), (x) => put({ growth: x }));
  const picture = svg("svg", { "aria-hidden": "true" });
  const room = html("div", {}, picture);
  const setting = html("p", { class: "pu-live-key" });
  frame(el, "fitted", asked.box, html("div", { class: "pu-live-bar" }, place, growth.row), room, setting,
    html("p", { class: "pu-live-key" }, "Line: the fit chosen. Thin: the other one, once the fit has been moved. Dot: from here on the distance is 0. Dashed: what the theorem allows the line."), words);
  let runs = {};

  const other = () => (get("place") === "before" ? "after" : "before");
  // The update from which on the distance is 0, or undefined.
  const there = (where) => {
    const last = runs[where].gaps.findLastIndex((gap) => gap > 0);
    return last < steps ? last + 1 : undefined;
  };

  const redraw = fit(room, (width) => {
    const y = { from: LOW, to: 10, log: true, title: "distance of the worst context from its optimum" };
    const { line, at, up } = axes(picture, width, HIGH, { from: 0, to: steps, ticks: [0, 10, 20, 30, 40], title: "update" }, y);
    const points = (where, key) => runs[where][key].map((size, t) => [t, size]);
    line(points(get("place"), "bounds").filter(([t, size]) => t > 0 && size <= y.to), { class: "pu-live-bound" });
    const course = (where, look) => {
      const group = svg("g", { style: `--tone:${tone}` }, picture);
      const end = there(where);
      line(points(where, "gaps").slice(0, (end ?? steps) + 1).map(([t, gap]) => [t, Math.max(gap, LOW)]), look, group);
      if (end === undefined) return;
      svg("circle", { cx: at(end), cy: up(LOW), r: 5, class: "pu-live-fill" }, group);
      const side = end > steps / 2 ? -1 : 1;
      svg("text", { x: at(end) + 10 * side, y: up(LOW) - 6, "text-anchor": side < 0 ? "end" : "start" }, group, `0 from ${end} on`);
    };
    if (tried) course(other(), { class: "pu-live-curve", style: "stroke-width: 1.3" });
    course(get("place"), { class: "pu-live-curve", style: "stroke-width: 3" });
  });

  function say() {
    const left = (where) => runs[where].gaps.at(-1).toFixed(3);
    const outcome = (where) => (there(where) === undefined
      ? `the worst context is ${left(where)} from its optimum after ${steps} updates`
      : `the distance is 0 at all contexts from update ${there(where)} on`);
    const x = get("growth");
    const weights = x === 1 ? "With constant weights" : `With weights that ${x > 1 ? "grow" : "fade"} by ${Math.round(100 * Math.abs(x - 1))} % an update`;
    const arrived = there("before") !== undefined;
    let text;
    if (!tried) {
      const next = x > 1 ? "move the fit" : "move the fit, and let the weights grow";
      text = `${weights} and the fit before the projection, ${outcome("before")}. ${asked.guess() ? `Now ${next}.` : `Make a guess, then ${next}.`}`;
    } else {
      text = `${arrived ? asked.judge(["before"], "Only the target before the projection is linear, so that the model can fit it.") : ""}${weights} and the fit before the projection, ${outcome("before")}; with the fit after it, ${outcome("after")}. ${arrived
        ? "There the target is cut off at the edges of the simplex, and the linear model cannot match it, whatever the weight."
        : x > 1 ? "Let the weights grow faster." : "Now let the weights grow."}`;
    }
    if (words.textContent !== text) words.textContent = text;
  }

  function draw() {
    tried ||= get("place") !== "before";
    runs = Object.fromEntries(["before", "after"].map((where) => [where, fittedRun(task, first, get("growth"), steps, where)]));
    place.set(get("place"));
    growth.set(get("growth"));
    setting.textContent = `${task.rewards.length} contexts with three actions, uniform start; update t = 0, 1, … has the weight ${first} · ${get("growth").toFixed(2)}ᵗ.`;
    redraw();
    say();
  }
  ["growth", "place"].forEach((key) => model.on(`change:${key}`, later(draw)));
  draw();
}

export default kept(render);
