// The simplex of three actions: a triangle with a point in it that mouse, touch and arrow keys move.

const WIDTH = 440;
const HEIGHT = 404;
const CORNERS = [
  [30, 374],
  [410, 374],
  [220, 374 - 190 * Math.sqrt(3)],
];
const FLOOR = 1e-6; // the point stays off the edges, where logarithms end
const NAMES = ["a₁", "a₂", "a₃"];

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

// `get` and `move` read and change the policy of the point.
function triangle(label, get, move) {
  const canvas = html("canvas", { width: WIDTH, height: HEIGHT, "aria-hidden": "true" });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": label });
  svg("polygon", { points: CORNERS.map((c) => c.join(",")).join(" "), class: "pu-live-outline" }, picture);
  // The labels below start and end with the picture: beyond it an output area may cut them off.
  const corners = CORNERS.map(([x, y], a) => svg("text", {
    x: [0, WIDTH, x][a],
    y: a === 2 ? y - 10 : y + 22,
    "text-anchor": ["start", "end", "middle"][a],
    class: "pu-live-corner",
  }, picture));
  const thin = svg("g", {}, picture);
  const paths = svg("g", {}, picture);
  const handle = svg("g", {
    tabindex: 0, role: "slider", class: "pu-live-handle", "aria-valuemin": 0, "aria-valuemax": 1,
    "aria-label": "The policy at the start; arrow keys move it",
  }, picture);
  svg("circle", { r: 22, class: "pu-live-reach" }, handle);
  svg("circle", { r: 7, class: "pu-live-point" }, handle);

  const moveTo = (event) => {
    const box = picture.getBoundingClientRect();
    const scale = WIDTH / box.width;
    move(inside(toPolicy((event.clientX - box.left) * scale, (event.clientY - box.top) * scale)));
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
    const by = moves[event.key];
    if (!by) return;
    event.preventDefault();
    move(inside(get().map((x, a) => x + by[a])));
  });

  // The point, and what the corners are worth; the best have a star.
  function set(q) {
    const pi = get();
    const [x, y] = place(pi);
    handle.setAttribute("transform", `translate(${x}, ${y})`);
    handle.setAttribute("aria-valuenow", pi[0].toFixed(3));
    handle.setAttribute("aria-valuetext", pi.map((chance, a) => `${NAMES[a]}: ${chance.toFixed(3)}`).join(", "));
    corners.forEach((node, a) => {
      node.textContent = `${NAMES[a]}: q = ${q[a].toFixed(2)}${q[a] === Math.max(...q) ? " ★" : ""}`;
    });
  }

  // colour(policy) is a colour, or null where nothing is painted.
  function shade(colour) {
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, WIDTH, HEIGHT);
    const cell = 4;
    for (let y = 0; colour && y < HEIGHT; y += cell) {
      for (let x = 0; x < WIDTH; x += cell) {
        const point = toPolicy(x + cell / 2, y + cell / 2);
        const paint = Math.min(...point) > 0 && colour(point);
        if (!paint) continue;
        context.fillStyle = paint;
        context.fillRect(x, y, cell, cell);
      }
    }
  }

  // Whole paths, thin.
  function streams(list, tone) {
    thin.replaceChildren();
    thin.setAttribute("style", `--tone:${tone}`);
    list.forEach((path) => svg("polyline", {
      points: path.map(place).map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "),
      class: "pu-live-stream",
    }, thin));
  }

  // One path from its start to step t, with a tick every ten steps and a dot at its end.
  function trace(path, t, tone, dash = "") {
    const group = svg("g", { style: `--tone:${tone}` }, paths);
    const points = path.slice(0, t + 1).map(place);
    const far = ([x1, y1], [x2, y2]) => Math.hypot(x2 - x1, y2 - y1);
    const kept = points.filter((point, i) => i === 0 || i === t || far(point, points[i - 1]) > 0.4 || i % 10 === 0);
    svg("polyline", {
      points: kept.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "),
      class: "pu-live-path", "stroke-dasharray": dash,
    }, group);
    let last = points[0];
    for (let i = 10; i <= t; i += 10) {
      const [x, y] = points[i];
      if (far(points[i], last) < 0.8) continue; // ticks so dense are one band already
      const [dx, dy] = [x - points[i - 1][0], y - points[i - 1][1]];
      const size = Math.hypot(dx, dy) || 1;
      svg("line", {
        x1: x - (5 * dy) / size, y1: y + (5 * dx) / size, x2: x + (5 * dy) / size, y2: y - (5 * dx) / size,
        class: "pu-live-print",
      }, group);
      last = points[i];
    }
    const [x, y] = points.at(-1);
    svg("circle", { cx: x, cy: y, r: 5, class: "pu-live-fill" }, group);
  }

  const box = html("div", { class: "pu-live-triangle" }, canvas, picture);
  return { box, set, shade, streams, trace, clear: () => paths.replaceChildren() };
}

const PALE = { drop: "rgba(214, 69, 80, 0.35)", well: "rgba(125, 125, 135, 0.3)", deep: "rgba(110, 110, 120, 0.65)" };
