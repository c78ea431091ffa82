// Symmetry: from one policy, the step for the values q and the step for the values -q.

const WEIGHT = 0.5;
const ROW = 46;

function render({ model, el }) {
  const { get, put, range } = attributes(model);
  const names = shown(model);
  const labels = get("labels");
  const colours = get("colours");
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const listed = (list) => spoken(list.map((name) => labels[name]));
  const greedy = names.filter((name) => ["ce", "mce"].includes(name));
  const linear = names.filter((name) => !["ce", "mce", "di"].includes(name));
  const asked = question("The values q change sign. Under which updates is the new step the old one turned round, at every policy?",
    [["all", "all of them"], ["linear", listed(linear)], ["greedy", listed(greedy)], ["none", "none of them"]], () => draw());
  const control = slider("policy π(a₁)", ...range("policy"), 0.01, get("policy"), (x) => x.toFixed(2), (x) => {
    asked.reveal();
    put({ policy: x });
  });
  const picture = svg("svg", { height: ROW * names.length + 52, "aria-hidden": "true" });
  const room = html("div", {}, picture);
  const key = html("p", { class: "pu-live-key" }, "Upper arrow: the step for q = (1, 0). Lower arrow: the step for −q. Bar: their sum, or a dot where it is zero. Lengths: the change of θ₁ − θ₂ in one step of weight ½, under PG-ES from parameters of norm √2.");
  frame(el, "symmetry", asked.box, html("div", { class: "pu-live-bar" }, control.row), key, room, words);

  const pairs = () => names.map((name) => [name, mirror(name, get("policy"), WEIGHT)]);
  const isZero = (steps) => Math.abs(steps[0] + steps[1]) < 1e-12;

  const redraw = fit(room, (width) => {
    picture.replaceChildren();
    const label = 62;
    const value = width < 480 ? 0 : 118;
    const middle = label + (width - label - value) / 2;
    const unit = (width - label - value) / 2 - 6;
    const bottom = ROW * names.length + 4;
    svg("line", { x1: middle, x2: middle, y1: 0, y2: bottom, class: "pu-live-axis" }, picture);
    pairs().forEach(([name, steps], i) => {
      const [away, home] = steps;
      const y = ROW * i + 22;
      const row = svg("g", { style: `--tone:${colours[name]}` }, picture);
      if (i) svg("line", { x1: 0, x2: width, y1: y - 22, y2: y - 22, class: "pu-live-grid" }, row);
      svg("text", { x: 0, y: y + 5, "font-weight": 600 }, row, labels[name]);
      arrow(row, middle, y - 9, middle + unit * away, {});
      if (!asked.open()) return;
      arrow(row, middle, y + 3, middle + unit * home, {});
      const rest = unit * (away + home);
      if (isZero(steps)) svg("circle", { cx: middle, cy: y + 15, r: 3.5, class: "pu-live-rest" }, row);
      else svg("line", { x1: middle, x2: middle + rest, y1: y + 15, y2: y + 15, class: "pu-live-left" }, row);
      if (value) {
        svg("text", { x: width, y: y + 5, "text-anchor": "end", class: "pu-live-faint" }, row,
          isZero(steps) ? "they cancel" : `${Math.abs(away + home).toFixed(2)} left over`);
      }
    });
    ruler(picture, middle, unit, bottom, [-1, -0.5, 0, 0.5, 1]);
    svg("text", { x: middle - 8, y: bottom + 38, "text-anchor": "end", class: "pu-live-faint" }, picture, "← towards a₂");
    svg("text", { x: middle + 8, y: bottom + 38, class: "pu-live-faint" }, picture, "towards a₁ →");
  });

  function draw() {
    control.set(get("policy"));
    redraw();
    const cancel = pairs().filter(([, steps]) => isZero(steps)).map(([name]) => labels[name]);
    const others = grouped(pairs().filter(([, steps]) => !isZero(steps)).map(([name]) => name),
      (name) => mirror(name, get("policy"), WEIGHT).map((x) => Math.abs(x).toFixed(2)).join(" against "),
      () => 0);
    const x = get("policy");
    if (!asked.open()) {
      words.textContent = `At π(a₁) = ${x.toFixed(2)} each arrow is the step for q. Make a guess, and the step for −q appears below it.`;
      return;
    }
    const [slow] = linear.filter((name) => isZero(mirror(name, x, WEIGHT)));
    const long = slow ? Math.abs(mirror(slow, x, WEIGHT)[0]) : 1;
    const look = long < 0.05 ? ` Look how short they are: ${long.toFixed(2)} under ${labels[slow]}, there and back.` : "";
    const reason = `Only under ${listed(linear)} is the step linear in the values.`;
    words.textContent = `${asked.judge(["linear"], reason)}At π(a₁) = ${x.toFixed(2)}, under ${spoken(cancel)} the step for −q is exactly the step for q turned round.${look} ${
      others.length
        ? `Not so under ${spoken(others.map(([steps, group]) => `${spoken(group.map((name) => labels[name]))} (${steps})`))}.`
        : "Here, and only here, CE and MCE cancel too."}`;
  }
  model.on("change:policy", draw);
  draw();
}

export default kept(render);
