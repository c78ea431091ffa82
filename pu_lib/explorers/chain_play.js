// The chain, drawn as a chain: two updates learn it side by side, on one axis of time.

const BOARD = 146;
const CURVES = 128;

function render({ model, el }) {
  const { get, put } = attributes(model);
  const names = shown(model);
  const labels = get("labels");
  const colours = get("colours");
  const mdp = chain(get("states"));
  const last = get("states") - 1;
  const end = get("steps");
  const best = evaluate(mdp, mdp.rewards.map(() => [0, 1])).performance;
  const jump = evaluate(mdp, mdp.rewards.map(() => [1, 0])).performance;
  const paths = {};
  const path = (name) => (paths[name] ??= learn(mdp, name, end, get("eta"), get("share")));
  const played = () => [get("first"), get("second")];
  let now = 0;
  let seen = false; // whether the run has been shown to its end

  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const time = slider("update t", 0, end, 1, 0, (x) => `${x}`, (x) => {
    run.set(x);
    show(x);
  });
  const run = playback(time, () => end, 9, (t, paper) => show(t, paper), words);
  const skip = button("To the end", () => { // past the updates in which only the slower one moves
    time.set(end);
    show(end);
    run.set(end);
  });
  const boards = ["first", "second"].map((key) => {
    const choose = select("", names.map((name) => [name, labels[name]]), get(key), (name) => put({ [key]: name }));
    choose.querySelector("select").setAttribute("aria-label", `${key} update`);
    const swatch = html("span", { class: "pu-live-swatch" });
    const result = html("span", { class: "pu-live-told" });
    const picture = svg("svg", { height: BOARD, "aria-hidden": "true" });
    const room = html("div", { class: "pu-live-board" },
      html("div", { class: "pu-live-bar" }, swatch, choose, result), picture);
    return { key, room, picture, result };
  });
  const curves = svg("svg", { height: CURVES, "aria-hidden": "true" });
  const plot = html("div", {}, curves);
  const asked = question("Which of the two is the first to have 95 % of the best return?",
    [["first", "the upper one"], ["second", "the lower one"], ["both", "both at once"]], () => say());
  frame(el, "chain", asked.box, html("div", { class: "pu-live-bar" }, run.play, skip, time.row),
    ...boards.map((board) => board.room), plot,
    html("p", { class: "pu-live-key" }, `Every state starts at one half, under PG-ES with the parameters (1, 1). The weight of a state is ${
      get("eta") === 1 ? "" : `${get("eta")} times `}(${get("share")} × its expected discounted visits + ${Number((1 - get("share")).toFixed(3))}).`),
    words);

  function drawBoard({ picture, result, room }, name, width) {
    picture.replaceChildren();
    room.style.setProperty("--tone", colours[name]);
    const { policies, q, performance } = path(name)[now];
    const each = (width - 24) / last;
    const x = (s) => 12 + each * s;
    const y = 98;
    const radius = Math.min(13, each * 0.36);
    for (let s = 0; s < last; s += 1) {
      const [jumping, walking] = policies[s];
      const tall = 22 + 62 * ((last - s) / last);
      svg("path", {
        d: `M${x(s)},${y - radius} C${x(s) + each * 0.4},${y - radius - tall} ${x(last) - each * 0.4},${y - radius - tall} ${x(last)},${y - radius}`,
        class: "pu-live-jump", "stroke-width": 0.4 + 3.6 * jumping, opacity: 0.12 + 0.88 * jumping ** 1.5,
      }, picture);
      svg("line", {
        x1: x(s) + radius, x2: x(s + 1) - radius, y1: y, y2: y, class: "pu-live-shaft",
        "stroke-width": 0.6 + 5.4 * walking, opacity: 0.15 + 0.85 * walking,
        style: `stroke-width:${0.6 + 5.4 * walking}`,
      }, picture);
    }
    for (let s = 0; s <= last; s += 1) {
      const ending = s === last;
      svg("circle", { cx: x(s), cy: y, r: radius, class: "pu-live-state" }, picture);
      if (ending) {
        svg("circle", { cx: x(s), cy: y, r: radius * 0.55, class: "pu-live-goal" }, picture);
        continue;
      }
      svg("circle", { cx: x(s), cy: y, r: radius - 1.5, class: "pu-live-fill", opacity: policies[s][1] }, picture);
      const walk = q[s][1] > q[s][0];
      svg("text", { x: x(s), y: y + radius + 17, "text-anchor": "middle", class: "pu-live-sign" },
        picture, walk ? "→" : "↷");
    }
    svg("text", { x: x(0), y: y + radius + 34, "text-anchor": "middle", class: "pu-live-faint" }, picture, "s₀");
    svg("text", { x: x(last), y: y + radius + 34, "text-anchor": "middle", class: "pu-live-faint" }, picture, "end");
    result.textContent = `return ${performance.toFixed(3)}`;
  }

  function drawCurves(width) {
    curves.replaceChildren();
    const [left, right, top, bottom] = [76, width - 6, 8, CURVES - 22];
    const low = 0.7;
    const at = (t) => left + ((right - left) * t) / end;
    const height = (value) => bottom - ((bottom - top) * (value - low)) / (best + 0.01 - low);
    [[best, `walk ${best.toFixed(3)}`], [jump, `jump ${jump.toFixed(3)}`]].forEach(([value, text]) => {
      svg("line", { x1: left, x2: right, y1: height(value), y2: height(value), class: "pu-live-grid" }, curves);
      svg("text", { x: left - 6, y: height(value) + 4, "text-anchor": "end", class: "pu-live-faint" }, curves, text);
    });
    played().forEach((name) => {
      const points = path(name).map(({ performance }, t) => `${at(t).toFixed(1)},${height(performance).toFixed(1)}`);
      const group = svg("g", { style: `--tone:${colours[name]}` }, curves);
      if (seen) svg("polyline", { points: points.join(" "), class: "pu-live-curve", opacity: 0.28 }, group);
      svg("polyline", { points: points.slice(0, now + 1).join(" "), class: "pu-live-curve" }, group);
      svg("circle", { cx: at(now), cy: height(path(name)[now].performance), r: 4.5, class: "pu-live-fill" }, group);
    });
    svg("line", { x1: at(now), x2: at(now), y1: top, y2: bottom, class: "pu-live-axis" }, curves);
    svg("text", { x: left, y: CURVES - 5, class: "pu-live-faint" }, curves, "return, t = 0");
    svg("text", { x: right, y: CURVES - 5, "text-anchor": "end", class: "pu-live-faint" }, curves, `${end} updates`);
  }

  const redraws = boards.map((board) => fit(board.room, (width) => drawBoard(board, get(board.key), width)));
  const redrawCurves = fit(plot, drawCurves);

  function show(t, paper = false) {
    now = t;
    seen ||= !paper && t === end;
    redraws.forEach((redraw) => redraw());
    redrawCurves();
    say();
  }

  // What a frame shows, in words.
  function sentenceOf(name) {
    const { policies, q } = path(name)[now];
    const inner = policies.slice(0, last);
    const jumping = inner.filter(([a, b]) => a > b).length;
    const preferred = inner.filter((_, s) => q[s][1] > q[s][0]).length;
    const among = (count) => (count === last ? `all ${last}` : count === 0 ? "none" : `${count}`);
    return `${labels[name]} prefers the jump in ${among(jumping)} of the states (in s₀ with probability ${
      policies[0][0].toFixed(2)}), and by now walking is better in ${among(preferred)}.`;
  }

  function say() {
    const [first, second] = played();
    const won = winner(first, second);
    const verdict = won.length ? asked.judge(won, "The winner is whoever corrects the first states sooner, not whoever goes less far wrong.") : "";
    let text = `After ${plural(now, "update")}: ${sentenceOf(first)}`;
    if (first !== second) text += ` ${sentenceOf(second)}`;
    if (now === 0) text = `Before the first update both policies toss a coin in each state. Then jumping is the better action in ${jumpers(first)} of the ${last} states. ${asked.guess() ? "Press" : "Make a guess, then press"} Play.`;
    else if (now === end) text = `${verdict}${arrival(first)}${first === second ? "" : ` ${arrival(second)}`}`;
    if (words.textContent !== text) words.textContent = text;
  }

  const jumpers = (name) => path(name)[0].q.slice(0, last).filter(([a, b]) => a > b).length;

  const reached = (name) => path(name).findIndex(({ performance }) => performance >= 0.95 * best);

  function winner(first, second) {
    const [one, other] = [first, second].map(reached).map((t) => (t < 0 ? Infinity : t));
    if (Math.min(one, other) === Infinity) return [];
    return [one < other ? "first" : other < one ? "second" : "both"];
  }

  function arrival(name) {
    const steps = reached(name);
    return steps < 0
      ? `${labels[name]} has not reached 95 % of the best return in ${end} updates.`
      : `${labels[name]} reached 95 % of the best return after ${plural(steps, "update")}.`;
  }

  ["first", "second"].forEach((key) => model.on(`change:${key}`, () => {
    seen = false;
    show(now);
  }));
  show(0);
}

export default kept(render);
