// The simplex lab: five policy updates of one state with three actions, computed in the browser.
//
// The first half holds the updates, the same formulas as pu_lib/updates.py (a test runs both on
// random inputs and compares to 1e-12); the second half draws them. The page needs no kernel.

// ---------------------------------------------------------------------------------------------
// The updates, by the names of the library. theta, q and pi are arrays of numbers of the same
// length; w = eta d(s).

const sum = (xs) => xs.reduce((total, x) => total + x, 0);

export function softmax(theta) {
  const top = Math.max(...theta);
  const powers = theta.map((x) => Math.exp(x - top));
  const total = sum(powers);
  return powers.map((x) => x / total);
}

export function escort(theta, p = 2) {
  const top = Math.max(...theta.map(Math.abs));
  const powers = theta.map((x) => (Math.abs(x) / top) ** p);
  const total = sum(powers);
  return powers.map((x) => x / total);
}

export function projectSimplex(x) {
  const top = Math.max(...x);
  const points = x.map((value) => value - top);
  const descending = [...points].sort((a, b) => b - a);
  let total = 0;
  let threshold = 0;
  descending.forEach((value, i) => {
    total += value;
    const candidate = (total - 1) / (i + 1);
    if (value > candidate) threshold = candidate;
  });
  return points.map((value) => Math.max(value - threshold, 0));
}

export function advantage(pi, q) {
  return q.map((value) => sum(pi.map((chance, b) => chance * (value - q[b]))));
}

export function greedy(q) {
  return q.indexOf(Math.max(...q));
}

export function policy(name, theta, p = 2) {
  if (name === "di") return [...theta];
  return name === "pg-es" ? escort(theta, p) : softmax(theta);
}

// Parameters of a policy with full support; escort parameters have the norm of (1, ..., 1).
export function parametersOf(name, pi, p = 2) {
  if (name === "di") return [...pi];
  if (name === "pg-es") return pi.map((x) => (pi.length * x) ** (1 / p));
  return pi.map(Math.log);
}

const directions = {
  "pg-sm": (theta, pi, q) => {
    const adv = advantage(pi, q);
    return pi.map((chance, a) => chance * adv[a]);
  },
  "pg-es": (theta, pi, q, p) => {
    const adv = advantage(pi, q);
    const top = Math.max(...theta.map(Math.abs));
    const norm = top * sum(theta.map((x) => Math.abs(x / top) ** p)) ** (1 / p);
    return pi.map((chance, a) => (Math.sign(theta[a]) * p * chance ** (1 - 1 / p) * adv[a]) / norm);
  },
  ce: (theta, pi, q) => {
    const best = greedy(q);
    const missing = sum(pi.filter((_, a) => a !== best));
    return pi.map((chance, a) => (a === best ? missing : -chance));
  },
  mce: (theta, pi, q) => {
    const best = greedy(q);
    const missing = sum(pi.filter((_, a) => a !== best));
    return pi.map((_, a) => (a === best ? missing : -missing / (pi.length - 1)));
  },
};

export function step(name, theta, q, w, p = 2) {
  if (name === "di") {
    const top = Math.max(...q);
    return projectSimplex(theta.map((x, a) => x + w * (q[a] - top)));
  }
  const direction = directions[name](theta, policy(name, theta, p), q, p);
  return theta.map((x, a) => x + w * direction[a]);
}

// The policies along `steps` updates, the first one included.
export function follow(name, pi, q, w, steps) {
  let theta = parametersOf(name, pi);
  const path = [pi];
  for (let t = 0; t < steps; t += 1) {
    theta = step(name, theta, q, w);
    path.push(policy(name, theta));
  }
  return path;
}

// What one update does: the new policy, the change of the value, whether a_q gains the most.
export function effect(name, pi, q, w) {
  const next = policy(name, step(name, parametersOf(name, pi), q, w));
  const gains = next.map((x, a) => x - pi[a]);
  const top = Math.max(...q);
  const change = sum(gains.map((gain, a) => gain * (q[a] - top)));
  const best = greedy(q);
  const well = gains.some((gain, a) => a !== best && gain > gains[best] + 1e-12);
  return { next, change, well };
}

// ---------------------------------------------------------------------------------------------
// The picture

