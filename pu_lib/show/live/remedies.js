// Remedies: counts n' of PG-SM with what is usually added to it, against n, and the regret beside them.

const END = 10000;
const TALL = 300;
const LIMIT = 100000;

function render({ model, el }) {
  const { get, put } = attributes(model);
  const [labels, colours] = ["labels", "colours"].map(get);
  const keys = ["entropy", "penalty", "estimator", "reference", "epochs", "normalised", "adam", "critic", "heard", "exploration", "change"];
  const rows = [["mine", "PG-SM, as set"], ["pg-sm", labels["pg-sm"]], ["soft", "soft NPG"], ["ce", labels.ce], ["di", labels.di]];
  const hues = ["--tone:var(--ink)", `--tone:${colours["pg-sm"]}`, `--tone:${colours.npg}`, `--tone:${colours.ce}`, `--tone:${colours.di}`];
  const dashes = ["", "7 5", "2 4", "", "9 3 2 3"];
  let curves = [];
  let tried = false;

  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const asked = question("PPO code often has an entropy bonus of 0.01. PG-SM has learnt for 10 000 steps, then the values are swapped. How many steps does the bonus save of the 10 009?",
    [["most", "nearly all"], ["half", "about half"], ["few", "about a sixth"], ["none", "none"]], () => say());
  const sized = (label, key, list, show) => slider(label, 0, list.length - 1, 1, list.indexOf(get(key)), (i) => show(list[i]), (i) => {
    tried = true;
    // Exploration acts only if the critic hears the actions taken.
    put({ [key]: list[i], ...(key === "exploration" && list[i] > 0 ? { heard: true } : {}) });
  });
  const chosen = (label, key, options, parse) => select(label, options, get(key), (x) => { tried = true; put({ [key]: parse(x) }); });
  const plain = (x) => (x === 0 ? "none" : `${x}`);
  const lists = { entropy: get("entropies"), penalty: get("penalties"), exploration: get("explorations") };
  const sliders = {
    entropy: sized("entropy bonus τ", "entropy", lists.entropy, plain),
    penalty: sized("KL penalty β", "penalty", lists.penalty, plain),
    exploration: sized("exploration", "exploration", lists.exploration, (x) => (x === 0 ? "none" : `${Math.round(100 * x)} %`)),
  };
  const selects = {
    estimator: chosen("penalty", "estimator", [[false, "gradient of the KL"], [true, "as in GRPO code"]], (x) => x === "true"),
    reference: chosen("reference", "reference", [[0.5, "uniform"], [0.9, "0.9 for the old best"], [0.1, "0.1 for the old best"]], Number),
    epochs: chosen("epochs, clipped at 0.2", "epochs", [[1, "1"], [4, "4"], [10, "10"]], Number),
    normalised: chosen("advantages", "normalised", [[false, "as they are"], [true, "normalised"]], (x) => x === "true"),
    adam: chosen("Adam", "adam", [[0, "no"], [0.01, "rate 0.01"], [0.1, "rate 0.1"]], Number),
    critic: chosen("critic rate", "critic", [[1, "1 (exact)"], [0.1, "0.1"], [0.01, "0.01"]], Number),
    heard: chosen("critic hears", "heard", [[false, "all actions"], [true, "actions taken"]], (x) => x === "true"),
    change: chosen("change", "change", [["swap", "values are swapped"], ["good turns bad", "good turns bad"], ["bad turns good", "bad turns good"]], (x) => x),
  };
  const picture = svg("svg", { "aria-hidden": "true" });
  const room = html("div", { style: "overflow-x: auto" }, picture);
  const entries = rows.map(([, text], i) => html("span", { class: "pu-live-entry", style: hues[i] }, html("span", { class: "pu-live-swatch" }), text));
  const results = html("tbody", {});
  const head = html("thead", {}, html("tr", {}, ...["", "n′ after 1000", "n′ after 10 000", "regret at 10 000"].map((text) => html("th", { scope: "col" }, text))));
  const setting = html("p", { class: "pu-live-key" }, "Two actions, weight 1, from the uniform policy. Critic, exploration and change are the same for all rows; the other settings are those of the first row. Soft NPG has τ = 0.1.");
  frame(el, "remedies", asked.box,
    html("div", { class: "pu-live-bar" }, sliders.entropy.row, sliders.penalty.row, selects.estimator, selects.reference),
    html("div", { class: "pu-live-bar" }, selects.epochs, selects.normalised, selects.adam),
    html("div", { class: "pu-live-bar" }, selects.change, selects.critic, selects.heard, sliders.exploration.row),
    room, html("p", { class: "pu-live-key" }, ...entries), html("table", { class: "pu-live-table" }, head, results), setting, words);

  const told = (count) => (Number.isFinite(count) ? digits(count) : `over ${digits(LIMIT)}`);

  const redraw = fit(room, (width) => {
    const { line } = axes(picture, width, TALL, { from: 1, to: END, log: true, title: "steps n before the change" },
      { from: 1, to: 100000, log: true, title: "steps n′ until the new best action has one half" });
    curves.forEach((found, i) => line(found.filter(({ count }) => Number.isFinite(count) && count >= 1).map(({ n, count }) => [n, count]),
      { class: "pu-live-curve", "stroke-dasharray": dashes[i], ...(i === 0 ? { "stroke-width": "4" } : {}) }, svg("g", { style: hues[i] }, picture)));
  });

  function say() {
    const [now, base] = curves.map((found) => found.at(-1));
    const initial = keys.every((key) => get(key) === (key === "entropy" ? 0.01 : { penalty: 0, estimator: false, reference: 0.5, epochs: 1, normalised: false, adam: 0, critic: 1, heard: false, exploration: 0, change: "swap" }[key]));
    const judged = initial ? asked.judge(["few"], "The bonus ends the growth only where the log-odds come near 1/τ = 100.") : "";
    const open = asked.open() || tried;
    const text = open
      ? `${judged}After ${digits(END)} steps PG-SM as set needs ${told(now.count)} steps to come back, at a regret of ${brief(now.regret)}; plain PG-SM needs ${told(base.count)}, at ${brief(base.regret)}. The product of count and regret is ${Number.isFinite(now.count) ? brief(now.count * now.regret) : "unbounded"} and ${Number.isFinite(base.count) ? brief(base.count * base.regret) : "unbounded"}.`
      : "Make a guess about the bonus of 0.01, or move a slider. The curves and the table show the counts then.";
    if (words.textContent !== text) words.textContent = text;
    const shownNow = open ? curves : [];
    results.replaceChildren(...rows.map(([, name], i) => {
      const cells = shownNow.length ? [told(shownNow[i].find(({ n }) => n === 1000).count), told(shownNow[i].at(-1).count), brief(shownNow[i].at(-1).regret)] : ["…", "…", "…"];
      return html("tr", {}, html("th", { scope: "row" }, name), ...cells.map((cell) => html("td", {}, cell)));
    }));
    picture.style.visibility = open ? "visible" : "hidden";
  }

  function draw() {
    const common = { critic: get("critic"), sampled: get("heard"), exploration: get("exploration") };
    const mine = { entropy: get("entropy"), penalty: get("penalty"), estimator: get("estimator"), reference: get("reference"), epochs: get("epochs"), clip: 0.2, normalised: get("normalised"), adam: get("adam") };
    const ns = [1, 2, 3, 5, 7, 10, 20, 30, 50, 70, 100, 200, 300, 500, 700, 1000, 2000, 3000, 5000, 7000, END];
    const settings = [{ ...common, ...mine }, common, { ...common, update: "npg", entropy: 0.1 }, { ...common, update: "ce" }, { ...common, update: "di" }];
    curves = settings.map((one) => remedyCurve(one, ns, get("change"), LIMIT));
    Object.entries(sliders).forEach(([key, one]) => one.set(lists[key].indexOf(get(key))));
    Object.entries(selects).forEach(([key, one]) => one.set(get(key)));
    redraw();
    say();
  }
  keys.forEach((key) => model.on(`change:${key}`, later(draw)));
  onPaper(say, say);
  draw();
}

export default kept(render);
