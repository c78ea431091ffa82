// Sparsemax and DI at the wall: both project, and only one of them continues from where it stands.

const TOTAL = 80;
const HIGH = 250;

function render({ model, el }) {
  const { get, put, range, values } = attributes(model);
  const [labels, colours] = ["labels", "colours"].map(get);
  const sizes = values("eta");
  const kinds = [["sparsemax", "sparsemax", "var(--ink)"], ...["di", "mce"].map((name) => [name, labels[name], colours[name]])];
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const asked = question(`Let sparsemax and ${labels.di} walk on to the wall, where a₁ has everything, before the values flip. Who comes back?`,
    [["both", "both together"], ["later", `sparsemax later than ${labels.di}`], ["di", `${labels.di} alone`]], () => say());
  const length = slider("updates n", ...range("n"), 1, get("n"), (x) => `${x}`, (x) => put({ n: x }));
  const size = slider("step size", 0, sizes.length - 1, 1, sizes.indexOf(get("eta")), (i) => `${sizes[i]}`, (i) => put({ eta: sizes[i] }));
  const picture = svg("svg", { "aria-hidden": "true" });
  const room = html("div", {}, picture);
  const entries = kinds.map(([, text, tone]) => html("span", { class: "pu-live-entry", style: `--tone:${tone}` },
    html("span", { class: "pu-live-swatch" }), text));
  frame(el, "wall", asked.box, html("div", { class: "pu-live-bar" }, length.row, size.row), room,
    html("p", { class: "pu-live-key" }, ...entries, "Uniform start. Upright line: the values flip, from (1, 0) to (0, 1)."), words);
  let paths = {};

  // How many updates after the flip the policy is back at one half.
  const back = (name) => paths[name].slice(get("n")).findIndex((chance) => chance <= 0.5 + 1e-9);
  const stuck = () => paths.sparsemax[get("n")] > 1 - 1e-9;

  const redraw = fit(room, (width) => {
    const { line, at, up } = axes(picture, width, HIGH, { from: 0, to: TOTAL, ticks: [0, 20, 40, 60, 80], title: "update" },
      { from: 0, to: 1, ticks: [0, 0.5, 1], title: "probability of a₁" });
    svg("line", { x1: at(get("n")), x2: at(get("n")), y1: up(0), y2: up(1), class: "pu-live-axis" }, picture);
    [...kinds].reverse().forEach(([name, , tone]) => {
      const group = svg("g", { style: `--tone:${tone}` }, picture);
      line(paths[name].map((chance, t) => [t, chance]), { class: "pu-live-curve", ...(name === "sparsemax" ? { "stroke-dasharray": "7 5" } : {}) }, group);
    });
  });

  function say() {
    const n = get("n");
    const now = `After ${plural(n, "update")} a₁ has ${paths.sparsemax[n].toFixed(stuck() ? 2 : 3)} under sparsemax and ${labels.di}`;
    const text = stuck()
      ? `${asked.judge(["di"], `Both reach the wall, but only ${labels.di} can step back from it.`)}${now}: the wall. ${labels.di} is back at one half after ${plural(back("di"), "update")}, ${labels.mce} after ${back("mce")}. Sparsemax never moves again: its gradient is zero there.`
      : `${now}: they have not reached the wall. They walk home together, in ${plural(back("di"), "update")}; ${labels.mce} needs ${back("mce")}. ${
        asked.guess() ? "Now raise n." : "Make a guess, then raise n."}`;
    if (words.textContent !== text) words.textContent = text;
  }

  function draw() {
    paths = Object.fromEntries(kinds.map(([name]) => [name, reversal(name, get("n"), get("eta"), TOTAL)]));
    length.set(get("n"));
    size.set(sizes.indexOf(get("eta")));
    redraw();
    say();
  }
  ["n", "eta"].forEach((key) => model.on(`change:${key}`, later(draw)));
  draw();
}

export default kept(render);
