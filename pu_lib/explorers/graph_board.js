// A board on which a reader draws a graph: states are buttons on an ellipse, and a drag from one state to
// another connects them. The table of the editor does the same by keyboard.

const MOST_DRAWN = 24; // states; more are too small to be touched
const BOARD_HEIGHT = 240;

// `on` has select(s), connect(s, next), add() and remove(s).
function graphBoard(world, place, action, on) {
  const { moves, states, terminal, initial } = world;
  const n = moves.length;
  if (n > MOST_DRAWN) return html("p", { class: "pu-live-key" }, `Worlds of more than ${MOST_DRAWN} states are edited in the table.`);
  const at = (s) => {
    const turn = (2 * Math.PI * s) / n - Math.PI;
    return [50 + 40 * Math.cos(turn), 50 + 38 * Math.sin(turn)];
  };
  const picture = svg("svg", { "aria-hidden": "true", viewBox: "0 0 100 100", preserveAspectRatio: "none", class: "pu-live-arcs" });
  const box = html("div", { class: "pu-live-graph", role: "group", "aria-label": "The graph. Arrow keys select a state, and Delete removes it." }, picture);

  function connection(s, next, chance, own) {
    const [[x1, y1], [x2, y2]] = [at(s), at(next)];
    const [dx, dy] = [x2 - x1, y2 - y1];
    const d = s === next
      ? `M${x1 - 2},${y1 - 5} c-5,-13 9,-13 4,0`
      : `M${x1},${y1} Q${(x1 + x2) / 2 + dy * 0.15},${(y1 + y2) / 2 - dx * 0.15} ${x2},${y2}`;
    svg("path", { d, class: own ? "pu-live-own" : "pu-live-other", "stroke-width": 1 + (own ? 3 * chance : 0.5 * chance) }, picture);
    if (s === next) return;
    const [mx, my] = [(x1 + x2) / 2 + dy * 0.075, (y1 + y2) / 2 - dx * 0.075]; // on the curve, half way
    const turn = (Math.atan2(dy, dx) * 180) / Math.PI;
    svg("path", { d: "M-1.5,-2 L2,0 L-1.5,2 z", transform: `translate(${mx} ${my}) rotate(${turn})`, class: own ? "pu-live-tip" : "pu-live-other-tip" }, picture);
  }
  const drawn = (s, own) => moves[s].forEach((pairs, a) => {
    if (!terminal[s] && (own === (s === place && a === action))) pairs.forEach(([next, chance]) => connection(s, next, chance, own));
  });
  [false, true].forEach((own) => moves.forEach((_, s) => drawn(s, own)));
  const rubber = svg("line", { class: "pu-live-rubber", visibility: "hidden" }, picture);

  const nodes = states.map((name, s) => {
    const node = button(`${name}${initial[s] > 0 ? " ▸" : ""}${terminal[s] ? " ■" : ""}`, () => on.select(s), "pu-live-node");
    const [left, top] = at(s);
    node.style.left = `${left}%`;
    node.style.top = `${top}%`;
    node.setAttribute("aria-label", `state ${name}${initial[s] > 0 ? ", start" : ""}${terminal[s] ? ", end" : ""}`);
    node.setAttribute("aria-pressed", `${s === place}`);
    node.setAttribute("data-key", `node ${s}`);
    node.tabIndex = s === place ? 0 : -1;
    node.addEventListener("keydown", (event) => {
      const by = { ArrowUp: n - 1, ArrowLeft: n - 1, ArrowDown: 1, ArrowRight: 1 }[event.key];
      if (by === undefined && event.key !== "Delete") return;
      event.preventDefault();
      if (by === undefined) on.remove(s);
      else on.select((s + by) % n);
    });
    return node;
  });
  box.append(...nodes);

  // The state under a pointer, or -1.
  const under = ({ clientX, clientY }) => nodes.indexOf(document.elementFromPoint(clientX, clientY)?.closest(".pu-live-node"));
  let from = -1;
  box.addEventListener("pointerdown", (event) => {
    from = under(event);
    if (from >= 0) event.target.releasePointerCapture?.(event.pointerId); // touch captures by itself
  });
  const follow = (event) => {
    if (from < 0) return;
    const { left, top, width, height } = box.getBoundingClientRect();
    const [x1, y1] = at(from);
    Object.entries({ x1, y1, x2: (100 * (event.clientX - left)) / width, y2: (100 * (event.clientY - top)) / height, visibility: "visible" })
      .forEach(([key, value]) => rubber.setAttribute(key, value));
  };
  const end = (event) => {
    const [start, next] = [from, event.type === "pointerup" ? under(event) : -1];
    from = -1;
    rubber.setAttribute("visibility", "hidden");
    if (start >= 0 && next >= 0 && next !== start) on.connect(start, next);
  };
  box.addEventListener("pointermove", follow);
  ["pointerup", "pointercancel", "pointerleave"].forEach((type) => box.addEventListener(type, end));
  box.addEventListener("dblclick", (event) => { if (under(event) < 0) on.add(); });
  return box;
}