const WIDTH = 440;
const HEIGHT = 404;
const CORNERS = [
  [30, 374],
  [410, 374],
  [220, 374 - 190 * Math.sqrt(3)],
];
const SVG = "http://www.w3.org/2000/svg";
const FLOOR = 1e-6; // the point stays off the edges, where logarithms end
const SHADES = {
  none: "nothing",
  value: "the value",
  drop: "where one step lowers the value",
  well: "the gravity well: another action gains more than the best",
};

const place = (pi) => [0, 1].map((i) => sum(pi.map((x, a) => x * CORNERS[a][i])));

function toPolicy(x, y) {
  const third = (CORNERS[0][1] - y) / (CORNERS[0][1] - CORNERS[2][1]);
  const second = (x - CORNERS[0][0] - third * (CORNERS[2][0] - CORNERS[0][0])) / 380;
  return [1 - second - third, second, third];
}

function inside(pi) {
  const floored = projectSimplex(pi).map((x) => Math.max(x, FLOOR));
  const total = sum(floored);
  return floored.map((x) => x / total);
}

function svg(tag, attributes, parent) {
  const node = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
  if (parent) parent.appendChild(node);
  return node;
}

function html(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  Object.entries(attributes).forEach(([key, value]) => {
    if (key in node && typeof value !== "string") node[key] = value;
    else node.setAttribute(key, value);
  });
  node.append(...children);
  return node;
}

const percent = (x) => (x > 0 && x < 0.0005 ? x.toExponential(1) : x.toFixed(3));
const signed = (x) =>
  Math.abs(x) < 1e-15 ? "0" : (x > 0 ? "+" : "−") + (Math.abs(x) < 1e-3
    ? Math.abs(x).toExponential(2)
    : Math.abs(x).toFixed(4));

function range(label, low, high, increment, value, show, change) {
  const input = html("input", { type: "range", min: `${low}`, max: `${high}`, step: `${increment}` });
  const output = html("output", {}, show(value));
  input.value = value;
  input.addEventListener("input", () => change(Number(input.value)));
  const row = html("label", { class: "pu-lab-row" }, html("span", {}, label), input, output);
  const set = (x) => {
    if (document.activeElement !== input) input.value = x;
    output.textContent = show(x);
    input.setAttribute("aria-valuetext", show(x));
  };
  return { row, set };
}

function select(label, options, value, change) {
  const list = html("select", { "aria-label": label });
  Object.entries(options).forEach(([key, text]) => list.append(html("option", { value: key }, text)));
  list.value = value;
  list.addEventListener("change", () => change(list.value));
  return { list, set: (key) => { list.value = key; } };
}

