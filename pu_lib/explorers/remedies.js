// Remedies: counts n' of PG-SM with what is usually added to it, against n, and the regret beside them.
// With samples, medians of a few simulated runs take the place of the exact counts.

const END = 10000;
const TALL = 300;
const SEEDS = [1, 2, 3, 4, 5];
const EXACT = { most: 100000, ns: [1, 2, 3, 5, 7, 10, 20, 30, 50, 70, 100, 200, 300, 500, 700, 1000, 2000, 3000, 5000, 7000, END] };
const SAMPLED = { most: 20000, ns: [1, 3, 10, 30, 100, 300, 1000, 3000, END] }; // five runs of five rows: about 0.1 s
const USUAL = { entropy: 0.01, penalty: 0, estimator: false, reference: 0.5, epochs: 1, normalised: false, adam: 0, decay: 0, critic: 1, heard: false, exploration: 0, change: "swap", samples: 0 };
const SHOWN = ["entropy", "decay", "normalised", "adam"]; // the other controls are under a fold
const EXACT_ONLY = ["penalty", "estimator", "reference", "epochs", "adam", "heard"]; // of no use with samples

function render({ model, el }) {
  const { get, put, values } = attributes(model);
  const [labels, colours] = ["labels", "colours"].map(get);
  const keys = Object.keys(USUAL);
  const folded = keys.filter((key) => !SHOWN.includes(key));
  const rows = [["mine", "PG-SM, as set"], ["pg-sm", labels["pg-sm"]], ["soft", "soft NPG"], ["ce", labels.ce], ["di", labels.di]];
  const hues = ["--tone:var(--ink)", `--tone:${colours["pg-sm"]}`, `--tone:${colours.npg}`, `--tone:${colours.ce}`, `--tone:${colours.di}`];
  const dashes = ["", "7 5", "2 4", "", "9 3 2 3"];
  let curves = [];
  let tried = false;

  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const asked = question("PPO code often has an entropy bonus of 0.01. PG-SM has learnt for 10 000 steps, then the values are swapped. How many steps does the bonus save of the 10 009?",
    [["most", "nearly all"], ["half", "about half"], ["few", "about a sixth"], ["none", "none"]], () => show());
  const sized = (label, key, spell) => slider(label, 0, values(key).length - 1, 1, values(key).indexOf(get(key)), (i) => spell(values(key)[i]), (i) => {
    tried = true;
    const value = values(key)[i];
    // Exploration acts only if the critic sees the actions taken.
    put({ [key]: value, ...(key === "exploration" && value > 0 ? { heard: true } : {}) });
  });
  const chosen = (label, key, options, parse) => select(label, options, get(key), (x) => { tried = true; put({ [key]: parse(x) }); });
  const plain = (x) => (x === 0 ? "none" : `${x}`);
  const sliders = {
    entropy: sized("entropy bonus τ", "entropy", plain),
    penalty: sized("KL penalty β", "penalty", plain),
    decay: sized("weight decay λ", "decay", plain),
    exploration: sized("exploration", "exploration", (x) => (x === 0 ? "none" : `${Math.round(100 * x)} %`)),
  };
  const selects = {
    estimator: chosen("penalty", "estimator", [[false, "gradient of the KL"], [true, "k3 in the loss"]], (x) => x === "true"),
    reference: chosen("reference", "reference", [[0.5, "uniform"], [0.9, "0.9 for the old best"], [0.1, "0.1 for the old best"]], Number),
    epochs: chosen("epochs, clipped at 0.2", "epochs", [[1, "1"], [4, "4"], [10, "10"]], Number),
    normalised: chosen("advantages", "normalised", [[false, "as they are"], [true, "normalised"]], (x) => x === "true"),
    adam: chosen("Adam", "adam", [[0, "no"], [0.01, "step size 0.01"], [0.1, "step size 0.1"]], Number),
    critic: chosen("critic rate", "critic", [[1, "1 (exact)"], [0.1, "0.1"], [0.01, "0.01"]], Number),
    heard: chosen("critic sees", "heard", [[false, "all actions"], [true, "actions taken"]], (x) => x === "true"),
    samples: chosen("values", "samples", [[0, "exact"], ...[4, 8, 16].map((size) => [size, `${size} samples a step`])], Number),
    change: chosen("change", "change", [["swap", "values are swapped"], ["good turns bad", "good turns bad"], ["bad turns good", "bad turns good"]], (x) => x),
  };
  const picture = svg("svg", { "aria-hidden": "true" });
  const room = html("div", { style: "overflow-x: auto" }, picture);
  const mine = html("span", {});
  const entries = rows.map(([, text], i) => html("span", { class: "pu-live-entry", style: hues[i] }, html("span", { class: "pu-live-swatch" }), i === 0 ? mine : text));
  const results = html("tbody", {});
  const head = html("thead", {}, html("tr", {}, ...["", "n′ after 1000", "n′ after 10 000", "regret at 10 000"].map((text) => html("th", { scope: "col" }, text))));
  const setting = html("p", { class: "pu-live-key" });
  const wide = { class: "pu-live-bar", style: "column-gap: 1.6rem" }; // a slider's value is apart from the next label
  // Settings in the fold that the address of the page changes are in view.
  const more = html("details", { class: "pu-live-fold", open: folded.some((key) => get(key) !== USUAL[key]) }, html("summary", {}, "More"),
    html("div", wide, sliders.penalty.row, selects.estimator, selects.reference),
    html("div", { class: "pu-live-bar" }, selects.change, selects.samples, selects.epochs),
    html("div", wide, selects.critic, selects.heard, sliders.exploration.row));
  frame(el, "remedies", asked.box,
    html("div", wide, sliders.entropy.row, sliders.decay.row),
    html("div", { class: "pu-live-bar" }, selects.normalised, selects.adam),
    room, html("p", { class: "pu-live-key" }, ...entries), html("table", { class: "pu-live-table" }, head, results), words, more, setting);

  // Until a guess or a change only PG-SM, the second row, is in view.
  const open = () => asked.open() || tried;
  const inView = (i) => open() || i === 1;
  const scope = () => (get("samples") ? SAMPLED : EXACT);
  const first = () => (get("samples") ? "group advantages, as set" : rows[0][1]);
  const countText = (count) => (Number.isFinite(count) ? digits(count) : `over ${digits(scope().most)}`);

  const redraw = fit(room, (width) => {
    const { line } = axes(picture, width, TALL, { from: 1, to: END, log: true, title: "steps n before the change" },
      { from: 1, to: 100000, log: true, title: "steps n′ until the new best action has one half" });
    curves.forEach((curve, i) => {
      if (inView(i)) line(curve.filter(({ count }) => Number.isFinite(count) && count >= 1).map(({ n, count }) => [n, count]),
        { class: "pu-live-curve", "stroke-dasharray": dashes[i], ...(i === 0 ? { "stroke-width": "4" } : {}) }, svg("g", { style: hues[i] }, picture));
      entries[i].style.visibility = inView(i) ? "" : "hidden";
    });
  });

  function say() {
    const [now, base] = curves.map((curve) => curve.at(-1));
    const initial = keys.every((key) => get(key) === USUAL[key]);
    const judged = initial ? asked.judge(["few"], "The bonus ends the growth only where the log-odds come near 1/τ = 100.") : "";
    const [subject, other] = get("samples") ? ["the policy gradient of group advantages", "PG-SM with a critic"] : ["PG-SM as set", "plain PG-SM"];
    const text = open()
      ? `${judged}After ${digits(END)} steps ${subject} needs ${Number.isFinite(now.count) ? plural(now.count, "step") : `${countText(now.count)} steps`} to come back, at a regret of ${brief(now.regret)}; ${other} needs ${countText(base.count)}, at ${brief(base.regret)}. ${get("samples") ? `These are medians of ${SEEDS.length} runs. ` : ""}The product of count and regret is ${Number.isFinite(now.count) ? brief(now.count * now.regret) : "unbounded"} and ${Number.isFinite(base.count) ? brief(base.count * base.regret) : "unbounded"}.`
      : `Make a guess about the bonus of 0.01, or move a slider. Without a bonus ${other} needs ${countText(base.count)} steps after ${digits(END)}.`;
    if (words.textContent !== text) words.textContent = text;
    results.replaceChildren(...rows.map(([, name], i) => {
      const cells = inView(i) ? [countText(curves[i].find(({ n }) => n === 1000).count), countText(curves[i].at(-1).count), brief(curves[i].at(-1).regret)] : ["…", "…", "…"];
      return html("tr", {}, html("th", { scope: "row" }, i === 0 ? first() : name), ...cells.map((cell) => html("td", {}, cell)));
    }));
  }

  function show() {
    redraw();
    say();
  }

  function draw() {
    const [group, change, exploration, critic] = ["samples", "change", "exploration", "critic"].map(get);
    const [common, own, update] = group
      ? [{ group, critic, exploration }, ["entropy", "normalised", "decay"], "group"]
      : [{ critic, sampled: get("heard"), exploration }, ["entropy", "penalty", "estimator", "reference", "epochs", "normalised", "adam", "decay"], "pg-sm"];
    const settings = [{ ...common, ...Object.fromEntries(own.map((key) => [key, get(key)])), update, clip: 0.2 },
      { ...common, update: "pg-sm" }, { ...common, update: "npg", entropy: 0.1 }, { ...common, update: "ce" }, { ...common, update: "di" }];
    const { ns, most } = scope();
    curves = settings.map((one) => (group ? medianCurve(SEEDS.map((seed) => sampledCurve(one, ns, change, most, seed))) : remedyCurve(one, ns, change, most)));
    mine.textContent = first();
    setting.textContent = `Two actions, step size 1, from the uniform policy. ${group
      ? "The first row follows the advantages over the mean of the group and has no critic. The critic's rate of the other rows is per sample. Penalty, epochs and Adam are for exact gradients, and a critic sees the actions taken only, so these controls are off."
      : "Critic, exploration and change are the same for all rows; the other settings are those of the first row."}${!group && get("adam") && ["entropy", "penalty", "decay"].some((key) => get(key))
      ? " Once Adam has settled at a fixed point, rounding errors grow into bursts: later counts and regrets are approximate." : ""} Soft NPG has τ = 0.1.`;
    EXACT_ONLY.forEach((key) => { (sliders[key]?.row ?? selects[key]).querySelector("input, select").disabled = group > 0; });
    Object.entries(sliders).forEach(([key, one]) => one.set(values(key).indexOf(get(key))));
    Object.entries(selects).forEach(([key, one]) => one.set(get(key)));
    show();
  }
  keys.forEach((key) => model.on(`change:${key}`, later(draw)));
  onPaper(show, show);
  draw();
}

export default kept(render);
