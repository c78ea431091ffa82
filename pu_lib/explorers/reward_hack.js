// A reward hack: from one policy, the updates until the correct answer has one half, under four kinds of
// advantages and from the reference, and the path of one run.

const MOST = 100000;
const SEEDS = Array.from({ length: 21 }, (_, k) => k + 1);
const INSIDE = 5; // runs below the interval, and above it: it has the median with 97 %
const ROW = 30;
const TALL = 210;

function render({ model, el }) {
  const { get, put, values } = attributes(model);
  const keys = values("method");
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  let runs = {};
  let setting = ""; // the setting at which the reader made the guess
  let seen = false; // whether the waiting groups are shown
  const asked = question("The policy gives the hack in 99.9 % of its samples and the correct answer in 0.006 %. The verifier is mended. Which is the first to give the correct answer in half of its samples?",
    keys.map((key) => [key, key === "restart" ? "restart from the reference" : key]), (guess) => {
      if (guess) setting = here();
      draw();
    });
  const change = (changes) => {
    asked.reveal();
    put(changes);
  };
  const sized = (label, key) => slider(label, 0, values(key).length - 1, 1, values(key).indexOf(get(key)), (i) => `${values(key)[i]}`, (i) => change({ [key]: values(key)[i] }));
  const sliders = { size: sized("samples in a group", "size"), weight: sized("weight of a step", "weight") };
  const selects = {
    pays: select("the hack still pays", values("pays").map((x) => [x, x === 0 ? "nothing" : `${x}`]), get("pays"), (x) => change({ pays: Number(x) })),
    method: select("run shown", keys.map((key) => [key, key]), get("method"), (x) => change({ method: x })),
  };
  const toggle = button("Show the waiting groups", () => {
    seen = !seen;
    asked.reveal();
    draw();
  });
  const [rows, path] = [svg("svg", { "aria-hidden": "true" }), svg("svg", { "aria-hidden": "true" })];
  const [above, below] = [html("div", {}, rows), html("div", {}, path)];
  const key = html("p", { class: "pu-live-key" });
  frame(el, "reward-hack", asked.box, html("div", { class: "pu-live-bar" }, sliders.size.row, sliders.weight.row),
    html("div", { class: "pu-live-bar" }, selects.pays, selects.method, toggle), above, below, key, words);

  const here = () => JSON.stringify(["size", "weight", "pays"].map(get));
  const chance = () => get("start")[1];
  const ordered = (method) => runs[method].map(({ count }) => count).sort((a, b) => a - b);
  const middle = (method) => ordered(method)[(SEEDS.length - 1) / 2];
  const lost = (method) => ordered(method).filter((count) => count === Infinity).length;
  const shownRun = () => runs[get("method")].find(({ count }) => count === middle(get("method")));
  const formula = (method) => (get("pays") > 0 || method === "restart" ? null : expectedReturn(method, get("size"), get("weight"), chance()));

  function compute() {
    runs = Object.fromEntries(keys.map((method) => [method, SEEDS.map((seed) => groupRun(method === "restart" ? "GRPO" : method,
      get(method === "restart" ? "reference" : "start"), get("pays"), get("size"), get("weight"), MOST, seed))]));
  }

  const drawRows = fit(above, (width) => {
    rows.replaceChildren();
    const bottom = ROW * keys.length + 6;
    rows.setAttribute("height", bottom + 36);
    const [left, right] = [width < 480 ? 122 : 150, width - 14];
    const at = (x) => left + ((right - left) * Math.log(Math.min(Math.max(x, 1), MOST))) / Math.log(MOST);
    const every = right - left < 300 ? 2 : 1;
    powers(1, MOST).forEach((x, i) => {
      svg("line", { x1: at(x), x2: at(x), y1: 0, y2: bottom, class: "pu-live-grid" }, rows);
      if (i % every === 0) svg("text", { x: at(x), y: bottom + 15, "text-anchor": "middle", class: "pu-live-faint" }, rows, power(x));
    });
    svg("text", { x: right, y: bottom + 31, "text-anchor": "end", class: "pu-live-faint" }, rows, "updates until half");
    keys.forEach((method, i) => {
      const y = ROW * i + 18;
      svg("text", { x: 0, y: y + 5, "font-weight": method === get("method") ? 700 : 400 }, rows, method);
      if (!asked.open()) return;
      const counts = ordered(method);
      const [low, high] = [counts[INSIDE], counts[SEEDS.length - 1 - INSIDE]].map(at);
      svg("line", { x1: low, x2: high, y1: y, y2: y, class: "pu-live-line" }, rows);
      const mean = formula(method);
      if (mean) svg("line", { x1: at(mean), x2: at(mean), y1: y - 9, y2: y + 9, class: "pu-live-bound" }, rows);
      if (middle(method) < Infinity) svg("circle", { cx: at(middle(method)), cy: y, r: 5, class: "pu-live-rest" }, rows);
      if (lost(method)) svg("text", { x: low - 8, y: y + 4, "text-anchor": "end", class: "pu-live-faint" }, rows, `${lost(method)} of ${SEEDS.length} lost`);
    });
  });

  const drawPath = fit(below, (width) => {
    path.replaceChildren();
    path.setAttribute("height", 0);
    if (!asked.open()) return;
    const { count, path: steps } = shownRun();
    const first = get(get("method") === "restart" ? "reference" : "start")[1];
    const end = count === Infinity ? MOST : count;
    const from = 10 ** Math.floor(Math.log10(Math.max(1e-12, Math.min(first, ...steps.map(([, p]) => p)))));
    const { at, up, line } = axes(path, width, TALL, { from: 0, to: end, ticks: [0, end], title: "update" },
      { from, to: 1, log: true, title: "probability of the correct answer in one run" });
    if (seen) {
      svg("rect", { x: at(0), y: up(1), width: at(end) - at(0), height: up(from) - up(1), class: "pu-live-unseen" }, path);
      const sights = [0, ...steps.filter(([, , correct]) => correct).map(([t]) => t), end];
      sights.slice(1, -1).forEach((t) => svg("line", { x1: at(t), x2: at(t), y1: up(1), y2: up(from), class: "pu-live-seen" }, path));
      const gaps = sights.slice(1).map((t, k) => t - sights[k]);
      const widest = gaps.indexOf(Math.max(...gaps));
      svg("text", { x: at(sights[widest] + gaps[widest] / 2), y: up(1) + 18, "text-anchor": "middle", class: "pu-live-tag" }, path, "not seen yet");
    }
    const corners = steps.flatMap(([t, p], k) => [[t, k ? steps[k - 1][1] : first], [t, p]]);
    line([[0, first], ...corners, [end, steps.length ? steps.at(-1)[1] : first]], { class: "pu-live-curve", style: "--hue: var(--accent)" });
  });

  // "3332 updates (1600 to 5000)", or how many runs are lost
  const told = (method) => {
    if (middle(method) === Infinity) return `${lost(method)} of ${SEEDS.length} runs are not back within ${digits(MOST)} updates`;
    const most = ordered(method)[SEEDS.length - 1 - INSIDE];
    const interval = `${digits(ordered(method)[INSIDE])} to ${most === Infinity ? `over ${digits(MOST)}` : digits(most)}`;
    return `${plural(middle(method), "update")} (${interval})${lost(method) ? `, with ${lost(method)} of ${SEEDS.length} runs lost` : ""}`;
  };

  function say() {
    if (!asked.open()) {
      words.textContent = "Make a guess, and the counts of 21 runs of each method appear.";
      return;
    }
    const [method, size] = [get("method"), get("size")];
    const best = keys.reduce((a, b) => (middle(b) < middle(a) ? b : a));
    const verdict = setting === here()
      ? asked.judge([best], best === "restart"
        ? "The reference gives the correct answer in 2 % of its samples: what takes long is to see it at all."
        : "Where the hack still pays, the others lift it whenever it beats a failing answer in a group. The best of the group hardly does, because its steps towards a likely answer are small.")
      : "";
    const mean = formula(method);
    const s = sightStep(method === "restart" ? "GRPO" : method, size, get("weight"));
    const why = mean === null ? ""
      : ` The formula’s mean is ${brief(mean)} updates, ${brief(mean * size * chance())} times the first wait: the first correct sample comes after ${brief(1 / (size * chance()))} updates on average, and each multiplies its odds by ${brief(Math.exp(s))}.`;
    const { count, path: steps } = shownRun();
    const sights = steps.filter(([, , correct]) => correct).length;
    const groups = count === Infinity ? MOST : count;
    const waiting = seen ? ` In the run shown ${digits(groups - sights)} of ${digits(groups)} groups had no correct sample.` : "";
    words.textContent = `${verdict}${method[0].toUpperCase()}${method.slice(1)}: ${told(method)}.${why}${waiting}${method === "restart" ? "" : ` Restart: ${told("restart")}.`}`;
  }

  function draw() {
    Object.entries(sliders).forEach(([name, one]) => one.set(values(name).indexOf(get(name))));
    Object.entries(selects).forEach(([name, one]) => one.set(get(name)));
    toggle.textContent = seen ? "Hide the waiting groups" : "Show the waiting groups";
    key.textContent = `Dots: medians of ${SEEDS.length} runs with intervals of 95 %. Dashed: the mean by the formula${get("pays") > 0 ? ", which needs a hack that pays nothing" : ""}. All but the restart begin with the hack at 99.9 %; six other answers always fail.`;
    drawRows();
    drawPath();
    say();
  }
  ["size", "weight", "pays"].forEach((name) => model.on(`change:${name}`, later(() => {
    compute();
    draw();
  })));
  model.on("change:method", later(draw));
  compute();
  draw();
}

export default kept(render);
