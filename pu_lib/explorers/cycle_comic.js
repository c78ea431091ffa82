// A cycle as a comic: the eight steps of its period, one of them open. Arrows are actions, the bolder
// the likelier; they have the colour of the text, because colours are for updates.

// The picture of a step, and the small one in the strip: its size, where the states are, their radius,
// how far arrows bend and how far a loop reaches, in radii. The small one has no room for rare actions.
const LARGE = { box: [520, 300], places: [[120, 150], [320, 55], [320, 245], [465, 150]], radius: 28, bend: 26, loop: 3.3, rarest: 0 };
const SMALL = { box: [200, 150], places: [[54, 75], [122, 27], [122, 123], [178, 75]], radius: 20, bend: 9, loop: 2.5, rarest: 0.02 };
const SUB = ["₀", "₁", "₂"];
const a_ = (a) => `a${SUB[a]}`;
const s_ = (s) => (s < 3 ? `s${SUB[s]}` : "end");
const value = (x) => (x < 0 ? "−" : "") + Math.abs(x).toFixed(2);
const reward = (x) => (x > 0 ? `+${x}` : x < 0 ? `−${-x}` : "0");
const topOf = (row) => row.indexOf(Math.max(...row));

function render({ model, el }) {
  const { get, put, range, values } = attributes(model);
  const names = shown(model).filter((name) => values("update").includes(name));
  const [labels, colours] = ["labels", "colours"].map(get);
  const { rewards, successors, phases, discount, start, best } = get("example");
  const mdp = deterministic(rewards, successors, discount);
  let frames = [];
  let now = 0;
  const opened = new Set(); // the steps that have been open

  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const asked = question("CE always moves towards the action that is best now. Where is the policy after these eight steps?",
    [["best", "at the best policy"], ["closer", "closer to it"], ["same", "where it began"]], () => say());
  const choose = select("update", names.map((name) => [name, labels[name]]), get("update"), (name) => put({ update: name }));
  const period = slider("period", ...range("period"), 1, get("period"), (x) => `${x}`, (x) => put({ period: x }));
  const time = slider("step", 0, 8, 1, 0, (x) => (x < 8 ? `${x + 1}` : "end"), (x) => {
    run.set(x);
    show(x);
  });
  const run = playback(time, () => 8, 20, (t) => show(t), words);
  const panels = phases.map(({ state, weight }, t) => {
    const picture = svg("svg", { viewBox: `0 0 ${SMALL.box.join(" ")}`, "aria-hidden": "true" });
    const note = html("span", { class: "pu-live-note" });
    const node = button("", () => {
      run.set(t);
      time.set(t);
      show(t);
    }, "pu-live-panel");
    node.append(picture, note);
    node.setAttribute("aria-label", `Step ${t + 1}: ${s_(state)}, weight ${weight}`);
    return { node, picture, note };
  });
  const big = svg("svg", { viewBox: `0 0 ${LARGE.box.join(" ")}`, "aria-hidden": "true" });
  const levels = svg("svg", { "aria-hidden": "true" });
  frame(el, "comic", asked.box,
    html("div", { class: "pu-live-strip" }, ...panels.map(({ node }) => node)),
    html("div", { class: "pu-live-bar" }, run.play, time.row),
    html("div", { class: "pu-live-columns" }, html("div", { class: "pu-live-stage" }, big), html("div", { class: "pu-live-side" }, levels)),
    words,
    html("details", { class: "pu-live-fold" }, html("summary", {}, "Another update, other periods"), choose, period.row));

  // A curve from state to state, and the middle of it.
  function curve(s, to, { places, radius, bend, loop }) {
    const [[x1, y1], [x2, y2]] = [places[s], places[to ?? 3]];
    if (to === s) {
      const [far, high, end] = [x1 - loop * radius, 2.6 * radius, [x1 - 1.08 * radius, y1 + 0.75 * radius]];
      return { d: `M${x1 - radius},${y1 - 0.67 * radius} C${far},${y1 - high} ${far},${y1 + high} ${end.join()}`, at: [far + 2, y1 + 5], end, way: [46, -32] };
    }
    const [dx, dy] = [x2 - x1, y2 - y1];
    const far = Math.hypot(dx, dy);
    const [nx, ny] = [dy / far, -dx / far];
    const middle = [(x1 + x2) / 2 + nx * bend, (y1 + y2) / 2 + ny * bend];
    const from = [middle[0] - x1, middle[1] - y1].map((x, i, all) => [x1, y1][i] + (x * (radius + 3)) / Math.hypot(...all));
    const end = [middle[0] - x2, middle[1] - y2].map((x, i, all) => [x2, y2][i] + (x * (radius + 7)) / Math.hypot(...all));
    return { d: `M${from.join()} Q${middle.join()} ${end.join()}`, at: [middle[0] + nx * 6, middle[1] + ny * 6 + 4], end, way: [x2 - end[0], y2 - end[1]] };
  }

  function draw(picture, frame, size) {
    const large = size === LARGE;
    picture.replaceChildren();
    const { policies, state, greedy: target, v, after } = frame;
    const names = svg("g"); // above all arrows
    successors.forEach((row, s) => row.forEach((to, a) => {
      const chance = policies[s][a];
      if (chance < size.rarest) return;
      const { d, at, end, way } = curve(s, to, size);
      const chosen = s === state && a === target;
      const lead = s === state && a === topOf(after);
      const opacity = large && (chosen || lead) ? 1 : 0.25 + 0.75 * chance;
      svg("path", { d, class: "pu-live-action", "stroke-width": 1.2 + 4.5 * chance, opacity, "stroke-dasharray": chance < 0.02 ? "3 4" : "" }, picture);
      const turn = (Math.atan2(way[1], way[0]) * 180) / Math.PI;
      svg("path", { d: "M0,0 l-11,-6.6 v13.2 z", transform: `translate(${end.join()}) rotate(${turn})`, class: "pu-live-tip", opacity }, picture);
      if (!large) return;
      const tags = [`${a_(a)} ${reward(rewards[s][a])}`, chosen ? "greedy" : "", lead ? "on top" : ""].filter(Boolean);
      tags.forEach((text, i) => svg("text", {
        x: at[0], y: at[1], dy: `${1.05 * (i - (tags.length - 1) / 2)}em`, "text-anchor": "middle", class: i ? "pu-live-tag" : "pu-live-mark",
      }, names, text));
    }));
    picture.append(names);
    size.places.forEach(([cx, cy], s) => {
      svg("circle", { cx, cy, r: size.radius, class: "pu-live-state" }, picture);
      if (s === state) svg("circle", { cx, cy, r: size.radius + 5, class: "pu-live-now" }, picture);
      if (!large) {
        if (s < 3) svg("text", { x: cx, y: cy + 11, "text-anchor": "middle", "font-weight": 600, style: "font-size: 32px" }, picture, `${s}`);
        return;
      }
      svg("text", { x: cx, y: cy + (s < 3 ? -3 : 6), "text-anchor": "middle", "font-weight": 600 }, picture, s_(s));
      if (s < 3) svg("text", { x: cx, y: cy + 14, "text-anchor": "middle", class: "pu-live-faint" }, picture, value(v[s]));
    });
  }

  // A row for each parameter, before and after: those of the updated state, or of all states at the end.
  function drawLevels(title, rows, high) {
    levels.replaceChildren();
    const [left, right] = [44, 250];
    const foot = high * rows.length + 26;
    levels.setAttribute("viewBox", `0 0 280 ${foot + 24}`);
    const at = (x) => left + ((right - left) * (x + 22)) / 44;
    svg("text", { x: 0, y: 14, class: "pu-live-faint" }, levels, title);
    [-20, -10, 0, 10, 20].forEach((x) => {
      svg("line", { x1: at(x), x2: at(x), y1: x === 0 ? 22 : foot - 4, y2: foot, class: "pu-live-grid" }, levels);
      svg("text", { x: at(x), y: foot + 15, "text-anchor": "middle", class: "pu-live-faint" }, levels, x < 0 ? `−${-x}` : `${x}`);
    });
    rows.forEach(({ name, before, after, tags }, i) => {
      const y = 22 + high * (i + 0.5);
      svg("text", { x: 0, y: y + 5, "font-weight": 600 }, levels, name);
      svg("line", { x1: at(before), x2: at(after), y1: y, y2: y, class: "pu-live-action", "stroke-width": 2 }, levels);
      svg("circle", { cx: at(before), cy: y, r: 7, class: "pu-live-state" }, levels);
      svg("circle", { cx: at(after), cy: y, r: 5, class: "pu-live-goal" }, levels);
      if (tags) svg("text", { x: at(after), y: y - 11, "text-anchor": "middle", class: "pu-live-tag" }, levels, tags);
    });
  }

  function drawStep({ state, before, after, greedy: target }) {
    drawLevels(`parameters of ${s_(state)}, before ○ and after ●`, before.map((x, a) => ({
      name: a_(a), before: x, after: after[a],
      tags: [a === target ? "greedy" : "", a === topOf(after) ? "on top" : ""].filter(Boolean).join(", "),
    })), 44);
  }

  function drawPeriod(first, last) {
    drawLevels("parameters before step 1 ○ and after step 8 ●", first.flatMap((row, s) =>
      row.map((x, a) => ({ name: `${s_(s)} ${a_(a)}`, before: x, after: last[s][a], tags: "" }))), 25);
  }

  // A step is mistaken if it brings an action on top that is neither greedy nor was on top before.
  const mistaken = ({ before, after, greedy: target }) =>
    topOf(after) !== target && topOf(after) !== topOf(before);

  function compute() {
    run.halt();
    frames = followCycle(mdp, get("update"), start, phases, range("period")[1]);
    el.querySelector(".pu-live").style.setProperty("--tone", colours[get("update")]);
    choose.set(get("update"));
    period.set(get("period"));
    opened.clear();
    open().slice(0, 8).forEach((frame, t) => draw(panels[t].picture, frame, SMALL));
    show(Math.min(now, 8));
  }

  const open = () => frames.slice(8 * (get("period") - 1), 8 * get("period") + 1);

  function show(t) {
    now = t;
    const frame = open()[t];
    draw(big, t < 8 ? frame : { ...frame, state: null }, LARGE); // after the last step no state is updated
    if (t < 8) drawStep(frame);
    else drawPeriod(open()[0].theta, frame.theta);
    opened.add(t);
    panels.forEach(({ node, note }, i) => {
      const { state, greedy: target } = open()[i];
      const fault = opened.has(i) && mistaken(open()[i]); // not before the reader has been there
      node.setAttribute("aria-pressed", `${i === t}`);
      node.classList.toggle("pu-live-fault", fault);
      note.textContent = `${i + 1}. ${fault ? "mistaken" : `${s_(state)} → ${a_(target)}`}`;
    });
    say();
  }

  const taken = ({ policies }) => policies.slice(0, 3).map((row, s) => `${a_(topOf(row))} in ${s_(s)}`);

  function say() {
    const frame = open()[now];
    const { state, weight, greedy: target, before, after, v, q } = frame;
    const name = labels[get("update")];
    let text;
    if (now === 8) {
      const moved = Math.max(...open()[0].theta.flatMap((row, s) => row.map((x, a) => Math.abs(x - frame.theta[s][a]))));
      const same = moved < 1e-6;
      const arrived = best.v.every((most, s) => most - v[s] < 0.05);
      const [kind, ended] = arrived ? ["best", "the policy is at the optimum, or close to it"]
        : same ? ["same", "all parameters are what they were before step 1, and the same eight steps follow for ever"]
          : ["closer", "the parameters have moved on from where they were before step 1"];
      text = `${get("update") === "ce" ? asked.judge([kind], "Each step moves towards the best action of its state, but it changes which action is best in other states.") : ""}After the eight steps, under ${name}, ${ended}. ${s_(0)} is worth ${value(v[0])}, and could be worth ${value(best.v[0])}.`;
    } else {
      const gone = topOf(before) === topOf(after) ? `${a_(topOf(after))} stays on top` : `${a_(topOf(after))} takes the place of ${a_(topOf(before))} on top`;
      const fault = mistaken(frame)
        ? ` This is the mistaken step: ${a_(topOf(after))} is neither greedy nor was it on top. ${name} takes from ${a_(topOf(before))}, which was likely, what it gives to ${a_(target)}, and ${a_(topOf(after))} overtakes both of them; with it ${s_(state)} is worth ${value(open()[now + 1].v[state])}.`
        : "";
      text = `Step ${now + 1} of 8. The policy takes ${spoken(taken(frame))}; ${s_(0)} is worth ${value(v[0])} of ${value(best.v[0])}. Now ${s_(state)} is updated with weight ${weight} towards ${a_(target)}, which is greedy (q = ${value(q[state][target])}): ${gone}.${fault}`;
    }
    if (words.textContent !== text) words.textContent = text;
  }

  ["update", "period"].forEach((key) => model.on(`change:${key}`, later(compute)));
  compute();
}

export default kept(render);
