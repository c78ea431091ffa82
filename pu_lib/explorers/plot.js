// Two axes, each linear or logarithmic, and curves over them.

const powers = (low, high) => {
  const powers = [];
  for (let k = Math.ceil(Math.log10(low) - 1e-9); 10 ** k <= high * 1.0001; k += 1) powers.push(10 ** k);
  return powers;
};

const raised = (k) => [...`${k}`].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");

// A number as it is; with a power of ten, and three digits, if it is large or small.
function power(x) {
  if (x < 0) return `−${power(-x)}`;
  if (x === 0 || (x >= 0.001 && x <= 10000)) return digits(x);
  const [digit, exponent] = x.toExponential(2).split("e").map(Number);
  return `${digit === 1 ? "" : `${digit}·`}10${raised(exponent)}`;
}

// Three digits, or whole where the number is large; two and a power of ten where it is small.
function brief(x, more = 0) {
  if (x >= 999.5) return digits(Math.round(x));
  if (x === 0 || x >= 0.001) return x.toPrecision(3 + more);
  const [digit, exponent] = x.toExponential(1 + more).split("e");
  return `${digit} · 10${raised(Number(exponent))}`;
}

// x and y are { from, to, log, ticks, title }.
function axes(picture, width, height, x, y) {
  picture.replaceChildren();
  picture.setAttribute("height", height);
  const labels = (y.ticks ?? powers(y.from, y.to)).map((value) => [value, power(value)]);
  const left = Math.max(46, ...labels.map(([, text]) => 10 + 6 * text.length));
  const [right, top, bottom] = [width - 12, 20, height - 34];
  const part = ({ from, to, log }, value) => {
    const [low, here, high] = [from, Math.min(Math.max(value, from), to), to]
      .map(log ? Math.log : (z) => z);
    return (here - low) / (high - low);
  };
  const at = (value) => left + (right - left) * part(x, value);
  const up = (value) => bottom - (bottom - top) * part(y, value);
  labels.forEach(([value, text]) => {
    svg("line", { x1: left, x2: right, y1: up(value), y2: up(value), class: "pu-live-grid" }, picture);
    svg("text", { x: left - 6, y: up(value) + 4, "text-anchor": "end", class: "pu-live-faint" }, picture, text);
  });
  const marks = x.ticks ?? powers(x.from, x.to);
  const every = Math.ceil(marks.length / ((right - left) / 48));
  marks.filter((_, i) => i % every === 0).forEach((value) =>
    svg("text", { x: at(value), y: bottom + 15, "text-anchor": "middle", class: "pu-live-faint" }, picture, power(value)));
  svg("text", { x: right, y: height - 4, "text-anchor": "end", class: "pu-live-faint" }, picture, x.title);
  svg("text", { x: 0, y: 11, class: "pu-live-faint" }, picture, y.title);
  const line = (points, attributes, parent = picture) => svg("polyline", {
    points: points.filter(([, b]) => !y.log || b >= y.from).map(([a, b]) => `${at(a).toFixed(1)},${up(b).toFixed(1)}`).join(" "), fill: "none", ...attributes,
  }, parent);
  return { at, up, line };
}
