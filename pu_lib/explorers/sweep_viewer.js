// The sweep viewer: the book's curves, chosen by panel, statistic and update, drawn by the page.
//
// The numbers come with the widget; the page only draws them. It needs no kernel.

const HIGH = 300;
const PLAIN = "pg-es-floats"; // PG-ES with plain floats, and the key of the same update without rounding
const SCALED = "pg-es";

// About six whole numbers from low to high.
function wholes(low, high) {
  const step = Math.max(1, Math.round((high - low) / 6));
  const out = [];
  for (let x = Math.ceil(low); x <= high; x += step) out.push(x);
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

function render({ model, el }) {
  const { get, put, values } = attributes(model);
  const panels = get("panels");
  const labels = get("labels");
  const order = get("kept").shown.each.values; // a saved page sorts the keys of `labels`
  const picture = svg("svg", { role: "img" });
  const room = html("div", {}, picture);
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const escort = labels[SCALED].split(",")[0];
  const asked = question(
    `The cliff: the paper sees ${escort} hit a wall at large step sizes. What stops it?`,
    [["long", "its steps: it diverges"], ["still", "it stops exploring"], ["floats", "the rounding of floats"]],
    (guess) => {
      const shown = get("shown");
      if (guess && !shown.includes(SCALED)) put({ shown: [...shown, SCALED] });
      else say();
    },
  );
  const reason = "A parameter of the update becomes smaller than any float, is rounded to 0, and stays there.";

  const entries = values("panel").map((key) => [key, panels[key]]);
  const ofDomain = (domain) => entries.filter(([, panel]) => panel.domain === domain);
  const domains = [...new Set(entries.map(([, panel]) => panel.domain))];
  const go = (panel) => {
    asked.reveal();
    put({ panel });
  };
  const domain = select("domain", domains.map((name) => [name, name]), panels[get("panel")].domain,
    (name) => go(ofDomain(name)[0][0]));
  const schemes = html("span", {});
  const statistic = select("statistic", values("statistic").map((key) => [key, get("statistics")[key]]), get("statistic"),
    (name) => put({ statistic: name }));
  const boxes = order.map((update) => {
    const input = html("input", { type: "checkbox" });
    input.addEventListener("change", () => {
      const others = get("shown").filter((u) => u !== update);
      put({ shown: input.checked ? [...others, update] : others });
    });
    const swatch = html("span", { class: "pu-live-swatch", style: `--tone:${get("colours")[update]}` });
    const name = html("span", {}, labels[update]);
    return { update, input, name, label: html("label", { class: "pu-live-choice" }, input, swatch, name) };
  });
  frame(el, "sweep", asked.box,
    html("div", { class: "pu-live-bar" }, domain, schemes, statistic),
    html("div", { class: "pu-live-bar pu-live-curves" }, ...boxes.map(({ label }) => label)),
    room,
    html("p", { class: "pu-live-key" }, "Band: 95 % interval. Ring: some runs did not end within a million steps."),
    words);

  const shownNow = () => order.filter((u) => get("shown").includes(u));
  // Until the figure is open, only one curve of PG-ES can be chosen, and its name does not say how it was made.
  const open = () => asked.open() || get("shown").includes(SCALED);
  const named = () => (open() ? labels : { ...labels, [PLAIN]: escort });

  const redraw = fit(room, (width) => {
    const panel = panels[get("panel")];
    const which = get("statistic");
    const shown = shownNow().filter((u) => panel.curves[u]);
    const share = which === "censored";
    const [low, high] = range(panel, which, shown);
    const [first, last] = [panel.axis[0], panel.axis.at(-1)];
    const { line, at, up } = axes(picture, width, HIGH,
      { from: first, to: last, log: !panel.linear, ticks: panel.linear ? wholes(first, last) : undefined, title: panel.axis_words },
      { from: low, to: high, log: !share, ticks: share ? [0, 0.25, 0.5, 0.75, 1] : undefined, title: `${share ? "" : "steps, "}${get("statistics")[which]}` });
    shown.forEach((u) => {
      const triples = panel.curves[u][which];
      const group = svg("g", { style: `--tone:${get("colours")[u]}` }, picture);
      const edge = (i) => panel.axis.map((x, k) => `${at(x).toFixed(1)},${up(triples[k][i]).toFixed(1)}`);
      svg("polygon", { points: [...edge(1), ...edge(2).reverse()].join(" "), class: "pu-live-fill", "fill-opacity": 0.18 }, group);
      line(panel.axis.map((x, k) => [x, triples[k][0]]), { class: "pu-live-curve", "stroke-dasharray": get("dashes")[u] }, group);
      panel.axis.forEach((x, k) => {
        const gone = panel.curves[u].censored[k][0];
        const mark = svg("circle", { cx: at(x), cy: up(triples[k][0]), r: 3.4, class: gone > 0 ? "pu-live-path" : "pu-live-fill" }, group);
        svg("title", {}, mark, `${named()[u]}: ${triples[k].map(format).join(", ")}; censored ${format(gone)}`);
      });
    });
  });

  function say() {
    const sentence = describe(panels[get("panel")], get("statistic"), shownNow(), named());
    picture.setAttribute("aria-label", sentence);
    boxes.forEach(({ update, name, label }) => {
      name.textContent = named()[update];
      label.style.display = update === SCALED && !open() ? "none" : "";
    });
    const found = asked.guess() ? `${asked.judge(["floats"], reason)}Compare “${labels[PLAIN]}” with “${labels[SCALED]}”. ` : "";
    const text = `${found}${sentence}`;
    if (words.textContent !== text) words.textContent = text;
  }

  function draw() {
    const panel = panels[get("panel")];
    domain.set(panel.domain);
    statistic.set(get("statistic"));
    const own = ofDomain(panel.domain).map(([key, { scheme_words: scheme }]) => [key, scheme]);
    keepFocus(() => schemes.replaceChildren(select("scheme", own, get("panel"), go)));
    boxes.forEach(({ update, input }) => { input.checked = shownNow().includes(update); });
    redraw();
    say();
  }
  const keepFocus = focusKeeper(schemes);
  ["panel", "statistic", "shown"].forEach((key) => model.on(`change:${key}`, later(draw)));
  draw();
}

export default kept(render);
