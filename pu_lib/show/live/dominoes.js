// Domino: a row of states for each update, and one axis of time for all of them.

const ROW = 62;
const TOP = 14;

function render({ model, el }) {
  const names = model.get("updates");
  const labels = model.get("labels");
  const colours = model.get("colours");
  const get = (key) => model.get(key);
  const put = (key, value) => {
    model.set(key, value);
    model.save_changes();
  };
  let times = {};
  let end = 1;
  let now = 0;

  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const states = slider("states", 1, get("most"), 1, get("states"), (x) => `${x}`, (x) => put("states", x));
  const time = slider("step t", 0, 1, 1, 0, (x) => count(x), (x) => {
    run.set(x);
    show(x);
  });
  const run = playback(time, () => end, 9, (t) => show(t), words);
  const picture = svg("svg", { height: TOP + ROW * names.length + 26, "aria-hidden": "true" });
  const room = html("div", {}, picture);
  frame(el, "domino",
    html("div", { class: "pu-live-bar" }, states.row),
    html("div", { class: "pu-live-bar" }, run.play, time.row),
    room, words,
    html("details", { class: "pu-live-fold" }, html("summary", {}, "Step size"),
      select("step size", get("sizes").map((x) => [x, fraction(x)]), get("eta"),
        (x) => put("eta", Number(x)))));

  function count(x) {
    return `${x}`.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  }

  const subscript = (k) => [...`${k}`].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");

  const redraw = fit(room, (width) => {
    picture.replaceChildren();
    const label = 62;
    const clockRoom = 74;
    const tall = get("states") > 9 && width < 480 ? 24 : 30;
    const each = (width - label - clockRoom - tall) / get("states");
    const wide = Math.max(3, Math.min(8, each * 0.28));
    const at = (t) => label + ((width - label - 4) * t) / end;
    [1, get("states")].slice(0, get("states")).forEach((k) => svg("text", {
      x: label + tall + each * (k - 0.6), y: 11, "text-anchor": "middle", class: "pu-live-faint",
    }, picture, `s${subscript(k)}`));
    names.forEach((name, i) => {
      const base = TOP + ROW * i + 36;
      const row = svg("g", { style: `--tone:${colours[name]}` }, picture);
      svg("text", { x: 0, y: base - 8, "font-weight": 600 }, row, labels[name]);
      times[name].forEach((flip, k) => {
        const x = label + tall + each * (k + 0.4);
        const fallen = flip <= now;
        // a domino falls to the left, as the good news travels from the last state to the first
        svg("rect", {
          x: x - wide / 2, y: base - tall, width: wide, height: tall, rx: 1.2,
          class: fallen ? "pu-live-fallen" : "pu-live-standing",
          transform: fallen ? `rotate(-68 ${x - wide / 2} ${base})` : "",
        }, row);
      });
      const done = times[name][0] <= now;
      svg("text", { x: width, y: base - 8, "text-anchor": "end", "font-weight": done ? 700 : 400 }, row,
        done ? count(times[name][0]) : "…");
      const lane = base + 8;
      svg("line", { x1: label, x2: width - 4, y1: lane, y2: lane, class: "pu-live-grid" }, row);
      svg("line", { x1: label, x2: at(Math.min(now, times[name][0])), y1: lane, y2: lane, class: "pu-live-shaft" }, row);
      times[name].filter((flip) => flip <= now).forEach((flip) =>
        svg("line", { x1: at(flip), x2: at(flip), y1: lane - 5, y2: lane + 5, class: "pu-live-print" }, row));
    });
    const y = TOP + ROW * names.length + 16;
    svg("text", { x: label, y, class: "pu-live-faint" }, picture, "step 0");
    svg("text", { x: width, y, "text-anchor": "end", class: "pu-live-faint" }, picture, `step ${count(end)}`);
  });

  function show(t) {
    now = t;
    redraw();
    say();
  }

  function say() {
    const solved = names.filter((name) => times[name][0] <= now);
    const waiting = names.filter((name) => times[name][0] > now);
    const called = (group) => spoken(group.map((name) => labels[name]));
    const h = get("states");
    let text;
    if (now === 0) text = `${h === 1 ? "One state" : `${h} states`} in a row, and none has fallen yet. A state learns the right way only once the next one has fallen. Play.`;
    else if (!waiting.length) {
      const found = grouped(names, (name) => times[name][0], (a, b) => a - b);
      text = `All have fallen: ${spoken(found.map(([steps, group]) => `${called(group)} after ${count(steps)}`))} ${end === 1 ? "step" : "steps"}. Neither policy gradient can do it in fewer than 2^${h} − 1 = ${count(2 ** h - 1)}.`;
    } else {
      const left = waiting.map((name) => `${times[name].filter((flip) => flip > now).length} under ${labels[name]}`);
      text = `${solved.length ? `${called(solved)} ${solved.length > 1 ? "are" : "is"} done. ` : ""}Still standing: ${spoken(left)}.`;
    }
    if (words.textContent !== text) words.textContent = text;
  }

  function compute() {
    run.halt();
    times = Object.fromEntries(names.map((name) => [name, dominoTimes(name, get("states"), get("eta"))]));
    end = Math.max(...names.map((name) => times[name][0]));
    states.set(get("states"));
    time.bounds(end, 0);
    run.set(0);
    show(0);
  }
  ["states", "eta"].forEach((key) => model.on(`change:${key}`, compute));
  compute();
}

export default { render };
