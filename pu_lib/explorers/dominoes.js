// Domino: a row of states for each update, and one axis of time for all of them. A domino leans to
// the right by as much as its state has learnt of the wrong action, and falls to the left when it flips.

const ROW = 52;
const TOP = 18;
const LEAN = 42; // degrees, for a state that is certain of the wrong action

function render({ model, el }) {
  const { get, put, range, values } = attributes(model);
  const names = shown(model);
  const labels = get("labels");
  const colours = get("colours");
  let paths = {};
  let before = null; // the number of states that stood here last, and their step size
  let end = 1;
  let now = 0;
  const slow = names[0];

  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const setting = html("p", { class: "pu-live-key" });
  const asked = question(
    `One more state in the row: how many more steps will ${labels[slow]} need?`,
    [["few", "a few"], ["half", "half as many again"], ["all", "as many again, or more"]], say);
  const more = button("Add a state", () => put({ states: get("states") + 1 }), "pu-live-main");
  const states = slider("states", ...range("states"), 1, get("states"), (x) => `${x}`, (x) => put({ states: x }));
  const time = slider("step t", 0, 1, 1, 0, digits, (x) => {
    run.set(x);
    show(x);
  });
  const run = playback(time, () => end, 9, (t) => show(t), words);
  const picture = svg("svg", { "aria-hidden": "true" });
  const room = html("div", {}, picture);
  frame(el, "domino", asked.box,
    html("div", { class: "pu-live-bar" }, more, states.row),
    html("div", { class: "pu-live-bar" }, run.play, time.row),
    room, setting, words,
    html("details", { class: "pu-live-fold" }, html("summary", {}, "Step size"),
      select("step size", values("eta").map((x) => [x, fraction(x)]), get("eta"),
        (x) => put({ eta: Number(x) }))));

  const subscript = (k) => [...`${k}`].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
  const solved = (name) => paths[name].times[0];
  const called = (group) => spoken(group.map((name) => labels[name]));

  const redraw = fit(room, (width) => {
    picture.replaceChildren();
    const many = get("states") > 9 && width < 480; // words stand above the dominoes
    const [label, clockRoom, tall, high, raised] = many ? [8, 8, 24, ROW + 14, 34] : [62, 74, 30, ROW, 8];
    picture.setAttribute("height", TOP + high * names.length + 26);
    const each = (width - label - clockRoom - tall) / get("states");
    const wide = Math.max(3, Math.min(8, each * 0.28));
    const at = (t) => label + ((width - label - 4) * t) / end;
    [1, get("states")].slice(0, get("states")).forEach((k) => svg("text", {
      x: label + tall + each * (k - 0.6), y: 11, "text-anchor": "middle", class: "pu-live-faint",
    }, picture, `s${subscript(k)}`));
    names.forEach((name, i) => {
      const base = TOP + high * (i + 1) - 16;
      const row = svg("g", { style: `--tone:${colours[name]}` }, picture);
      svg("text", { x: 0, y: base - raised, "font-weight": 600 }, row, labels[name]);
      const { times } = paths[name];
      times.forEach((flip, k) => {
        const x = label + tall + each * (k + 0.4);
        const fallen = flip <= now;
        const lean = fallen ? 0 : LEAN * Math.max(0, 1 - 2 * dominoAt(paths[name], k, now));
        // a domino falls to the left, as the good news travels from the last state to the first
        svg("rect", {
          x: x - wide / 2, y: base - tall, width: wide, height: tall, rx: 1.2,
          class: fallen ? "pu-live-fallen" : "pu-live-standing",
          transform: fallen ? `rotate(-68 ${x - wide / 2} ${base})` : `rotate(${lean} ${x + wide / 2} ${base})`,
        }, row);
      });
      const done = solved(name) <= now;
      svg("text", { x: width, y: base - raised, "text-anchor": "end", "font-weight": done ? 700 : 400 }, row,
        done ? digits(solved(name)) : "…");
      const lane = base + 8;
      svg("line", { x1: label, x2: width - 4, y1: lane, y2: lane, class: "pu-live-grid" }, row);
      svg("line", { x1: label, x2: at(Math.min(now, solved(name))), y1: lane, y2: lane, class: "pu-live-shaft" }, row);
      times.filter((flip) => flip <= now).forEach((flip) =>
        svg("line", { x1: at(flip), x2: at(flip), y1: lane - 5, y2: lane + 5, class: "pu-live-print" }, row));
    });
    const y = TOP + high * names.length + 16;
    svg("text", { x: label, y, class: "pu-live-faint" }, picture, "step 0");
    svg("text", { x: width, y, "text-anchor": "end", class: "pu-live-faint" }, picture, `step ${digits(end)}`);
  });

  function show(t) {
    now = t;
    redraw();
    say();
  }

  function say() {
    const done = names.filter((name) => solved(name) <= now);
    const waiting = names.filter((name) => solved(name) > now);
    const h = get("states");
    const unjudged = asked.guess() !== null && !grown() && !more.disabled; // adding a state judges
    const next = unjudged ? " Add a state: is your guess right?" : "";
    run.play.classList.toggle("pu-live-main", !unjudged);
    let text;
    if (now === 0) {
      text = `${grown()}${h === 1 ? "One state, undecided, and told the truth at once."
        : `${h} states in a row, all undecided. Only the last one is told the truth; each of the others leans the wrong way until its right neighbour has fallen.`}${next || " Press Play."}`;
    } else if (!waiting.length) {
      text = `${grown()}All have fallen: ${spoken(tally())}. ${twins()}From this start neither PG-SM nor PG-ES can do it in fewer than 2${superscript(h)} − 1 = ${plural(2 ** h - 1, "step")}${exactly(2 ** h - 1)}.${next}${full()}`;
    } else {
      const left = waiting.map((name) => `${paths[name].times.filter((flip) => flip > now).length} under ${labels[name]}`);
      text = `After ${plural(now, "step")}: ${done.length ? `${called(done)} ${done.length > 1 ? "are" : "is"} done. ` : ""}Still standing: ${spoken(left)}.`;
    }
    if (words.textContent !== text) words.textContent = text;
  }

  const superscript = (k) => [...`${k}`].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");

  const tally = () => grouped(names, solved, (a, b) => a - b)
    .map(([steps, group]) => `${called(group)} after ${plural(steps, "step")}`);

  const exactly = (count) => {
    const tight = names.filter((name) => solved(name) === count);
    return get("states") > 3 && tight.length ? `, which is what ${called(tight)} ${tight.length > 1 ? "take" : "takes"}` : "";
  };

  // Rows whose states all flip at the same times.
  function twins() {
    if (get("states") === 1) return "";
    const same = grouped(names, (name) => paths[name].times.join(), () => 0);
    return coinciding("rows", same.map(([, group]) => group.map((name) => labels[name])));
  }

  // The steps with one state fewer, in which the second state falls as the first.
  const shorter = (name) => paths[name].times[1];

  // The verdict on the guess.
  function judged() {
    const [old, extra] = [shorter(slow), solved(slow) - shorter(slow)];
    return asked.judge([extra >= old ? "all" : 2 * extra >= old ? "half" : "few"],
      "While the new state waits for the others it learns the wrong action, and must then unlearn it.");
  }

  // The same for the largest number of states, to which none can be added.
  function full() {
    if (asked.guess() === null || !more.disabled || grown()) return "";
    return ` ${judged()}With one state fewer, ${labels[slow]} needs ${digits(shorter(slow))}.`;
  }

  // What one more state has cost, if the last change was one more state.
  function grown() {
    if (!before || before.states + 1 !== get("states") || before.eta !== get("eta")) return "";
    const last = foil(names);
    return `${judged()}With ${get("states")} states, ${labels[slow]} needs ${digits(solved(slow))} instead of ${
      plural(shorter(slow), "step")}, and ${labels[last]} ${digits(solved(last))} instead of ${digits(shorter(last))}. `;
  }

  function compute() {
    run.halt();
    const [h, eta] = [get("states"), get("eta")];
    before = compute.last ?? null;
    paths = Object.fromEntries(names.map((name) => [name, dominoPaths(name, h, eta)]));
    compute.last = { states: h, eta };
    end = Math.max(...names.map(solved));
    states.set(h);
    setting.textContent = `Every state starts at one half, under PG-ES with the parameters (1, 1), and every step has the size ${fraction(eta)}. Below each row: time, and the flips.`;
    more.disabled = h === range("states")[1];
    time.bounds(end, 0);
    run.set(0);
    show(0);
  }
  ["states", "eta"].forEach((key) => model.on(`change:${key}`, compute));
  compute();
}

export default kept(render);
