// Pictures of a world and what a policy does in it: the colour of a state is its value, an arrow of a
// grid is as long as its action is probable, and an arc of a graph as wide.

const ARCS = 46; // the room for arcs on each side of a row of states

const LETTER = 8; // the width of a letter in pixels

// The share of each value between the lowest and the highest.
function shares(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return values.map((value) => (high > low ? (value - low) / (high - low) : 0));
}

// Each function draws what stays, and returns one that shows the values and policies of a step.

function gridPicture(picture, world, width) {
  const [height, across] = [world.rows.length, world.rows[0].length];
  const size = Math.min(46, (width - 2) / across);
  picture.setAttribute("height", size * height + 2);
  const number = new Map(cellsOf(world).map((cell, s) => [cell, s]));
  const open = []; // the cells with a policy: [state, middle, the rectangle of its value]
  world.pays.forEach((_, cell) => {
    const [x, y] = [1 + size * (cell % across), 1 + size * Math.floor(cell / across)];
    const kind = kindAt(world, cell);
    svg("rect", { x, y, width: size, height: size, class: kind === "x" ? "pu-live-wall" : "pu-live-cell" }, picture);
    if (kind === "x") return;
    const [cx, cy] = [x + size / 2, y + size / 2];
    if (kind === "G" || kind === "T") {
      svg("text", { x: cx, y: cy + 5, "text-anchor": "middle", class: "pu-live-tag" }, picture, kind === "G" ? "★" : "✖");
      return;
    }
    const colour = svg("rect", { x: x + 1, y: y + 1, width: size - 2, height: size - 2, class: "pu-live-fill" }, picture);
    if (kind === "S") svg("circle", { cx, cy, r: size * 0.2, class: "pu-live-ring" }, picture);
    open.push([number.get(cell), cx, cy, colour]);
  });
  const shafts = svg("path", { class: "pu-live-line" }, picture);
  const tips = svg("path", { class: "pu-live-tip" }, picture);
  return ({ v, policies }) => {
    const share = shares(v);
    const [lines, heads] = [[], []];
    open.forEach(([s, cx, cy, colour]) => {
      colour.setAttribute("opacity", (0.55 * share[s]).toFixed(3));
      MOVES.forEach(([, down, right], a) => {
        const long = size * 0.47 * policies[s][a];
        if (long <= 0.6) return;
        const [x, y] = [cx + long * right, cy + long * down];
        const head = Math.min(5, long / 2);
        const corner = (side) => `${(x - head * right + 0.7 * head * side * down).toFixed(1)},${(y - head * down + 0.7 * head * side * right).toFixed(1)}`;
        lines.push(`M${cx.toFixed(1)},${cy.toFixed(1)} L${x.toFixed(1)},${y.toFixed(1)}`);
        heads.push(`M${x.toFixed(1)},${y.toFixed(1)} L${corner(1)} L${corner(-1)} z`);
      });
    });
    shafts.setAttribute("d", lines.join(" "));
    tips.setAttribute("d", heads.join(" "));
  };
}

function graphPicture(picture, world, width) {
  const n = world.moves.length;
  const middle = ARCS + 20;
  picture.setAttribute("height", 2 * middle + 12);
  const each = (width - 40) / Math.max(1, n - 1);
  const x = (s) => (n === 1 ? width / 2 : 20 + each * s);
  const radius = Math.max(2, Math.min(12, each * 0.36));
  const arcs = [];
  const colours = [];
  world.moves.forEach((row, s) => {
    if (world.terminal[s]) return;
    row.forEach((pairs, a) => pairs.forEach(([next, chance]) => {
      const side = next > s ? -1 : 1;
      const rise = side * (10 + (ARCS - 10) * (Math.abs(next - s) / n) ** 0.6 + 5 * a);
      const d = next === s
        ? `M${x(s) - radius * 0.6},${middle + radius * 0.8} c${-8 - 3 * a},${18 + 4 * a} ${radius * 1.2 + 8 + 3 * a},${18 + 4 * a} ${radius * 1.2},0`
        : `M${x(s)},${middle + side * radius} C${x(s)},${middle + side * radius + rise} ${x(next)},${middle + side * radius + rise} ${x(next)},${middle + side * radius}`;
      arcs.push([s, a, chance, svg("path", { d, class: "pu-live-jump" }, picture)]);
      if (next === s) return;
      const end = middle + side * radius;
      arcs.push([s, a, chance, svg("path", { d: `M${x(next) - 3},${end + 6 * side} L${x(next)},${end} L${x(next) + 3},${end + 6 * side} z`, class: "pu-live-fill" }, picture)]);
    }));
  });
  world.moves.forEach((_, s) => {
    svg("circle", { cx: x(s), cy: middle, r: radius, class: "pu-live-state" }, picture);
    if (world.terminal[s]) svg("circle", { cx: x(s), cy: middle, r: radius * 0.55, class: "pu-live-goal" }, picture);
    else colours.push([s, svg("circle", { cx: x(s), cy: middle, r: radius - 1, class: "pu-live-fill" }, picture)]);
  });
  const longest = Math.min(6, Math.max(...world.states.map((name) => name.length)));
  const every = Math.ceil((LETTER * longest) / each);
  const letters = Math.max(longest, Math.min(12, Math.floor((each * every) / LETTER)));
  world.states.forEach((name, s) => {
    if (s % every > 0) return;
    const shortened = name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
    const anchor = s === 0 && n > 1 ? "start" : s === n - 1 && n > 1 ? "end" : "middle";
    svg("text", { x: { start: 20 - radius, middle: x(s), end: width - 20 + radius }[anchor], y: 2 * middle + 8, "text-anchor": anchor, class: "pu-live-faint" }, picture, shortened);
  });
  return ({ v, policies }) => {
    const value = shares(v);
    arcs.forEach(([s, a, chance, path]) => {
      const share = policies[s][a] * chance;
      path.setAttribute("stroke-width", (0.5 + 4 * share).toFixed(3));
      path.setAttribute("opacity", (0.12 + 0.88 * share).toFixed(3));
    });
    colours.forEach(([s, circle]) => circle.setAttribute("opacity", (0.75 * value[s]).toFixed(3)));
  };
}

function worldPicture(picture, world, width) {
  picture.replaceChildren();
  return (world.kind === "grid" ? gridPicture : graphPicture)(picture, world, width);
}
