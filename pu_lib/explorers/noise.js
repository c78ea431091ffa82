// Noise: the step for the expected values beside the mean of the steps for sampled ones.

const WEIGHT = 0.5;
const ROW = 36;

function render({ model, el }) {
  const { get, put, range } = attributes(model);
  const names = shown(model);
  const labels = get("labels");
  const colours = get("colours");
  const sure = get("sure");
  const percent = (x) => `${Math.round(100 * x)} %`;
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const greedy = spoken(names.filter((name) => ["ce", "mce"].includes(name)).map((name) => labels[name]));
  const start = get("odds");
  const asked = question(`a₁ pays 1 in ${percent(start)} of the tries, a₂ pays ${sure} every time. Each step sees one sample of both. Which updates move towards the better action on average?`,
    [["all", "all of them"], ["mean", `all but ${greedy}`], ["greedy", `only ${greedy}`], ["none", "none of them"]], () => draw());
  const control = slider("a₁ wins", ...range("odds"), 0.01, start, percent, (x) => {
    asked.reveal();
    put({ odds: x });
  });
  const input = control.row.querySelector("input");
  const strip = html("span", { class: "pu-live-shaded" }); // browsers paint no background of a slider
  input.replaceWith(strip);
  strip.append(input);
  const picture = svg("svg", { height: ROW * names.length + 52, "aria-hidden": "true" });
  const room = html("div", {}, picture);
  const key = html("p", { class: "pu-live-key" }, "Ring: the step for the expected values. Arrow: the mean of the steps for sampled ones. Both: the change of θ₁ − θ₂ in one step of weight ½ from the uniform policy, under PG-ES from the parameters (1, 1).");
  frame(el, "noise", asked.box, html("div", { class: "pu-live-bar" }, control.row), key, room, words);
  const odds = () => Math.round(100 * get("odds")) / 100;
  // On the slider, the chances at which a₁ is better on average and yet loses most comparisons.
  function shade() {
    const [least, most] = range("odds");
    const place = (x) => `calc(0.5rem + ${((x - least) / (most - least)).toFixed(4)} * (100% - 1rem))`; // of the middle of the thumb
    const tone = "color-mix(in oklab, var(--quiet), transparent 65%)";
    strip.style.background = asked.open()
      ? `linear-gradient(to right, transparent ${place(sure)}, ${tone} ${place(sure)}, ${tone} ${place(0.5)}, transparent ${place(0.5)})` : "";
  }
  const sampledSteps = () => names.map((name) => [name, ...sampled(name, odds(), sure, WEIGHT)]);

  const redraw = fit(room, (width) => {
    picture.replaceChildren();
    const label = 62;
    const middle = label + (width - label) / 2;
    const unit = 2 * ((width - label) / 2 - 12); // no step here exceeds one half
    const bottom = ROW * names.length + 4;
    svg("line", { x1: middle, x2: middle, y1: 0, y2: bottom, class: "pu-live-axis" }, picture);
    sampledSteps().forEach(([name, exact, mean], i) => {
      const y = ROW * i + 19;
      const row = svg("g", { style: `--tone:${colours[name]}` }, picture);
      svg("text", { x: 0, y: y + 5, "font-weight": 600 }, row, labels[name]);
      if (asked.open() && Math.abs(mean) > 1e-12) arrow(row, middle, y, middle + unit * mean, {});
      svg("circle", { cx: middle + unit * exact, cy: y, r: 7.5, class: "pu-live-ring" }, row);
    });
    ruler(picture, middle, unit, bottom, [-0.5, -0.25, 0, 0.25, 0.5]);
    svg("text", { x: middle - 8, y: bottom + 38, "text-anchor": "end", class: "pu-live-faint" }, picture, "← towards a₂");
    svg("text", { x: middle + 8, y: bottom + 38, class: "pu-live-faint" }, picture, "towards a₁ →");
  });

  function draw() {
    control.set(get("odds"));
    shade();
    redraw();
    if (!asked.open()) {
      words.textContent = "Each ring is the step for the expected values. Make a guess, and the mean of the sampled steps appears.";
      return;
    }
    const better = odds() === sure ? "The two actions are equally good" : `On average ${odds() > sure ? "a₁" : "a₂"} is better`;
    const wrong = sampledSteps().filter(([, exact, mean]) => odds() !== sure && exact * mean < -1e-12).map(([name]) => labels[name]);
    const biased = sampledSteps().filter(([, exact, mean]) => Math.abs(exact - mean) > 1e-12).map(([name]) => labels[name]);
    const fair = names.map((name) => labels[name]).filter((name) => !biased.includes(name));
    const right = wrong.length === 0 ? "all" : wrong.length === names.length ? "none" : "mean";
    const verdict = odds() === start ? asked.judge([right], "What decides is whether an update uses the size of the sampled values, or only which of them is larger.") : "";
    words.textContent = `${verdict}a₁ pays 1 in ${percent(odds())} of the tries, a₂ pays ${sure} every time. ${better}. From the uniform policy ${spoken(fair)} step on average as the expected values ask. ${
      biased.length === 0 ? "" : wrong.length
        ? `${spoken(wrong)} follow the winner of each sample, and go the wrong way, as everywhere in the shaded part of the slider.`
        : `${spoken(biased)} follow the winner of each sample, and miss the ring.`}`;
  }
  model.on("change:odds", draw);
  draw();
}

export default kept(render);
