// The sweep viewer: the book's curves, chosen by panel, statistic and update, drawn by the page.
//
// The numbers come with the widget; the page only draws them. It needs no kernel.

const WIDTH = 640;
const HEIGHT = 340;
const BOX = { left: 64, right: 22, top: 12, bottom: 46 };

// A scale from data to pixels; logarithmic unless told otherwise.
export function scale(low, high, from, to, linear = false) {
  const f = linear ? (x) => x : Math.log10;
  const [a, b] = [f(low), f(high)];
  return (x) => from + ((f(x) - a) / (b - a || 1)) * (to - from);
}

// The powers of ten from low to high; for linear scales about six whole numbers.
export function ticks(low, high, linear = false) {
  if (linear) {
    const step = Math.max(1, Math.round((high - low) / 6));
    const out = [];
    for (let x = Math.ceil(low); x <= high; x += step) out.push(x);
    return out;
  }
  const out = [];
  for (let k = Math.ceil(Math.log10(low) - 1e-9); k <= Math.log10(high) + 1e-9; k += 1) out.push(10 ** k);
  return out;
}

// The smallest and largest number of the curves shown, widened to powers of ten.
export function range(panel, statistic, shown) {
  if (statistic === "censored") return [0, 1];
  const all = shown.flatMap((u) => (panel.curves[u] ? panel.curves[u][statistic].flat() : []));
  if (!all.length) return [1, 10];
  const high = Math.ceil(Math.log10(Math.max(...all)));
  return [10 ** Math.min(Math.floor(Math.log10(Math.min(...all))), high - 1), 10 ** high];
}

// What the picture shows, in a sentence.
export function describe(panel, statistic, shown, labels) {
  const present = shown.filter((u) => panel.curves[u]);
  if (!present.length) return `${panel.words}: no update is chosen.`;
  const best = present.map((u) => {
    const values = panel.curves[u][statistic].map((triple) => triple[0]);
    const i = values.indexOf(Math.min(...values));
    if (Math.max(...values) === values[i]) return `${labels[u]} ${format(values[i])} everywhere`;
    return `${labels[u]} ${format(values[i])} at ${format(panel.axis[i])}`;
  });
  return `${panel.words}, ${panel.runs} runs; lowest point of each curve: ${best.join("; ")}.`;
}

export function format(x) {
  if (x === 0) return "0";
  if (x >= 1000 && x < 1e6) return String(Math.round(x));
  return Number(x.toPrecision(3)).toString();
}

function element(name, attributes = {}, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
  node.textContent = text;
  return node;
}

function power(x) {
  const k = Math.round(Math.log10(x));
  return `10${[...String(k)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)])).join("")}`;
}

function draw(svg, panel, statistic, shown, model) {
  const linearX = panel.linear;
  const linearY = statistic === "censored";
  const [low, high] = range(panel, statistic, shown);
  const x = scale(panel.axis[0], panel.axis[panel.axis.length - 1], BOX.left, WIDTH - BOX.right, linearX);
  const y = scale(low, high, HEIGHT - BOX.bottom, BOX.top, linearY);
  svg.replaceChildren();
  ticks(panel.axis[0], panel.axis[panel.axis.length - 1], linearX).forEach((t) => {
    svg.append(element("line", { x1: x(t), x2: x(t), y1: BOX.top, y2: HEIGHT - BOX.bottom, class: "pu-sv-grid" }));
    svg.append(element("text", { x: x(t), y: HEIGHT - BOX.bottom + 18, class: "pu-sv-tick", "text-anchor": "middle" }, linearX ? String(t) : power(t)));
  });
  (linearY ? [0, 0.25, 0.5, 0.75, 1] : ticks(low, high)).forEach((t) => {
    svg.append(element("line", { x1: BOX.left, x2: WIDTH - BOX.right, y1: y(t), y2: y(t), class: "pu-sv-grid" }));
    svg.append(element("text", { x: BOX.left - 6, y: y(t) + 4, class: "pu-sv-tick", "text-anchor": "end" }, linearY ? String(t) : power(t)));
  });
  svg.append(element("text", { x: (BOX.left + WIDTH) / 2, y: HEIGHT - 8, class: "pu-sv-label", "text-anchor": "middle" }, panel.axis_words));
  const words = model.get("statistics")[statistic];
  svg.append(element("text", { transform: `translate(14 ${HEIGHT / 2 - 12}) rotate(-90)`, class: "pu-sv-label", "text-anchor": "middle" }, linearY ? words : `steps, ${words}`));
  shown.filter((u) => panel.curves[u]).forEach((u) => {
    const triples = panel.curves[u][statistic];
    const colour = model.get("colours")[u];
    const points = panel.axis.map((a, i) => [x(a), ...triples[i].map(y)]);
    const band = [...points.map((p) => `${p[0]},${p[2]}`), ...points.map((p) => `${p[0]},${p[3]}`).reverse()];
    svg.append(element("polygon", { points: band.join(" "), fill: colour, "fill-opacity": 0.18 }));
    svg.append(element("polyline", { points: points.map((p) => `${p[0]},${p[1]}`).join(" "), stroke: colour, "stroke-dasharray": model.get("dashes")[u], class: "pu-sv-curve" }));
    points.forEach((p, i) => {
      const gone = panel.curves[u].censored[i][0];
      const mark = element("circle", { cx: p[0], cy: p[1], r: 3.6, stroke: colour, fill: gone > 0 ? "none" : colour, "stroke-width": 1.6 });
      mark.append(element("title", {}, `${model.get("labels")[u]}: ${triples[i].map(format).join(", ")}; censored ${format(gone)}`));
      svg.append(mark);
    });
  });
}

