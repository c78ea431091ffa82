// The gravity well: two updates from one start, on the simplex and on one axis of steps. The first
// action is the best, worth 1; the second is worth `middle`, the third 0.1.

const MOST = 20000;
const HIGH = 126;
const STREAMS = [[1, 1, 8], [1, 4, 5], [1, 8, 1], [4, 1, 5], [5, 4, 1], [3, 3, 4], [1, 6, 3], [2, 1, 7]]
  .map((parts) => parts.map((x) => x / sum(parts)));

function render({ model, el }) {
  const { get, put, range, values } = attributes(model);
  const names = shown(model);
  const [labels, colours] = ["labels", "colours"].map(get);
  const sides = ["first", "second"];
  const q = () => [1, get("middle"), get("low")];
  let runs = {};
  let times = [0];
  let now = 0;
  let seen = false; // whether the run has been shown to its end

  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const asked = question("",
    [["up", "it only rises"], ["down", "it falls, then rises"], ["both", "it rises, falls, and rises again"]],
    () => say());
  const time = slider("step", 0, 1, 1, 0, (i) => digits(times[i] ?? 0), (i) => {
    run.set(i);
    show(i);
  });
  const run = playback(time, () => times.length - 1, 8, (i, paper) => show(i, paper), words);
  const middle = slider("value of a₂", ...range("middle"), 0.05, get("middle"), (x) => x.toFixed(2),
    (x) => put({ middle: x }));
  const sizes = values("weight");
  const weight = slider("step size", 0, sizes.length - 1, 1, sizes.indexOf(get("weight")),
    (i) => `${sizes[i]}`, (i) => put({ weight: sizes[i] }));
  const starts = get("starts").map(([text, policy]) =>
    button(text, () => put({ policy }), "pu-live-small"));
  const panels = sides.map((key) => {
    const picture = triangle(`The simplex under the ${key} update`, () => get("policy"), (policy) => put({ policy }));
    const choose = select("", names.map((name) => [name, labels[name]]), get(key), (name) => put({ [key]: name }));
    choose.querySelector("select").setAttribute("aria-label", `${key} update`);
    const head = html("div", { class: "pu-live-bar" }, html("span", { class: "pu-live-swatch" }), choose);
    const box = html("div", { class: "pu-live-panel pu-live-board" }, head, picture.box);
    return { key, picture, choose, box };
  });
  const plot = svg("svg", { height: HIGH, "aria-hidden": "true" });
  const room = html("div", {}, plot);
  const start = html("p", { class: "pu-live-key" });
  // The curve stands above the triangles: it shows the fall, which is too small to see in them.
  frame(el, "well", asked.box,
    html("div", { class: "pu-live-bar" }, run.play, time.row),
    room, words,
    html("div", { class: "pu-live-columns" }, ...panels.map(({ box }) => box)),
    html("p", { class: "pu-live-key" }, "Pale grey: another action gains more than the best. Full grey: the best action even loses."),
    html("details", { class: "pu-live-fold" }, html("summary", {}, "Start, value of a₂ and step size"),
      html("div", { class: "pu-live-bar" }, ...starts),
      html("div", { class: "pu-live-bar" }, middle.row, weight.row),
      start));

  const chosen = () => sides.map(get);
  const best = (name, t) => runs[name].path[Math.min(t, runs[name].path.length - 1)][0];
  const called = (name) => labels[name];

  function compute() {
    runs = {};
    [...new Set(chosen())].forEach((name) => {
      const runner = travel(name, get("policy"), q, get("weight"), normed(name, 3));
      const [count] = arrive(runner, q(), [0.5], 0, MOST);
      runs[name] = Object.assign(runner, { count });
    });
    const longest = Math.max(...chosen().map((name) => Math.min(runs[name].count, MOST)));
    times = moments(0, Math.max(12, Math.round(1.15 * longest)));
    Object.values(runs).forEach((runner) => runner.go(times.at(-1)));
    time.bounds(times.length - 1, 0);
    middle.set(get("middle"));
    start.textContent = `Start: ${triple(get("policy"))}, for PG-ES with parameters of norm one. Thin lines in the triangles: other starts. A tick is ten steps.`;
    weight.set(sizes.indexOf(get("weight")));
    asked.ask(`From this start, what does the probability of the best action, a₁, do under ${called(get("first"))}?`);
    panels.forEach(({ key, picture, choose, box }) => {
      const name = get(key);
      choose.set(name);
      box.style.setProperty("--tone", colours[name]);
      picture.set(q());
      picture.shade((pi) => [null, PALE.well, PALE.deep][gravity(name, inside(pi), q(), get("weight"))]);
      picture.streams(STREAMS.map((pi) => {
        const stream = travel(name, pi, q, get("weight"), normed(name, 3));
        stream.go(300);
        return stream.path;
      }), colours[name]);
    });
    seen = false;
    run.set(0);
    show(0);
  }

  const redraw = fit(room, (width) => {
    plot.replaceChildren();
    const [left, right, top, bottom] = [34, width - 8, 10, HIGH - 30];
    const end = times.at(-1);
    const at = (t) => left + ((right - left) * Math.log1p(t)) / Math.log1p(end);
    // logarithmic, from the power of ten below all that the runs show
    const least = Math.min(0.1, ...chosen().map((name) => Math.min(...times.map((t) => best(name, t)))));
    const floor = Math.max(-8, Math.floor(Math.log10(least)));
    const height = (chance) => top + ((bottom - top) * Math.log10(Math.max(chance, 10 ** floor))) / floor;
    Array.from({ length: 1 - floor }, (_, k) => 10 ** -k).forEach((level) => {
      svg("line", { x1: left, x2: right, y1: height(level), y2: height(level), class: "pu-live-grid" }, plot);
      svg("text", { x: left - 6, y: height(level) + 4, "text-anchor": "end", class: "pu-live-faint" }, plot, power(level));
    });
    for (let t = 1; t <= end; t *= 10) {
      svg("text", { x: at(t), y: bottom + 14, "text-anchor": "middle", class: "pu-live-faint" }, plot, digits(t));
    }
    svg("text", { x: right, y: HIGH - 3, "text-anchor": "end", class: "pu-live-faint" }, plot, "probability of a₁ against steps, log scales");
    [...new Set(chosen())].forEach((name) => {
      const points = times.map((t) => `${at(t).toFixed(1)},${height(best(name, t)).toFixed(1)}`);
      const group = svg("g", { style: `--tone:${colours[name]}` }, plot);
      if (seen) svg("polyline", { points: points.join(" "), class: "pu-live-curve", opacity: 0.25 }, group);
      svg("polyline", { points: points.slice(0, now + 1).join(" "), class: "pu-live-curve" }, group);
      svg("circle", { cx: at(times[now]), cy: height(best(name, times[now])), r: 4.5, class: "pu-live-fill" }, group);
    });
  });

  function show(i, paper = false) {
    now = i;
    seen ||= !paper && i === times.length - 1;
    panels.forEach(({ key, picture }) => {
      picture.clear();
      picture.trace(runs[get(key)].path, times[i], colours[get(key)]);
    });
    redraw();
    say();
  }

  // Where the probability of the best action turns, in what is shown of the run: nowhere if it only
  // rises, at its lowest if it falls first, at a peak and then there if it rises, falls, and rises again.
  function course(name) {
    const shares = runs[name].path.slice(0, times.at(-1) + 1).map((pi) => pi[0]);
    const falls = shares.findIndex((x, t) => t > 0 && x < shares[t - 1] - 1e-12);
    const rises = shares.findIndex((x, t) => t > 0 && x > shares[t - 1] + 1e-12);
    if (falls < 0) return [];
    const low = Math.min(...shares.slice(falls));
    return rises >= 0 && rises < falls ? [Math.max(...shares.slice(0, falls)), low] : [low];
  }

  const share = (x, more = 0) => (x < 0.001 ? brief(x, more) : x < 0.01 ? x.toPrecision(2 + more) : x.toFixed(2 + more));

  function way(name) {
    const [start, ...turns] = apart([best(name, 0), ...course(name)], share);
    return [
      "never falls",
      `first falls from ${start} to ${turns[0]}`,
      `rises from ${start} to ${turns[0]}, falls back to ${turns[1]}`,
    ][turns.length];
  }

  function sentenceOf(name, i) {
    const { count } = runs[name];
    const end = Number.isFinite(count) ? `is at one half after ${plural(count, "step")}` : `has not reached one half after ${plural(MOST, "step")}`;
    return `Under ${called(name)} ${i ? "it" : "the probability of a₁"} ${
      count === 0 ? `starts at one half or above, and ${way(name)}` : `${way(name)}, and ${end}`}.`;
  }

  function say() {
    const pair = [...new Set(chosen())];
    let text;
    if (now === 0) {
      text = `a₁ is the best action, and starts with ${share(get("policy")[0])}. ${
        asked.guess() ? "Press Play." : "Make a guess, then press Play."} Drag the point to start elsewhere.`;
    } else if (now === times.length - 1) {
      const arrived = Number.isFinite(runs[pair[0]].count); // else nobody knows how it goes on
      text = `${arrived ? asked.judge([["up", "down", "both"][course(pair[0]).length]], "The three probabilities add up to one, and a₁ loses while a₂ gains more than a₃ loses.") : ""}${pair.map(sentenceOf).join(" ")}${
        pair.length > 1 && runs[pair[0]].path.every((pi, t) => Math.abs(pi[0] - best(pair[1], t)) < 1e-9) ? " The two curves coincide." : ""}`;
    } else {
      text = `After ${plural(times[now], "step")} a₁ has ${spoken(pair.map((name) => `${share(best(name, times[now]))} under ${called(name)}`))}.`;
    }
    if (words.textContent !== text) words.textContent = text;
  }

  ["policy", "middle", "weight", "first", "second"].forEach((key) => model.on(`change:${key}`, later(compute)));
  compute();
}

export default kept(render);
