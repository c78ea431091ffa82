// Take turns: some actions are the best in turn, then the last one is, and each update has a clock.

const MOST = 2000;
const HIGH = 26;

function render({ model, el }) {
  const { get, put, range, values } = attributes(model);
  const names = shown(model);
  const [labels, colours] = ["labels", "colours"].map(get);
  const mark = (a) => `a${"₁₂₃₄"[a]}`;
  let clocks = {};
  let ran = false;

  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const guesses = [["few", "a handful"], ["tenth", "about a tenth of n"], ["third", "about a third of n"], ["all", "about n"]];
  const asked = question(`a₁ and a₂ take turns for n steps, then a₃ is best. With two actions ${labels.mce} needs a logarithm of n to change its mind. How many steps does it need now?`,
    guesses, () => say());
  const plain = [0, 1, 0, 1]; // the turns that the question is about
  const count = select("actions", [[3, "3"], [4, "4"]], get("actions"), (x) =>
    put({ order: get("order").map((a) => Math.min(a, Number(x) - 2)), actions: Number(x) }));
  const length = slider("steps n", ...range("n"), 10, get("n"), (x) => digits(x), (x) => put({ n: x }));
  const gap = select("second best", values("gap").map((x) => [x, `${(1 - x).toFixed(2)}`]), get("gap"), (x) => put({ gap: Number(x) }));
  const slots = html("div", { class: "pu-live-bar" });
  const focused = focusKeeper(slots);
  const show = button("Run the clocks", () => { ran = true; draw(); }, "pu-live-main");
  const setting = html("p", { class: "pu-live-key" });
  const picture = svg("svg", { height: names.length * HIGH + 6, "aria-hidden": "true" });
  const room = html("div", {}, picture);
  frame(el, "turns", asked.box, html("div", { class: "pu-live-bar" }, show, length.row), slots, room, setting, words,
    html("details", { class: "pu-live-fold" }, html("summary", {}, "Number of actions, value of the second best"),
      html("div", { class: "pu-live-bar" }, count, gap)));

  // One choice of the best action for each of the steps that are repeated.
  function choices() {
    const order = get("order");
    focused(() => slots.replaceChildren(...order.map((best, i) => {
      const options = [...Array(get("actions") - 1).keys()].map((a) => [a, mark(a)]);
      return select(`step ${i + 1}`, options, best, (x) => put({ order: order.map((a, k) => (k === i ? Number(x) : a)) }));
    })));
  }

  const redraw = fit(room, (width) => {
    picture.replaceChildren();
    const [left, right] = [64, width - 64];
    const most = Math.max(10, ...names.map((name) => clocks[name].count).filter(Number.isFinite));
    names.forEach((name, i) => {
      const y = i * HIGH + 4;
      const group = svg("g", { style: `--tone:${colours[name]}` }, picture);
      svg("text", { x: left - 8, y: y + 14, "text-anchor": "end" }, group, labels[name]);
      if (!ran) return;
      const steps = Math.min(clocks[name].count, most);
      const long = ((right - left) * Math.log1p(steps)) / Math.log1p(most);
      svg("rect", { x: left, y, width: Math.max(2, long), height: HIGH - 8, class: "pu-live-fill" }, group);
      svg("text", { x: left + Math.max(2, long) + 6, y: y + 14 }, group, clock(name));
    });
  });

  const clock = (name) => (Number.isFinite(clocks[name].count) ? digits(clocks[name].count) : `over ${digits(MOST)}`);

  function say() {
    const [order, n, actions] = [get("order"), get("n"), get("actions")];
    const used = [...new Set(order)].sort();
    const last = mark(actions - 1);
    const turns = used.length > 1 ? `${spoken(used.map(mark))} take turns` : `${mark(used[0])} alone is best`;
    let text = `For ${plural(n, "step")} ${turns}; then ${last} is best. ${asked.guess() ? "Run the clocks." : "Make a guess, then run the clocks."}`;
    if (ran) {
      const usual = actions === 3 && used.length > 1 && n >= 100 && order.every((a, i) => a !== order[(i + 1) % 4]);
      const groups = grouped(names, clock, (a, b) => Number(a.replace(/\D/g, "")) - Number(b.replace(/\D/g, "")));
      text = `${usual ? asked.judge(["third"]) : ""}After ${plural(n, "step")} in which ${turns}, ${last} is back at 1/${actions} after ${
        spoken(groups.map(([steps, group]) => `${plural(steps, "step").replace(/(step)s?$/, steps === "1" ? "$1" : "$1s")} under ${spoken(group.map((name) => labels[name]))}`))}.${compared(order)}`;
    }
    if (words.textContent !== text) words.textContent = text;
  }

  // What the reader's own turns cost MCE, beside those of the question.
  function compared(order) {
    if (!clocks.mce || `${order}` === `${plain}`) return "";
    const [own, usual] = [clocks.mce.count, takeTurns("mce", get("actions"), plain, get("n"), get("gap"), 1, MOST).count];
    if (!Number.isFinite(own) || !Number.isFinite(usual)) return "";
    const than = own === usual ? "as long as" : own > usual ? "longer than" : "less long than";
    return ` Your turns keep ${labels.mce} waiting ${than} a₁ and a₂ one by one do (${digits(usual)}).`;
  }

  function draw() {
    const [actions, order, n, far] = ["actions", "order", "n", "gap"].map(get);
    clocks = Object.fromEntries(names.map((name) => [name, takeTurns(name, actions, order, n, far, 1, MOST)]));
    count.set(actions);
    gap.set(far);
    length.set(n);
    choices();
    setting.textContent = `Every step has the weight 1, and the four steps are repeated. The best action is worth 1, the others in turn ${(1 - far).toFixed(2)}, the rest 0; in the end the last one is worth 1 and all others 0. Bars on a logarithmic scale.`;
    redraw();
    say();
  }
  ["actions", "order", "n", "gap"].forEach((key) => model.on(`change:${key}`, later(draw)));
  draw();
}

export default kept(render, (get) => Math.max(...get("order")) <= get("actions") - 2);