function render({ model, el }) {
  const labels = model.get("labels");
  const names = Object.keys(labels);
  const colours = model.get("colours");
  const get = (key) => model.get(key);
  const put = (changes) => {
    Object.entries(changes).forEach(([key, value]) => model.set(key, value));
    model.save_changes();
    draw();
  };

  // The picture: a canvas for the shade, drawings on top of it.
  const canvas = html("canvas", { width: WIDTH, height: HEIGHT, "aria-hidden": "true" });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group" });
  picture.setAttribute("aria-label", "The simplex of three actions with the paths of the updates");
  svg("polygon", { points: CORNERS.map((c) => c.join(",")).join(" "), class: "pu-lab-edge" }, picture);
  // The labels below start and end with the picture: beyond it an output area may cut them off.
  const corners = CORNERS.map(([x, y], a) => svg("text", {
    x: [0, WIDTH, x][a],
    y: a === 2 ? y - 10 : y + 22,
    "text-anchor": ["start", "end", "middle"][a],
    class: "pu-lab-corner",
  }, picture));
  const paths = svg("g", {}, picture);
  const handle = svg("g", { tabindex: 0, role: "slider", class: "pu-lab-handle" }, picture);
  handle.setAttribute("aria-label", "The policy; arrow keys move it");
  handle.setAttribute("aria-valuemin", "0");
  handle.setAttribute("aria-valuemax", "1");
  svg("circle", { r: 22, class: "pu-lab-reach" }, handle);
  svg("circle", { r: 7, class: "pu-lab-point" }, handle);

  const moveTo = (event) => {
    const box = picture.getBoundingClientRect();
    const scale = WIDTH / box.width;
    const point = toPolicy((event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
    put({ policy: inside(point) });
  };
  handle.addEventListener("pointerdown", (event) => {
    handle.setPointerCapture(event.pointerId);
    handle.focus();
    event.preventDefault();
  });
  handle.addEventListener("pointermove", (event) => {
    if (handle.hasPointerCapture(event.pointerId)) moveTo(event);
  });
  picture.addEventListener("click", (event) => {
    if (!handle.contains(event.target)) moveTo(event);
  });
  handle.addEventListener("keydown", (event) => {
    const size = event.shiftKey ? 0.05 : 0.01;
    const moves = {
      ArrowRight: [-size, size, 0],
      ArrowLeft: [size, -size, 0],
      ArrowUp: [-size / 2, -size / 2, size],
      ArrowDown: [size / 2, size / 2, -size],
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    put({ policy: inside(get("policy").map((x, a) => x + move[a])) });
  });

  // The controls
  const pi = () => get("policy");
  const spread = (first, share) => inside([first, (1 - first) * share, (1 - first) * (1 - share)]);
  const share = () => pi()[1] / (pi()[1] + pi()[2]);
  const sliders = {
    first: range("π(a₁)", 0, 1, 0.001, pi()[0], percent, (x) => put({ policy: spread(x, share()) })),
    share: range("a₂ of the rest", 0, 1, 0.001, share(), percent,
      (x) => put({ policy: spread(pi()[0], x) })),
    q: [0, 1, 2].map((a) => range(`q(a${"₁₂₃"[a]})`, 0, 1, 0.01, get("q")[a], (x) => x.toFixed(2),
      (x) => put({ q: get("q").map((old, b) => (a === b ? x : old)) }))),
    weight: range("weight η d", -2, 2, 0.05, Math.log10(get("weight")),
      (x) => (10 ** x).toPrecision(3), (x) => put({ weight: 10 ** x })),
    steps: range("steps drawn", 0, 3.4, 0.1, Math.log10(get("steps")),
      (x) => `${Math.round(10 ** x)}`, (x) => put({ steps: Math.round(10 ** x) })),
  };
  const shade = select("Shade", SHADES, get("shade"), (key) => put({ shade: key }));
  const subject = select("of the update", labels, get("subject"), (key) => put({ subject: key }));
  const ofUpdate = html("span", {}, "of ", subject.list);
  const presets = Object.entries(get("presets")).map(([text, values]) => {
    const button = html("button", { type: "button" }, text);
    button.addEventListener("click", () => put(values));
    return button;
  });

  const rows = {};
  const body = html("tbody");
  names.forEach((name) => {
    const box = html("input", { type: "checkbox", "aria-label": `draw ${labels[name]}` });
    box.checked = get("shown").includes(name);
    box.addEventListener("change", () => put({
      shown: names.filter((other) => (other === name ? box.checked : get("shown").includes(other))),
    }));
    const swatch = html("span", { class: "pu-lab-swatch", style: `background:${colours[name]}` });
    const cells = [0, 1, 2, 3, 4].map(() => html("td"));
    rows[name] = { box, cells };
    body.append(html("tr", {}, html("th", { scope: "row" },
      html("label", {}, box, swatch, labels[name])), ...cells));
  });
  const head = ["draw", "π′(a₁)", "π′(a₂)", "π′(a₃)", "change of v", "best gains most"];
  const table = html("table", {},
    html("caption", {}, "After one step"),
    html("thead", {}, html("tr", {}, ...head.map((text) => html("th", { scope: "col" }, text)))),
    body);
  const words = html("p", { class: "pu-lab-words", "aria-live": "polite" });

  el.append(html("div", { class: "pu-simplex" },
    html("div", { class: "pu-lab-presets" }, ...presets),
    html("div", { class: "pu-lab-columns" },
      html("div", { class: "pu-lab-picture" }, canvas, picture),
      html("div", { class: "pu-lab-controls" },
        sliders.first.row, sliders.share.row, ...sliders.q.map((slider) => slider.row),
        sliders.weight.row, sliders.steps.row,
        html("div", { class: "pu-lab-shade" }, html("span", {}, "shade"), shade.list, ofUpdate))),
    html("div", { class: "pu-lab-table" }, table),
    words));

  // Drawing
  let shaded = "";
  function paintShade() {
    const [kind, name, q, w] = [get("shade"), get("subject"), get("q"), get("weight")];
    const key = JSON.stringify([kind, name, q, w]);
    if (key === shaded) return;
    shaded = key;
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, WIDTH, HEIGHT);
    if (kind === "none") return;
    const cell = kind === "value" ? 4 : 2.5;
    const low = Math.min(...q);
    const high = Math.max(...q);
    for (let y = 0; y < HEIGHT; y += cell) {
      for (let x = 0; x < WIDTH; x += cell) {
        const point = toPolicy(x + cell / 2, y + cell / 2);
        if (Math.min(...point) <= 0) continue;
        if (kind === "value") {
          const v = sum(point.map((chance, a) => chance * q[a]));
          const strength = high > low ? (v - low) / (high - low) : 0;
          context.fillStyle = `rgba(120, 130, 145, ${0.08 + 0.5 * strength})`;
        } else {
          const { change, well } = effect(name, inside(point), q, w);
          if (kind === "drop" ? change > -1e-12 : !well) continue;
          context.fillStyle = kind === "drop" ? "rgba(214, 69, 80, 0.35)" : "rgba(90, 100, 200, 0.3)";
        }
        context.fillRect(x, y, cell, cell);
      }
    }
  }

  function draw() {
    const [now, q, w] = [pi(), get("q"), get("weight")];
    const best = greedy(q);
    paintShade();
    corners.forEach((node, a) => {
      node.textContent = `a${"₁₂₃"[a]}: q = ${q[a].toFixed(2)}${a === best ? " ★" : ""}`;
    });
    paths.replaceChildren();
    const effects = {};
    names.forEach((name) => {
      effects[name] = effect(name, now, q, w);
      if (!get("shown").includes(name)) return;
      const points = follow(name, now, q, w, get("steps")).map(place);
      svg("polyline", {
        points: points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" "),
        stroke: colours[name], class: "pu-lab-path", "stroke-dasharray": get("dashes")[name],
      }, paths);
      svg("circle", { cx: points[1][0], cy: points[1][1], r: 4.5, fill: colours[name] }, paths);
    });
    const [x, y] = place(now);
    handle.setAttribute("transform", `translate(${x}, ${y})`);
    handle.setAttribute("aria-valuenow", now[0].toFixed(3));
    handle.setAttribute("aria-valuetext",
      now.map((chance, a) => `action ${a + 1}: ${percent(chance)}`).join(", "));
    names.forEach((name) => {
      const { next, change, well } = effects[name];
      const { cells, box } = rows[name];
      box.checked = get("shown").includes(name);
      next.forEach((chance, a) => { cells[a].textContent = percent(chance); });
      cells[3].textContent = signed(change);
      cells[3].className = change < -1e-12 ? "pu-lab-bad" : "";
      cells[4].textContent = well ? "no" : "yes";
      cells[4].className = well ? "pu-lab-bad" : "";
    });
    sliders.first.set(now[0]);
    sliders.share.set(share());
    sliders.q.forEach((slider, a) => slider.set(q[a]));
    sliders.weight.set(Math.log10(w));
    sliders.steps.set(Math.log10(get("steps")));
    shade.set(get("shade"));
    subject.set(get("subject"));
    ofUpdate.hidden = !["drop", "well"].includes(get("shade"));
    const lower = names.filter((name) => effects[name].change < -1e-12).map((name) => labels[name]);
    const pulled = names.filter((name) => effects[name].well).map((name) => labels[name]);
    words.textContent = `The best action is a${"₁₂₃"[best]}. One step ${
      lower.length ? `lowers the value under ${lower.join(", ")}` : "lowers the value under none"
    }; another action than the best gains most under ${pulled.length ? pulled.join(", ") : "none"}.`;
  }

  ["policy", "q", "weight", "steps", "shade", "subject", "shown"].forEach((key) => {
    model.on(`change:${key}`, draw);
  });
  draw();
}

export default { render };