function chooser(name, options, value, change) {
  const label = document.createElement("label");
  const select = document.createElement("select");
  options.forEach(([key, words]) => select.append(new Option(words, key, false, key === value)));
  select.addEventListener("change", () => change(select.value));
  label.append(`${name} `, select);
  return [label, select];
}

function render({ model, el }) {
  const panels = model.get("panels");
  const root = document.createElement("div");
  root.className = "pu-sweep-viewer";
  const domains = [...new Set(Object.values(panels).map((panel) => panel.domain))];
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  const words = document.createElement("p");
  words.setAttribute("aria-live", "polite");
  const controls = document.createElement("div");
  controls.className = "pu-sv-controls";
  const set = (key, value) => { model.set(key, value); model.save_changes(); };
  const [schemeLabel, scheme] = chooser("scheme", [], "", (value) => set("panel", value));
  const fill = (domain) => {
    const own = Object.entries(panels).filter(([, panel]) => panel.domain === domain);
    scheme.replaceChildren(...own.map(([key, panel]) => new Option(panel.scheme_words, key, false, key === model.get("panel"))));
    return own[0][0];
  };
  const [domainLabel, domain] = chooser("domain", domains.map((d) => [d, d]), panels[model.get("panel")].domain, (value) => set("panel", fill(value)));
  const [statisticLabel, statistic] = chooser("statistic", Object.entries(model.get("statistics")), model.get("statistic"), (value) => set("statistic", value));
  controls.append(domainLabel, schemeLabel, statisticLabel);
  const boxes = document.createElement("div");
  boxes.className = "pu-sv-controls";
  const checks = Object.entries(model.get("labels")).map(([update, text]) => {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.addEventListener("change", () => {
      const shown = model.get("shown").filter((u) => u !== update);
      set("shown", box.checked ? [...shown, update] : shown);
    });
    const swatch = document.createElement("span");
    swatch.className = "pu-sv-swatch";
    swatch.style.background = model.get("colours")[update];
    label.append(box, swatch, ` ${text}`);
    boxes.append(label);
    return [update, box];
  });
  const refresh = () => {
    const panel = panels[model.get("panel")];
    const shown = Object.keys(model.get("labels")).filter((u) => model.get("shown").includes(u));
    domain.value = panel.domain;
    fill(panel.domain);
    statistic.value = model.get("statistic");
    checks.forEach(([update, box]) => { box.checked = shown.includes(update); });
    draw(svg, panel, model.get("statistic"), shown, model);
    const sentence = describe(panel, model.get("statistic"), shown, model.get("labels"));
    svg.setAttribute("aria-label", sentence);
    words.textContent = sentence;
  };
  ["panel", "statistic", "shown"].forEach((key) => model.on(`change:${key}`, refresh));
  root.append(controls, boxes, svg, words);
  el.append(root);
  refresh();
}

export default kept(render);
