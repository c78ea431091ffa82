// The simplex lab: one state with three actions, a policy to drag, and a clock.

const MOST = 10000;
const GOALS = [0.5, 0.95];
const SHADES = [
  ["none", "nothing"],
  ["value", "the value"],
  ["drop", "where one step lowers the value"],
  ["well", "where another action gains more than the best"],
];

function render({ model, el }) {
  const { get, put, values } = attributes(model);
  const names = shown(model);
  const [labels, colours, dashes] = ["labels", "colours", "dashes"].map(get);
  const called = (group) => spoken(group.map((name) => labels[name]));
  let runners = {};
  let arrivals = {};
  let times = [0]; // the steps that the slider of time stops at
  let now = 0;

  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const setting = html("p", { class: "pu-live-key" });
  const asked = question("Which update will be the first to give the best action 95 %?",
    names.map((name) => [name, labels[name], colours[name]]), () => say());
  const picture = triangle("The simplex of three actions with the paths of the updates",
    () => get("policy"), (policy) => put({ policy, flip: null }));
  const time = slider("step", 0, 1, 1, 0, (i) => digits(times[i] ?? 0), (i) => {
    run.set(i);
    show(i);
  });
  const run = playback(time, () => times.length - 1, 7, (i) => show(i), words);
  const flip = button("Flip the values", () => put({ flip: get("flip") === null ? times[now] : null }));
  const value = (a) => slider(`value of ${NAMES[a]}`, 0, 1, 0.05, get("q")[a], (x) => x.toFixed(2),
    (x) => put({ q: aim().map((old, b) => (a === b ? x : old)), flip: null }));
  const sliders = [0, 1, 2].map(value);
  const sizes = values("weight");
  const weight = slider("step size", 0, sizes.length - 1, 1, sizes.indexOf(get("weight")),
    (i) => `${sizes[i]}`, (i) => put({ weight: sizes[i], flip: null }));
  const shade = select("shade", SHADES, get("shade"), (key) => put({ shade: key }));
  const subject = select("of the update", names.map((name) => [name, labels[name]]), get("subject"),
    (key) => put({ subject: key }));
  const presets = get("presets").map(([text, given]) =>
    button(text, () => put({ ...given, flip: null }), "pu-live-small"));

  const rows = Object.fromEntries(names.map((name) => {
    const box = html("input", { type: "checkbox", "aria-label": `draw ${labels[name]}` });
    box.addEventListener("change", () => put({
      shown: names.filter((other) => (other === name ? box.checked : get("shown").includes(other))),
    }));
    const cells = [0, 1, 2, 3].map(() => html("td"));
    const swatch = html("span", { class: "pu-live-swatch", style: `--tone:${colours[name]}` });
    const row = html("tr", {}, html("th", { scope: "row" }, html("label", {}, box, swatch, labels[name])), ...cells);
    return [name, { box, cells, row }];
  }));
  const heads = ["update", "steps to 50\u00a0%", "to 95\u00a0%", "now", "first step’s gain"];
  const table = html("table", {},
    html("thead", {}, html("tr", {}, ...heads.map((text) => html("th", { scope: "col" }, text)))),
    html("tbody", {}, ...names.map((name) => rows[name].row)));

  frame(el, "lab", asked.box,
    html("div", { class: "pu-live-columns" }, picture.box,
      html("div", { class: "pu-live-side" }, html("div", { class: "pu-live-bar" }, run.play, flip, time.row),
        sliders[0].row, weight.row, table)),
    setting, words,
    html("details", { class: "pu-live-fold" }, html("summary", {}, "Situations of later chapters"),
      html("div", { class: "pu-live-bar" }, ...presets)),
    html("details", { class: "pu-live-fold" }, html("summary", {}, "More controls"),
      sliders[1].row, sliders[2].row, shade, subject));

  const turned = (q) => q.map((x) => Math.max(...q) + Math.min(...q) - x);
  const at = (t) => (get("flip") !== null && t >= get("flip") ? turned(get("q")) : get("q"));
  const aim = () => at(MOST * 2); // the values that the race is about
  const best = (q) => NAMES.filter((_, a) => q[a] === Math.max(...q));
  const mass = (pi, q) => sum(pi.filter((_, a) => q[a] === Math.max(...q)));
  const first = (name) => oneStep(name, get("policy"), get("q"), get("weight"));

  function compute() {
    run.halt();
    const from = get("flip") ?? 0;
    runners = Object.fromEntries(names.map((name) => [name, travel(name, get("policy"), at, get("weight"))]));
    arrivals = Object.fromEntries(names.map((name) => [name, arrive(runners[name], aim(), GOALS, from, MOST)]));
    const ends = names.map((name) => arrivals[name][1]).filter(Number.isFinite);
    const farthest = names.some((name) => !Number.isFinite(arrivals[name][1])) ? MOST : Math.max(...ends);
    times = moments(from, from + Math.max(1, farthest));
    time.bounds(times.length - 1, 0);
    run.set(0);
    settle();
    show(0);
  }

  function settle() {
    sliders.forEach((control, a) => control.set(aim()[a]));
    setting.textContent = `Start: ${triple(get("policy"))}, for PG-ES with parameters of norm √3. Every step has the weight ${get("weight")}.`;
    weight.set(sizes.indexOf(get("weight")));
    flip.textContent = get("flip") === null ? "Flip the values" : "Flip them back";
    shade.set(get("shade"));
    subject.set(get("subject"));
    picture.set(aim());
    paint();
  }

  function paint() {
    const [kind, name, q, w] = [get("shade"), get("subject"), aim(), get("weight")];
    const [low, high] = [Math.min(...q), Math.max(...q)];
    const colours = {
      none: null,
      value: (pi) => `rgba(120, 130, 145, ${0.06 + (high > low ? 0.42 * (sum(pi.map((x, a) => x * q[a])) - low) / (high - low) : 0)})`,
      drop: (pi) => (oneStep(name, inside(pi), q, w).change < -1e-12 ? PALE.drop : null),
      well: (pi) => (oneStep(name, inside(pi), q, w).well ? PALE.well : null),
    };
    picture.shade(colours[kind]);
  }

  const steps = (count) => (Number.isFinite(count) ? digits(count) : `> ${digits(MOST)}`);
  const signed = (x) => (Math.abs(x) < 5e-5 && x !== 0 ? `${x < 0 ? "−" : "+"}${Math.abs(x).toExponential(0)}`
    : `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(4)}`);

  function show(i) {
    now = i;
    const t = times[i];
    picture.clear();
    names.forEach((name) => {
      const { box, cells } = rows[name];
      runners[name].go(t);
      if (get("shown").includes(name)) picture.trace(runners[name].path, t, colours[name], dashes[name]);
      box.checked = get("shown").includes(name);
      const { change } = first(name);
      const passed = (k) => t - (get("flip") ?? 0) >= arrivals[name][k];
      [0, 1].forEach((k) => {
        cells[k].textContent = passed(k) || i === times.length - 1 ? steps(arrivals[name][k]) : "…";
        cells[k].className = passed(k) ? "pu-live-there" : "";
      });
      cells[2].textContent = mass(runners[name].path[t], aim()).toFixed(3);
      cells[3].textContent = signed(change);
      cells[3].className = change < -1e-12 ? "pu-live-wrong" : "";
    });
    say();
  }

  function say() {
    const t = times[now] - (get("flip") ?? 0);
    const top = best(aim());
    const tie = top.length > 1 ? `${spoken(top)} tie for the best; CE and MCE take ${top[0]}. ` : "";
    let text;
    if (top.length === NAMES.length) text = "The three actions are worth the same: every policy is optimal, and there is nothing to win.";
    else if (t === 0 && times.length > 1) text = opening(tie, top);
    else if (now === times.length - 1) text = `${tie}${story()}${twins()}${lost()}`;
    else {
      const there = names.filter((name) => arrivals[name][1] <= t);
      const far = names.filter((name) => !there.includes(name));
      text = `After ${plural(t, "step")}${get("flip") === null ? "" : " with the new values"}: ${
        there.length ? `${called(there)} ${there.length > 1 ? "have" : "has"} given ${spoken(top)} 95 %. ` : ""
      }On the way: ${spoken(far.map((name) => `${labels[name]} (${mass(runners[name].path[times[now]], aim()).toFixed(2)})`))}. A tick is ten steps.`;
    }
    if (words.textContent !== text) words.textContent = text;
  }

  function opening(tie, top) {
    const lower = names.filter((name) => first(name).change < -1e-12);
    const pulled = names.filter((name) => first(name).well);
    const news = [
      lower.length ? `One step of ${called(lower)} lowers the value.` : "",
      pulled.length ? `Under ${called(pulled)} another action gains more than ${top[0]}.` : "",
    ].filter(Boolean).join(" ");
    if (get("flip") !== null) return `The values have flipped ${get("flip") ? `after ${plural(get("flip"), "step")}` : "before the first step"}: ${tie || `${top[0]} is the best now.`} ${asked.guess() ? "" : "Who will be the first to change its mind? "}Press Play.`;
    return `${tie || `${top[0]} is the best action. `}${news ? `${news} ` : ""}${asked.guess() ? `Your guess is ${labels[asked.guess()]}. ` : "Make a guess, "}${asked.guess() ? "Press" : "then press"} Play; the clock runs faster and faster.`;
  }

  function story() {
    const ranked = grouped(names, (name) => arrivals[name][1], (a, b) => a - b);
    const [[fastest, leaders], ...rest] = ranked;
    if (fastest === 0 && !rest.length) return `${spoken(best(aim()))} had 95 % from the start: there was nothing to win${again()}. `;
    if (!Number.isFinite(fastest)) return `No update gives ${spoken(best(aim()))} 95 % within ${digits(MOST)} steps. `;
    const slower = rest.map(([count, group]) => (Number.isFinite(count)
      ? `${called(group)} took ${digits(count)}` : `${called(group)} had not arrived after ${digits(MOST)}`));
    return `${asked.judge(leaders, because(leaders[0]))}${called(leaders)} ${leaders.length > 1 ? "were" : "was"} the first at 95 %, after ${plural(fastest, "step")}${
      slower.length ? `; ${spoken(slower)}` : ""}. `;
  }

  // Why the fastest update is fast.
  function because(leader) {
    if (leader === "di") return `The steps of ${labels.di} keep their length up to the edge of the triangle.`;
    if (["ce", "mce"].includes(leader)) return `A step of ${labels[leader]} is as long as the probability that the best action still lacks.`;
    return "";
  }

  // Who had 95 % from the start, and has it no more.
  function again() {
    const fallen = names.filter((name) =>
      mass(runners[name].path[times.at(-1)], aim()) < GOALS[1] - runners[name].rounding);
    return fallen.length ? `; ${called(fallen)} lost it again` : "";
  }

  // Paths that are the same, from the start to the end.
  function twins() {
    const alike = (a, b) => runners[a].path.every((pi, t) => t >= Math.min(runners[a].path.length, runners[b].path.length)
      || pi.every((x, i) => Math.abs(x - runners[b].path[t][i]) < 1e-9));
    const same = grouped(names, (name) => names.find((other) => alike(other, name)), () => 0);
    return coinciding("paths", same.map(([, group]) => group.map((name) => labels[name])));
  }

  // What the start costs the slowest update, where it costs much.
  function lost() {
    if (get("flip") !== null) return "";
    const even = Object.fromEntries(names.map((name) =>
      [name, arrive(travel(name, [1 / 3, 1 / 3, 1 / 3], at, get("weight")), aim(), GOALS, 0, MOST)[0]]));
    const slow = names.filter((name) => arrivals[name][0] > 20 * Math.max(1, even[name]));
    const quick = foil(names);
    return slow.map((name) => `To one half ${labels[name]} needs ${plural(arrivals[name][0], "step").replace("Infinity", `more than ${digits(MOST)}`)} from here and ${
      digits(even[name])} from the uniform policy; ${labels[quick]} needs ${digits(arrivals[quick][0])} from here. `).join("");
  }

  ["policy", "q", "weight", "flip"].forEach((key) => model.on(`change:${key}`, later(compute)));
  ["shade", "subject", "shown"].forEach((key) => model.on(`change:${key}`, later(() => {
    settle();
    show(now);
  })));
  compute();
}

export default kept(render);
