// The landing page's race: it runs once by itself, then asks what ten times as many steps cost.

const LANES = [
  { name: "pg-sm", called: "softmax policy gradient", note: "what PPO builds on" },
  { name: "pg-es", called: "escort policy gradient", note: "powers, not exponentials" },
  { name: "mce", twin: "ce", called: "cross-entropy", note: "plain or modified, here alike" },
  { name: "di", called: "direct parametrization", note: "no transform" },
];
const ANSWERS = [20, 60, 200, 2000];
const EDGE = 11; // pixels between the ends of a track and those of its picture

function render({ model, el }) {
  const { get } = attributes(model);
  const colours = get("colours");
  const eta = get("eta");
  const length = eta === 0.5 ? "½" : fraction(eta);
  let n = get("n");
  let races = {};
  let state = { phase: "ready", out: 0, home: 0 };
  let stop = () => {};
  let asked = false;

  const compute = () => {
    races = Object.fromEntries(LANES.map(({ name }) => [name, race(name, n, eta)]));
  };
  const last = () => Math.max(...LANES.map(({ name }) => races[name].count));

  // The figure: a lane is its name, its track and its count.
  const lanes = LANES.map(({ name, twin, called, note }) => {
    const picture = svg("svg", { class: "pu-open-track", "aria-hidden": "true" });
    const lane = svg("line", { class: "pu-open-lane" }, picture);
    const start = svg("line", { class: "pu-open-start" }, picture);
    const away = svg("path", { class: "pu-open-away" }, picture);
    const back = svg("path", { class: "pu-open-back" }, picture);
    const ring = svg("circle", { r: 9, class: "pu-open-ring" }, picture);
    const runner = svg("g", {}, picture);
    svg("circle", { r: 8.5, class: "pu-open-runner" }, runner);
    if (twin) svg("path", { d: "M0,-7.5 a7.5,7.5 0 0 1 0,15 z", class: "pu-open-twin", style: `--tone:${colours[twin]}` }, runner);
    const number = html("b", {});
    const count = html("span", { class: "pu-open-count" }, number);
    const row = html("div", { class: "pu-open-row", style: `--tone:${colours[name]}` },
      html("span", { class: "pu-open-name" }, html("b", {}, called), html("small", {}, note)), picture, count);
    return { name, picture, lane, start, away, back, ring, runner, number, row };
  });
  const prize = html("span", { class: "pu-open-prize" }, "reward");
  const unit = html("small", {});
  const skip = button("Skip", () => (busy() ? finish() : play(n)), "pu-open-skip");
  const words = html("p", { class: "pu-live-words pu-open-words", "aria-live": "off" });
  const choices = html("div", { class: "pu-open-choices", role: "group", "aria-label": "Your guess" });
  const any = slider("Learn for", 1, get("most"), 1, get("again"), (x) => plural(x, "step"), (x) => {
    stop();
    n = x;
    compute();
    state = { phase: "done", out: n, home: last() };
    draw();
    say();
  });
  const setting = html("small", { class: "pu-open-setting" }, `two actions, step size ${length}`);
  const head = html("div", { class: "pu-open-head" }, setting, html("span", { "aria-hidden": "true" }, prize), unit);
  const foot = html("div", { class: "pu-open-foot" },
    html("span", { "aria-hidden": "true" }, html("span", {}, "undecided"), html("span", {}, "certain")), skip);
  const ask = html("div", { class: "pu-open-ask" }, words, choices);
  el.append(html("div", { class: "pu-live pu-open" }, head,
    html("div", { class: "pu-open-rows" }, ...lanes.map(({ row }) => row)), foot, ask));

  const busy = () => ["out", "turn", "home"].includes(state.phase);

  // Draw all lanes. A hop is one step: above the lane on the way out, below it on the way home.
  let size = { width: 0, height: 0 };
  function draw() {
    const { width, height } = size;
    if (width === 0) return;
    const middle = height / 2;
    const x = (chance) => EDGE + (width - 2 * EDGE) * Math.max(-0.012, 2 * chance - 1);
    const lift = (from, to) => Math.min(middle - 4, 2.5 + 0.42 * Math.abs(to - from));
    const arcs = (path, count, sign) => path.slice(0, count).map((chance, i) => {
      const [from, to] = [x(chance), x(path[i + 1])];
      const high = lift(from, to) * sign;
      const bend = (to - from) * 0.18;
      return `M${from.toFixed(1)},${middle} C${(from + bend).toFixed(1)},${(middle - 1.33 * high).toFixed(1)} ${(to - bend).toFixed(1)},${(middle - 1.33 * high).toFixed(1)} ${to.toFixed(1)},${middle}`;
    }).join("");
    lanes.forEach(({ name, picture, lane, start, away, back, ring, runner, number, row }) => {
      const { out, home, count } = races[name];
      const left = Math.min(state.out, n);
      const right = Math.min(state.home, count);
      const there = ["home", "done"].includes(state.phase) && state.home >= count;
      const path = right > 0 ? home : out;
      const t = right > 0 ? right : left;
      const i = Math.min(Math.floor(t), path.length - 2);
      const part = Math.min(1, t - i);
      const [from, to] = [x(path[i]), x(path[i + 1])];
      const up = t % 1 === 0 ? 0 : lift(from, to) * Math.sin(Math.PI * part) * (right > 0 ? -1 : 1);
      picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
      Object.entries({ x1: x(0.5), x2: x(1), y1: middle, y2: middle }).forEach(([key, value]) => lane.setAttribute(key, value));
      Object.entries({ x1: x(0.5), x2: x(0.5), y1: 0, y2: height }).forEach(([key, value]) => start.setAttribute(key, value));
      away.setAttribute("d", arcs(out, Math.floor(left), 1));
      back.setAttribute("d", arcs(home, Math.floor(right), -1));
      const at = there ? x(0.5) : from + (to - from) * part;
      runner.setAttribute("transform", `translate(${at.toFixed(2)},${(middle - (there ? 0 : up)).toFixed(2)})`);
      ring.setAttribute("cx", x(0.5));
      ring.setAttribute("cy", middle);
      row.classList.toggle("pu-open-there", there);
      number.textContent = state.phase === "home" || state.phase === "done" ? digits(Math.floor(right))
        : state.phase === "out" ? digits(Math.floor(left)) : "0";
      row.classList.toggle("pu-open-away-now", state.phase === "out" || state.phase === "ready");
    });
    el.firstElementChild.dataset.phase = state.phase;
  }

  // Time runs slower over the first steps home: whoever is fast has them only.
  function play(steps) {
    stop();
    n = steps;
    compute();
    const end = last();
    const slow = Math.min(4, end);
    choices.replaceChildren();
    const out = () => {
      state = { phase: "out", out: 0, home: 0 };
      say();
      stop = clock(n, 1.5, (t) => { state.out = t; draw(); }, turn);
    };
    const turn = () => {
      state = { phase: "turn", out: n, home: 0 };
      say();
      draw();
      stop = clock(1, 0.7, () => {}, home);
    };
    const home = () => {
      state = { phase: "home", out: n, home: 0 };
      say();
      stop = clock(slow, 1, (t) => { state.home = t; draw(); },
        () => { stop = clock(end, 1.6, (t) => { state.home = Math.max(slow, t); draw(); }, finish, slow); });
    };
    out();
  }

  function finish() {
    stop();
    state = { phase: "done", out: n, home: last() };
    draw();
    say();
  }

  let guess = null;
  function say() {
    unit.textContent = ["ready", "out"].includes(state.phase) ? "steps" : "steps back";
    skip.textContent = busy() ? "Skip" : "Play again";
    const strong = (text) => html("b", {}, text);
    if (state.phase === "out") words.replaceChildren(strong("Learning. "), `A hop is one update, of step size ${length}.`);
    else if (state.phase === "turn") words.replaceChildren(strong("The reward moves. "), "All must turn round.");
    else if (state.phase === "home") words.replaceChildren(strong("Unlearning. "), "Who is back first?");
    else if (state.phase === "done" && !asked) {
      words.replaceChildren(strong(`Now ${get("again")} steps. `), "Roughly how many does softmax need back?");
      choices.replaceChildren(...ANSWERS.map((value) => button(digits(value), () => {
        [guess, asked] = [value, true];
        skip.focus(); // the answers go away
        words.setAttribute("aria-live", "polite");
        any.set(get("again"));
        play(get("again"));
      })));
    } else if (state.phase === "done") {
      const count = (name) => digits(races[name].count);
      const right = Math.abs(guess - races["pg-sm"].count) < 25;
      const start = n === get("again") ? (right ? "Right: " : "No: ") : "";
      words.replaceChildren(strong(`${start}${count("pg-sm")}`),
        `, as slow as learning. Cross-entropy needs ${count("mce")}, direct ${count("di")}. `,
        html("a", { href: "argument.html" }, "Why?"));
      if (!choices.contains(any.row)) choices.replaceChildren(any.row);
    }
  }

  compute();
  new ResizeObserver(() => {
    const { width, height } = lanes[0].picture.getBoundingClientRect();
    if (width === 0) return;
    size = { width, height };
    draw();
  }).observe(lanes[0].picture);
  if (still()) finish();
  else {
    draw();
    words.replaceChildren("\u00a0");
    const watch = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      watch.disconnect();
      setTimeout(() => { if (state.phase === "ready") play(n); }, 350);
    }, { threshold: 0.6 });
    watch.observe(el);
  }
  onPaper(finish);
}

export default { render };
