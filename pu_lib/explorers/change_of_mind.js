// Change your mind: two actions, a runner for each update, n steps out, and the race home.

const START = 5; // where one half stands on the track, and how far it is to one, in percent
const LENGTH = 90;

function render({ model, el }) {
  const { get, put, range, values } = attributes(model);
  const names = shown(model);
  const labels = get("labels");
  const colours = get("colours");
  let phase = "ready"; // ready, training, trained, running, done
  let guess = null;
  let stop = () => {};
  let races = {};

  const train = button("", () => begin("training"), "pu-live-main");
  const flip = button("Flip the values", () => begin("running"));
  const length = slider("steps n", ...range("n"), 1, get("n"), (x) => `${x}`, (x) => put({ n: x }));
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const setting = html("p", { class: "pu-live-key" });
  const fold = html("details", { class: "pu-live-fold" },
    html("summary", {}, "Step size"),
    select("step size", values("eta").map((x) => [x, fraction(x)]), get("eta"),
      (x) => put({ eta: Number(x) })),
    select("schedule", [["constant", "constant"], ["inverse-sqrt", "shrinking, η/√t"]],
      get("schedule"), (x) => put({ schedule: x })));

  const tracks = Object.fromEntries(names.map((name) => {
    const radio = html("input", { type: "radio", name: `guess-${get("address")}`, value: name });
    radio.addEventListener("change", () => {
      guess = name;
      say();
    });
    const picture = svg("svg", { class: "pu-live-track", "aria-hidden": "true" });
    svg("line", { x1: `${START}%`, x2: `${START + LENGTH}%`, y1: "50%", y2: "50%", class: "pu-live-lane" }, picture);
    svg("line", { x1: `${START}%`, x2: `${START}%`, y1: 0, y2: "100%", class: "pu-live-line" }, picture);
    const prints = svg("g", {}, picture);
    const runner = svg("circle", { r: 7, cy: "50%", class: "pu-live-runner" }, picture);
    const time = html("span", { class: "pu-live-time" });
    const row = html("div", { class: "pu-live-lane-row", style: `--tone:${colours[name]}` },
      html("label", {}, radio, html("span", { class: "pu-live-swatch" }), labels[name]), picture, time);
    return [name, { radio, prints, runner, time, row, drawn: "" }];
  }));
  const ends = html("div", { class: "pu-live-ends", "aria-hidden": "true" },
    html("span", {}, "½"), html("span", {}, "probability of a₁"), html("span", {}, "1"));

  frame(el, "race",
    html("div", { class: "pu-live-bar" }, train, flip, length.row),
    html("fieldset", { class: "pu-live-tracks" },
      html("legend", {}, "Who will be back first?"),
      ...names.map((name) => tracks[name].row), ends),
    setting, words, fold);

  const last = () => Math.max(...names.map((name) => races[name].count).filter(Number.isFinite), 1);
  const place = (chance) => `${START + LENGTH * Math.max(-0.02, 2 * chance - 1)}%`;

  // Footprints: those of the way out above the lane, those of the way home below it.
  function draw(name, out, home) {
    const { prints, runner, time, row } = tracks[name];
    const { out: away, home: back, count } = races[name];
    const made = Math.min(Math.floor(home), back.length - 1);
    const key = `${out}/${made}`;
    const between = (path, t) => {
      const i = Math.min(Math.floor(t), path.length - 1);
      return path[i] + (path[Math.min(i + 1, path.length - 1)] - path[i]) * (t - Math.floor(t));
    };
    const now = home > 0 ? between(back, Math.min(home, back.length - 1)) : between(away, out);
    runner.setAttribute("cx", place(now));
    if (tracks[name].drawn !== key) {
      tracks[name].drawn = key;
      prints.replaceChildren();
      const mark = (chance, y) => svg("line", {
        x1: place(chance), x2: place(chance), y1: y, y2: y + 6, class: "pu-live-print",
      }, prints);
      away.slice(1, Math.floor(out) + 1).forEach((chance) => mark(chance, 3));
      back.slice(1, made + 1).forEach((chance) => mark(chance, 21));
    }
    const isHome = ["running", "done"].includes(phase) && home >= count;
    row.classList.toggle("pu-live-home", isHome);
    if (phase === "ready" || phase === "training") time.textContent = "";
    else if (phase === "trained") time.textContent = short(now, name);
    else if (isHome) time.textContent = `back: ${count}`;
    else time.textContent = Number.isFinite(count) ? `${made}` : "never";
  }

  function begin(next) {
    stop();
    if (next === "training" && phase === "done") guess = null; // a guess is about one race
    phase = next;
    const steps = next === "training" ? get("n") : last();
    const seconds = Math.min(next === "training" ? 2.5 : 7, 0.6 + steps / 8);
    let arrived = "";
    settle();
    stop = clock(steps, seconds, (t) => {
      names.forEach((name) => draw(name, next === "training" ? t : get("n"), next === "training" ? 0 : t));
      const back = next === "running" ? names.filter((name) => races[name].count <= t).join() : "";
      if (back !== arrived) {
        arrived = back;
        say(t);
      }
    }, () => {
      phase = next === "training" ? "trained" : "done";
      settle();
      names.forEach((name) => draw(name, get("n"), next === "training" ? 0 : steps));
    });
  }

  // What can be pressed now, and what is said.
  function settle() {
    train.textContent = `Train ${plural(get("n"), "step")}`;
    flip.disabled = phase !== "trained";
    flip.className = phase === "trained" ? "pu-live-main" : "";
    train.className = ["ready", "done"].includes(phase) ? "pu-live-main" : "";
    names.forEach((name) => {
      tracks[name].radio.disabled = ["running", "done"].includes(phase);
      tracks[name].radio.checked = guess === name;
    });
    say();
  }

  const called = (group) => spoken(group.map((name) => labels[name]));
  const groups = (valueOf) => grouped(names, valueOf, (a, b) => a - b);

  function say(t = 0) {
    const n = get("n");
    if (phase === "ready") {
      words.textContent = "Five learners, one choice. Each takes action a₁ half of the time, and for now a₁ is the better one. Train them; when the values flip, who will be the first back at one half?";
    } else if (phase === "training") {
      words.textContent = "Action a₁ pays 1 and a₂ nothing: all five run towards a₁. A mark is one step.";
    } else if (phase === "trained") {
      const asked = guess ? `Your guess is ${labels[guess]}. Now flip the values.` : "Who will be the first back at one half? Choose a runner, then flip.";
      words.textContent = `${plural(n, "step")} out. Soon a₂ pays 1 and a₁ nothing, and all five have to change their minds. ${asked}`;
    } else if (phase === "running") {
      const back = names.filter((name) => races[name].count <= t);
      words.textContent = `Now a₂ pays 1. ${back.length ? `${called(back)} ${back.length > 1 ? "are" : "is"} back at one half; the others are not.` : "All five turn round."}`;
    } else {
      words.textContent = [verdict(), twins(), never()].filter(Boolean).join(" ");
    }
  }

  function verdict() {
    const finite = groups((name) => races[name].count).filter(([count]) => Number.isFinite(count));
    const [first, ...rest] = finite;
    const story = `${called(first[1])} ${first[1].length > 1 ? "were" : "was"} first, after ${plural(first[0], "step")}${
      rest.length ? `; ${spoken(rest.map(([count, group]) => `${called(group)} took ${count}`))}` : ""
    }. The way out had ${plural(get("n"), "step")}.`;
    if (!guess) return story;
    return first[1].includes(guess)
      ? `Your guess, ${labels[guess]}, was right. ${story}`
      : `Not quite: your guess was ${labels[guess]}. ${story}`;
  }

  // With two actions CE and MCE are one update: their two tracks never differ.
  function twins() {
    const same = groups((name) => JSON.stringify(races[name].out)).map(([, group]) => group);
    const pair = same.find((group) => group.length > 1 && group.includes("mce"));
    return pair && get("n") > 1 ? "With two actions CE and MCE are the same update." : "";
  }

  function never() {
    const lost = names.filter((name) => races[name].count === Infinity);
    return lost.length ? `${called(lost)} never comes back: its first step made a parameter exactly 0, and there it stays.` : "";
  }

  function compute() {
    races = Object.fromEntries(names.map((name) =>
      [name, race(name, get("n"), get("eta"), get("schedule"))]));
  }

  // On paper all are back.
  function finish() {
    stop();
    phase = "done";
    settle();
    names.forEach((name) => draw(name, get("n"), last()));
  }

  // A new setting: the runners stand where n steps take them.
  function reset(next, kept = null) {
    stop();
    phase = next;
    guess = kept;
    length.set(get("n"));
    setting.textContent = `All start at one half, PG-ES with the parameters (1, 1). The step size is ${fraction(get("eta"))}${
      get("schedule") === "constant" ? "" : " / √t, and t goes on when the values flip"}. A mark is one step.`;
    compute();
    settle();
    names.forEach((name) => draw(name, next === "ready" ? 0 : get("n"), 0));
  }

  ["n", "eta", "schedule"].forEach((key) => model.on(`change:${key}`, () => reset("trained")));
  reset("ready");
  let before = phase;
  onPaper(() => {
    before = phase;
    finish();
  }, () => {
    if (before !== "done") reset(before === "ready" ? "ready" : "trained", guess);
  });
}

// Only DI arrives at its wall; what is 1 for another update is a number that was rounded.
const short = (x, name) => (x === 1 && name === "di" ? "1" : x > 0.9995 ? "0.999…" : x.toFixed(3));

export default kept(render);
