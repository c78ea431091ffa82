// Networks: ten runs of each loss after a task has changed, and which of the losses is back first.

const LEAST_TIME = 50;
const ROW = 30;
const SECONDS = 4;

function render({ model, el }) {
  const { get, put, values, range } = attributes(model);
  const tasks = get("tasks");
  const cap = get("cap");
  const asked = { task: get("task"), training: get("training") };
  const here = () => tasks[get("task")];
  const rows = () => here().rows[get("training")];
  const length = () => here().lengths[get("training")];
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  let now = cap; // updates after the change
  let stop = null;

  const first = rows();
  const inQuestion = ["greedy", "ce", "pg-sm entropy", "ppo"].map((name) => first.find(({ method }) => method === name));
  const guessed = question(`${here().title} has been learned for ${digits(length())} updates. Then its two actions change places. Which method is back first?`,
    inQuestion.map(({ method, label, colour }) => [method, label, colour]), (guess) => (guess ? play() : draw()));
  const task = select("task", values("task").map((name) => [name, tasks[name].title]), get("task"), (name) => change({ task: name }));
  const training = slider("training", ...range("training"), 1, get("training"), (i) => digits(here().lengths[i]), (i) => change({ training: i }));
  const again = button("Play again", () => play(), "pu-live-main");
  const picture = svg("svg", { "aria-hidden": "true" });
  const room = html("div", {}, picture);
  frame(el, "back-first", guessed.box, html("div", { class: "pu-live-bar" }, training.row, task, again), room,
    html("p", { class: "pu-live-key" }, `A dot is a run that earns half of the best reward again, a ring one that does not within ${digits(cap)} updates. Bar: the mean of the middle half of the runs.`), words);

  const redraw = fit(room, (width) => {
    picture.replaceChildren();
    const bottom = ROW * Math.max(...Object.values(tasks).map((each) => each.rows[0].length)) + 4;
    picture.setAttribute("height", bottom + 36);
    const [left, right] = [width < 480 ? 126 : 150, width - 16];
    const at = (x) => left + ((right - left) * Math.log(Math.max(x, LEAST_TIME) / LEAST_TIME)) / Math.log(cap / LEAST_TIME);
    [LEAST_TIME, 200, 1000, cap].forEach((x) => {
      svg("line", { x1: at(x), x2: at(x), y1: 0, y2: bottom, class: "pu-live-grid" }, picture);
      svg("text", { x: at(x), y: bottom + 15, "text-anchor": "middle", class: "pu-live-faint" }, picture, digits(x));
    });
    svg("text", { x: right, y: bottom + 31, "text-anchor": "end", class: "pu-live-faint" }, picture, "updates after the change");
    if (guessed.open() && now < cap) svg("line", { x1: at(now), x2: at(now), y1: 0, y2: bottom, class: "pu-live-axis" }, picture);
    rows().forEach(({ label, colour, times, lost, runs, mean }, i) => {
      const y = ROW * i + 18;
      const group = svg("g", { style: `--tone:${colour}` }, picture);
      svg("text", { x: 0, y: y + 5 }, group, label);
      if (!guessed.open()) return;
      if (mean === null) {
        svg("text", { x: left + 6, y: y + 5, class: "pu-live-faint" }, group, `${times.length} of ${runs} runs had learned`);
        return;
      }
      times.forEach((x, k) => {
        if (x > now) return;
        const back = k < times.length - lost;
        svg("circle", { cx: at(x), cy: y + 3 * ((k % 5) - 2), r: 3.5, class: back ? "pu-live-fill" : "pu-live-ring", "fill-opacity": 0.75, ...(back ? {} : { style: "stroke: var(--hue); stroke-width: 1.3" }) }, group);
      });
      if (mean <= now) svg("line", { x1: at(mean), x2: at(mean), y1: y - 11, y2: y + 11, class: "pu-live-left" }, group);
    });
  });

  const told = ({ label, mean, lost, times }) => `${label}, after ${digits(Math.round(mean))}${lost ? ` or more (${lost} of ${times.length} runs are not back)` : ""}`;

  function say() {
    if (!guessed.open()) {
      words.textContent = "Make a guess, and the runs start.";
      return;
    }
    if (stop) return;
    const judged = rows().filter(({ mean }) => mean !== null).sort((a, b) => a.mean - b.mean);
    const [best] = judged;
    const level = judged.filter((row) => row.level && row !== best).map(({ label }) => label);
    const same = get("task") === asked.task && get("training") === asked.training;
    const verdict = same ? guessed.judge(judged.filter((row) => row.level).map(({ method }) => method), "Whoever has an actor waits for its critic first.") : "";
    const tie = level.length ? ` The runs cannot tell ${spoken(level)} from it.` : " It is certainly the first.";
    words.textContent = `${verdict}First: ${told(best)} updates.${tie} Last: ${told(judged.at(-1))}. ${
      same ? "Now shorten the training: who gets faster?" : ""}`;
  }

  function draw() {
    task.set(get("task"));
    training.set(get("training"));
    again.disabled = !guessed.open();
    redraw();
    say();
  }

  function halt() {
    stop?.();
    stop = null;
    now = cap;
    words.setAttribute("aria-live", "polite");
    draw();
  }

  function play() {
    stop?.();
    words.setAttribute("aria-live", "off");
    words.textContent = "The task has changed.";
    stop = () => {};
    const end = Math.log(cap / LEAST_TIME);
    const ended = clock(end, SECONDS, (t) => {
      now = LEAST_TIME * Math.exp(t);
      draw();
    }, halt);
    if (stop) stop = ended;
  }

  function change(changes) {
    guessed.reveal();
    put(changes);
  }
  ["task", "training"].forEach((key) => model.on(`change:${key}`, later(halt)));
  onPaper(halt);
  draw();
}

export default kept(render);
