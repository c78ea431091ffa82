// Sampled values: a sure action against a gamble that is better on average, and runs of every update.

const STEPS = 1000;
const RUNS = 40;
const HIGH = 224;

function render({ model, el }) {
  const { get, put, range } = attributes(model);
  const names = shown(model);
  const [labels, colours] = ["labels", "colours"].map(get);
  let runs = {};
  let now = 0;
  const times = moments(0, STEPS);
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const asked = question("a₂ is better on average. Which of these updates get there, if each step sees one sample of the values?",
    [["all", "all of them"], ["greedy", `all but ${spoken(["ce", "mce"].map((name) => labels[name]))}`], ["none", "none of them"]], () => say());
  const noise = slider("noise", ...range("noise"), 0.05, get("noise"), (x) => x.toFixed(2), (x) => put({ noise: x }));
  const again = button("New samples", () => put({ seed: get("seed") + 1 }));
  const time = slider("step", 0, times.length - 1, 1, 0, (i) => digits(times[i]), (i) => {
    run.set(i);
    show(i);
  });
  const run = playback(time, () => times.length - 1, 6, (i) => show(i), words);
  const picture = svg("svg", { "aria-hidden": "true" });
  const room = html("div", {}, picture);
  const legend = html("p", { class: "pu-live-key" }, ...names.map((name) => html("span", { class: "pu-live-entry", style: `--tone:${colours[name]}` },
    html("span", { class: "pu-live-swatch" }), labels[name])), `mean over ${RUNS} runs with weights (t + 1)`, html("sup", {}, `−${get("power")}`));
  const law = html("p", { class: "pu-live-key" });
  frame(el, "sampled", asked.box, html("div", { class: "pu-live-bar" }, noise.row, again), law,
    html("div", { class: "pu-live-bar" }, run.play, time.row), room, legend, words);

  const redraw = fit(room, (width) => {
    const { line, at, up } = axes(picture, width, HIGH, { from: 1, to: STEPS + 1, log: true, title: "step, counted from 1" },
      { from: 0, to: 1, ticks: [0, 0.25, 0.5, 0.75, 1], title: "probability of a₂, the better action" });
    names.forEach((name) => {
      const group = svg("g", { style: `--tone:${colours[name]}` }, picture);
      line(times.slice(0, now + 1).map((t) => [t + 1, runs[name][t]]), { class: "pu-live-curve" }, group);
      svg("circle", { cx: at(times[now] + 1), cy: up(runs[name][times[now]]), r: 4.5, class: "pu-live-fill" }, group);
    });
  });

  function show(i) {
    now = i;
    redraw();
    say();
  }

  function say() {
    const t = times[now];
    const wins = lawOf(get("noise"))[0][1][1] > 1 ? 1 : 0.25;
    const groups = grouped(names, (name) => runs[name][t].toFixed(2), (a, b) => b - a)
      .map(([share, group]) => `${share} under ${spoken(group.map((name) => labels[name]))}`);
    const twins = runs.ce && runs.mce && runs.ce.every((x, s) => Math.abs(x - runs.mce[s]) < 1e-9)
      ? ` The curves of ${labels.ce} and ${labels.mce} coincide.` : "";
    let text;
    if (now === 0) text = `All start at one half. ${asked.guess() ? "Press Play." : "Make a guess, then press Play."}`;
    else if (now < times.length - 1) text = `After ${plural(t, "sample")}, a₂ has ${spoken(groups)}.`;
    else {
      text = `${asked.judge([wins === 1 ? "all" : "greedy"], "What decides is whether an update uses the size of the sampled values, or only which of them is larger.")}After ${plural(t, "sample")}, a₂ has ${spoken(groups)}. ${wins === 1
        ? "So little noise never makes a₂ look worse, and all find it."
        : `a₂ looks better in one sample out of four, and ${spoken(["ce", "mce"].map((name) => labels[name]))} end up playing it as often as it wins. The others follow the mean.`}${twins}`;
    }
    if (words.textContent !== text) words.textContent = text;
  }

  function compute() {
    run.halt();
    const outcomes = lawOf(get("noise"));
    runs = Object.fromEntries(names.map((name) => [name, sampledRuns(name, outcomes, get("power"), STEPS, RUNS, get("seed"))]));
    noise.set(get("noise"));
    const [[, [sure, usual]], [, [, rare]]] = outcomes;
    law.textContent = `a₁ is worth ${sure} in every sample. a₂ is worth ${usual.toFixed(2)} in three of four and ${rare.toFixed(2)} in the fourth, on average 1.25.`;
    run.set(0);
    show(0);
  }
  ["noise", "seed"].forEach((key) => model.on(`change:${key}`, later(compute)));
  compute();
}

export default kept(render);
