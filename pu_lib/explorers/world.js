// A world: a process that a reader draws, and how it is run. Plain data and functions without a page.
//
// A grid is { kind: "grid", name, discount, slip, rows, pays }: `rows` are texts of the letters in
// KINDS, and `pays` has the reward for arriving in each cell, row by row. The chosen move happens with
// probability 1 - slip, and each of the two moves at a right angle with slip / 2; at a wall or the edge
// the agent stays where it is. Goals and traps end the trajectory. The first state is drawn evenly
// from the cells "S", or from all open cells if there is none.
//
// A graph is { kind: "graph", name, discount, moves, pays, initial, terminal, states, actions }:
// `moves[s][a]` are pairs of a next state and its probability, and `pays[s][a]` is the reward.
//
// A run is { updates, eta, share, from, steps, changes }: `share` of each weight follows the visits, and
// the rest is the same for all states; `from` is the first policy of every state, a list of one policy
// for each state, or null for the uniform one; `changes` are [step, place, reward], in order, where a place is a cell or s |A| + a.

export const KINDS = { ".": "empty", x: "wall", G: "goal", T: "trap", S: "start" };
export const MOVES = [["up", -1, 0], ["right", 0, 1], ["down", 1, 0], ["left", 0, -1]];
const MOST_SIDE = 12;
const MOST_STATES = 150;
const MOST_ACTIONS = 8;
const MOST_STEPS = 5000;
const ENDS = "GT";
const MOST_DISCOUNT = 0.999999; // nearer to 1, rounding can change a value by more than a reward
const MOST_VALUE = 1e150; // as in pu_lib/mdp.py: the product of two values is below the largest float
const CLOSE = 1e-9; // values that differ by a smaller share of the sums of their terms are equal

export const emptyRun = () => ({
  updates: ["pg-sm", "mce"], eta: 1, share: 0.9, from: null, steps: 200, changes: [],
});

export const kindAt = ({ rows }, cell) => rows[Math.floor(cell / rows[0].length)][cell % rows[0].length];

// The cells that are states, in the order of the states.
export const cellsOf = (world) => [...world.pays.keys()].filter((cell) => kindAt(world, cell) !== "x");

export const nStates = (world) => (world.kind === "grid" ? cellsOf(world).length : world.moves.length);

export const nActions = (world) => (world.kind === "grid" ? MOVES.length : world.actions.length);

export const payAt = (world, place) => (world.kind === "grid"
  ? world.pays[place]
  : world.pays[Math.floor(place / nActions(world))][place % nActions(world)]);

// The world with another reward at a place.
export function withPay(world, place, reward) {
  if (world.kind === "grid") return { ...world, pays: world.pays.map((x, i) => (i === place ? reward : x)) };
  const width = nActions(world);
  const pays = world.pays.map((row, s) => row.map((x, a) => (s * width + a === place ? reward : x)));
  return { ...world, pays };
}

function gridMdp(world) {
  const { rows, pays, slip, discount } = world;
  const [height, width] = [rows.length, rows[0].length];
  const cells = cellsOf(world);
  const number = new Map(cells.map((cell, s) => [cell, s]));
  const zeros = () => Array(cells.length).fill(0);
  const transitions = cells.map(() => MOVES.map(zeros));
  const rewards = cells.map(() => MOVES.map(() => 0));
  cells.forEach((cell, s) => {
    if (ENDS.includes(kindAt(world, cell))) return;
    MOVES.forEach((_, a) => {
      [[a, 1 - slip], [a + 1, slip / 2], [a + 3, slip / 2]].forEach(([turn, chance]) => {
        const [, down, right] = MOVES[turn % 4];
        const [i, j] = [Math.floor(cell / width) + down, (cell % width) + right];
        const inside = i >= 0 && i < height && j >= 0 && j < width;
        const next = (inside ? number.get(i * width + j) : s) ?? s;
        transitions[s][a][next] += chance;
        rewards[s][a] += chance * pays[cells[next]];
      });
    });
  });
  const kinds = cells.map((cell) => kindAt(world, cell));
  const starts = kinds.map((kind) => (kinds.includes("S") ? kind === "S" : !ENDS.includes(kind)));
  const many = starts.filter(Boolean).length;
  return {
    transitions, rewards, discount,
    initial: starts.map((start) => (start ? 1 / many : 0)),
    terminal: kinds.map((kind) => ENDS.includes(kind)),
  };
}

function graphMdp({ moves, pays, initial, terminal, discount }) {
  const transitions = moves.map((row, s) => row.map((pairs) => {
    const chances = moves.map(() => 0);
    if (!terminal[s]) pairs.forEach(([next, chance]) => { chances[next] += chance; });
    return chances;
  }));
  const rewards = pays.map((row, s) => row.map((paid) => (terminal[s] ? 0 : paid)));
  return { transitions, rewards, initial, discount, terminal };
}

// A name in a message.
const briefName = (name) => (name.length > 30 ? `${name.slice(0, 29)}…` : name);

// What is wrong with the size of rewards, in a sentence, or nothing.
function sizeFault(rewards, discount) {
  const most = Math.max(0, ...rewards.map(Math.abs));
  return most > MOST_VALUE * (1 - discount)
    ? `Rewards up to ${Number(most.toPrecision(6))} with the discount ${discount} make values beyond ${MOST_VALUE}. Measure them in a larger unit.` : "";
}

// What is wrong with a world, in a sentence; nothing if it can be run.
export function fault(world) {
  const { discount } = world;
  const number = Number.isFinite;
  if (!(discount >= 0 && discount <= MOST_DISCOUNT)) return `The discount is ${discount}; the page computes from 0 to ${MOST_DISCOUNT}.`;
  if (world.kind === "grid") {
    const { rows, pays, slip } = world;
    const width = rows[0].length;
    if (width < 1 || rows.some((row) => row.length !== width)) return "The rows of the grid have different lengths.";
    if (Math.max(rows.length, width) > MOST_SIDE) return `The grid has ${rows.length} rows and ${width} columns; at most ${MOST_SIDE} of each can be drawn.`;
    const unknown = [...rows.join("")].find((kind) => !Object.hasOwn(KINDS, kind));
    if (unknown) return `The grid has a cell “${unknown}”; cells are ${Object.keys(KINDS).join(" ")}.`;
    if (!(slip >= 0 && slip <= 1)) return `The slip is ${slip}; it must be between 0 and 1.`;
    if (pays.length !== rows.length * width || !pays.every(number)) return "A reward does not belong to a cell of the grid, or is not a number.";
    if (!/[.S]/.test(rows.join(""))) return "The grid has no open cell to start from. Make a cell empty.";
    return sizeFault(pays, discount);
  }
  const { moves, pays, initial, terminal, states, actions } = world;
  const n = moves.length;
  if (n < 1 || n > MOST_STATES) return `The world has ${n} states; the page computes 1 to ${MOST_STATES}.`;
  if (actions.length < 2 || actions.length > MOST_ACTIONS) return `The world has ${actions.length} actions; the page shows 2 to ${MOST_ACTIONS}.`;
  const isState = (s) => Number.isInteger(s) && s >= 0 && s < n;
  const twice = (names) => names.find((name, i) => names.indexOf(name) !== i);
  const same = twice(states) ?? twice(actions);
  if (same !== undefined) return `Two states or two actions are called “${briefName(same)}”.`;
  const tolerance = Math.max(Math.min(1e-9, 1e-6 * (1 - discount)), n * Number.EPSILON); // as in pu_lib/mdp.py
  const off = (chances) => !chances.every((x) => x >= 0) || Math.abs(sum(chances) - 1) > tolerance;
  for (let s = 0; s < n; s += 1) {
    for (let a = 0; a < actions.length; a += 1) {
      const [pairs, where] = [moves[s]?.[a], `${briefName(actions[a])} in ${briefName(states[s])}`];
      if (!number(pays[s]?.[a])) return `The reward of ${where} is not a number.`;
      if (terminal[s]) continue;
      if (!pairs || !pairs.every(([next]) => isState(next))) return `${where} leads to a state that does not exist.`;
      if (pairs.some(([, chance]) => chance < 0)) return `A probability of ${where} is negative.`;
      if (off(pairs.map(([, chance]) => chance))) return `The probabilities of ${where} sum to ${Number(sum(pairs.map(([, x]) => x)).toPrecision(12))}, not to 1.`;
    }
  }
  if (initial.length !== n || off(initial)) return "The probabilities of the first state do not sum to 1. Mark a start.";
  return sizeFault(pays.flat(), discount);
}

// The finite process of a world, in the form of evaluate(). Raises what is wrong with the world.
export function mdpOf(world) {
  const wrong = fault(world);
  if (wrong) throw new Error(wrong);
  return world.kind === "grid" ? gridMdp(world) : graphMdp(world);
}

// Optimal values by policy iteration, as in pu_lib.FiniteMDP.optimal, with the performance of the
// uniform policy. `terms` and `scale` are what the values and the performances would be if no rewards
// cancelled: rounding is small next to these, in any unit of reward.
export function optimum(mdp) {
  const { rewards } = mdp;
  const always = (actions) => rewards.map((row, s) => row.map((_, a) => (a === actions[s] ? 1 : 0)));
  let actions = rewards.map(greedy);
  let evaluation = null;
  for (let more = true, round = 0; more && round < 1000; round += 1) {
    evaluation = evaluate(mdp, always(actions));
    const { q } = evaluation;
    const own = actions;
    actions = q.map((row, s) => {
      const [most, now] = [Math.max(...row), row[own[s]]];
      return most - now > 1e-13 * Math.max(Math.abs(most), Math.abs(now)) ? greedy(row) : own[s];
    });
    more = actions.some((action, s) => action !== own[s]);
  }
  const even = rewards.map((row) => row.map(() => 1 / row.length));
  const unsigned = { ...mdp, rewards: rewards.map((row) => row.map(Math.abs)) };
  const terms = evaluate(unsigned, always(actions));
  return {
    v: evaluation.v, q: evaluation.q, performance: evaluation.performance, uniform: evaluate(mdp, even).performance,
    terms: terms.q.map((row) => Math.max(...row)), scale: Math.max(terms.performance, evaluate(unsigned, even).performance),
  };
}

// ---------------------------------------------------------------------------------------------
// Runs

// The processes of a run, one for each stretch between changes: { from, mdp, best }.
export function stagesOf({ world, run }) {
  const stages = [{ from: 0, world }];
  run.changes.forEach(([from, place, reward]) => {
    const last = stages.at(-1);
    const changed = withPay(last.world, place, reward);
    if (last.from === from) last.world = changed;
    else stages.push({ from, world: changed });
  });
  return stages.map((stage) => {
    const mdp = mdpOf(stage.world);
    return { ...stage, mdp, best: optimum(mdp) };
  });
}

// The first policies of a run, one for each state, or null for the uniform one.
const firstOf = ({ from }, n) => (from && (Array.isArray(from[0]) ? from : Array(n).fill(from)));

// A policy that was learnt, as the start of a run of any update: with parameters, which are infinite
// for a probability of 0.
export const LEAST_START = 1e-6;
export const startFrom = (policies) => policies.map((row) => {
  const raised = row.map((chance) => Math.max(chance, LEAST_START));
  return raised.map((chance) => chance / sum(raised));
});

const stageAt = (stages, t) => stages.findLast(({ from }) => from <= t);

// One update on a world. `path[t]` has parameters, policies, values and performance after t steps,
// and `go(t)` computes them up to step t. `change(stages, t)` keeps what was learnt in t steps.
export function lane(name, stages, run) {
  let now = stages;
  const path = [];
  const entry = (theta, t) => {
    const policies = theta.map((row) => policy(name, row));
    return { theta, policies, ...evaluate(stageAt(now, t).mdp, policies) };
  };
  const begin = () => {
    const { rewards } = now[0].mdp;
    const first = firstOf(run, rewards.length);
    return rewards.map((row, s) => (first ? parametersOf(name, first[s]) : initial(name, row.length)));
  };
  const go = (t) => {
    if (path.length === 0) path.push(entry(begin(), 0));
    while (path.length <= t) {
      const made = path.length;
      const { theta, q, occupancy } = path[made - 1];
      const { terminal } = stageAt(now, made - 1).mdp;
      path.push(entry(theta.map((row, s) => (terminal[s] ? row : step(name, row, q[s],
        run.eta * (run.share * occupancy[s] + 1 - run.share)))), made));
    }
    return path[t];
  };
  const change = (stages_, t) => {
    now = stages_;
    const { theta } = go(t);
    path.length = t;
    path.push(entry(theta, t));
  };
  return { name, path, go, change };
}

// Where a performance lies between that of the uniform policy, 0, and the optimum, 1.
export function normalised(best, performance) {
  const gap = best.performance - best.uniform;
  return gap <= CLOSE * best.scale ? 1 : (performance - best.uniform) / gap;
}

// The progress of recovery() on the path of a lane in a stage, so that each step is read once.
const recoveries = new WeakMap();

function recoveryOf(path, stage) {
  if (!recoveries.has(path)) recoveries.set(path, new WeakMap());
  const byStage = recoveries.get(path);
  if (!byStage.has(stage)) {
    const { from, mdp, best } = stage;
    const among = best.q.map((row, s) => {
      const least = Math.max(...row) - CLOSE * best.terms[s];
      return row.map((value) => value >= least);
    });
    byStage.set(stage, { next: from, among, back: null, right: null, states: mdp.terminal.map((end) => (end ? 0 : null)) });
  }
  return byStage.get(stage);
}

// The steps from the last change, among the first t, until 95 % of the optimum is reached (`back`), until
// each state has an optimal action as its likeliest (`states`; 0 for terminal states), and until all of them do
// together (`right`); null if t steps do not reach it. `change` of a lane needs new stages, as stagesOf() gives them.
export function recovery({ path }, stages, t) {
  const stage = stageAt(stages, t);
  const { from, mdp, best } = stage;
  const progress = recoveryOf(path, stage);
  for (; progress.next <= t; progress.next += 1) {
    const { performance, policies } = path[progress.next];
    const steps = progress.next - from;
    if (progress.back === null && normalised(best, performance) >= 0.95) progress.back = steps;
    let all = true;
    for (let s = 0; s < policies.length; s += 1) {
      let [right, wrong] = [0, 0];
      policies[s].forEach((chance, a) => {
        if (progress.among[s][a]) right = Math.max(right, chance);
        else wrong = Math.max(wrong, chance);
      });
      if (mdp.terminal[s] || right > wrong + 1e-12) progress.states[s] ??= steps; // equal by rounding is no choice
      else all = false;
    }
    if (all) progress.right ??= steps;
  }
  const by = (steps) => (steps !== null && steps <= t - from ? steps : null);
  return { back: by(progress.back), right: by(progress.right), states: progress.states.map(by), from };
}

// The updates that answer the question of a task: those that are back first, or last.
export function answersOf(ask, names, backs) {
  const times = backs.map((back) => back ?? Infinity);
  const wanted = (ask.answer === "last" ? Math.max : Math.min)(...times);
  return ask.answer !== "last" && wanted === Infinity ? [] : names.filter((_, i) => times[i] === wanted);
}

// ---------------------------------------------------------------------------------------------
// The text of a world and its run, after # in an address: names and values, "name=value&...".

// A decimal number, or NaN: Number() would also read nothing, spaces and "0x10".
const decimal = (text) => (/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) ? Number(text) : NaN);

const pairsOf = (text) => text.split(",").filter(Boolean).map((part) => {
  const [place, value] = part.split("*").map(decimal);
  return [place, part.includes("*") ? value : 1];
});
const pairsText = (pairs) => pairs.map(([place, value]) => (value === 1 ? `${place}` : `${place}*${value}`)).join(",");
const paysText = (pays) => pays.map((value, place) => [place, value]).filter(([, value]) => value !== 0)
  .map(([place, value]) => `${place}*${value}`).join(",");
const encoded = (text) => encodeURIComponent(text).replaceAll("%20", "+");

function filled(length, pairs, what) {
  const values = Array(length).fill(0);
  pairs.forEach(([place, value]) => {
    if (!(Number.isInteger(place) && place >= 0 && place < length && Number.isFinite(value))) {
      throw new Error(`The address gives a ${what} to place ${place}, which does not exist, or a number that is none.`);
    }
    values[place] = value;
  });
  return values;
}

const cut = (list, width) => Array.from({ length: list.length / width }, (_, s) => list.slice(s * width, (s + 1) * width));

export const stateName = (s) => `s${s}`;
export const actionName = (a) => `a${a}`;

export const noTask = () => ({ text: "", answer: "first", why: "" });

// A task is { text, answer, why }: a question, the answer "first" or "last" of recovery(), and the reason.
// `t` is the step that is shown.
export function writeWorld({ world, run, hide = [], ask = noTask(), t = 0 }) {
  const parts = [["world", 1]];
  const add = (key, value, usual = "") => { if (`${value}` !== `${usual}`) parts.push([key, value]); };
  if (world.kind === "grid") {
    add("grid", world.rows.join("/"));
    add("slip", world.slip, 0);
    add("pay", paysText(world.pays));
  } else {
    const { moves, pays, initial: first, terminal, actions } = world;
    add("graph", `${moves.length}*${actions.length}`);
    add("move", moves.flatMap((row, s) => row.map((pairs) => (terminal[s] ? "" : pairsText(pairs)))).join("_"));
    add("pay", paysText(pays.flat()));
    add("start", pairsText(first.map((chance, s) => [s, chance]).filter(([, chance]) => chance !== 0)));
    add("end", [...terminal.keys()].filter((s) => terminal[s]).join(","));
    Object.entries(namesOf(world)).forEach(([key, names]) => add(key, names.map(encoded).join(",")));
  }
  add("discount", world.discount);
  add("name", encoded(world.name));
  const usual = emptyRun();
  add("run", run.updates.join(","), usual.updates.join(","));
  ["eta", "share", "steps"].forEach((key) => add(key, run[key], usual[key]));
  add("from", run.from === null ? "" : Array.isArray(run.from[0]) ? run.from.map((row) => row.join(",")).join("/") : run.from.join(","));
  add("then", run.changes.map((change) => change.join("*")).join(","));
  add("t", t, 0);
  add("hide", hide.join(","));
  add("ask", encoded(ask.text));
  add("answer", ask.answer, "first");
  add("why", encoded(ask.why));
  return parts.map((part) => part.join("=")).join("&");
}

const policyFrom = (text) => {
  const rows = text.split("/").map((row) => row.split(",").map(decimal));
  return text.includes("/") ? rows : rows[0];
};

// The settings in such a text. Raises an error that says what is wrong.
export function readWorld(text) {
  const given = new Map(text.replace(/^#/, "").split("&").map((part) => {
    const at = part.indexOf("=");
    return [part.slice(0, at), part.slice(at + 1)];
  }));
  const decoded = (part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      throw new Error(`The address has a broken % sign in “${part.slice(0, 40)}”.`);
    }
  };
  const words = (key) => decoded((given.get(key) ?? "").replaceAll("+", " "));
  const plain = (key) => decoded(given.get(key) ?? "");
  const list = (key) => plain(key).split(",").filter(Boolean);
  const number = (key, usual) => (given.has(key) ? decimal(plain(key)) : usual);
  const named = (key, length, usual) => {
    const names = given.has(key) ? given.get(key).split(",").map((name) => decoded(name.replaceAll("+", " "))) : [];
    return Array.from({ length }, (_, i) => names[i] || usual(i));
  };
  if (given.get("world") !== "1") throw new Error("The address has no world that this page can read: it must begin with world=1.");
  const common = { name: words("name"), discount: number("discount", 0.95) };
  let world;
  if (given.has("grid")) {
    const rows = plain("grid").split("/");
    world = {
      kind: "grid", ...common, rows, slip: number("slip", 0),
      pays: filled(rows.join("").length, pairsOf(plain("pay")), "reward"),
    };
  } else if (given.has("graph")) {
    const [n, width] = plain("graph").split("*").map(decimal);
    if (!([n, width].every(Number.isInteger) && n >= 1 && n <= MOST_STATES && width >= 2 && width <= MOST_ACTIONS)) {
      throw new Error(`The address has the graph “${plain("graph")}”, of states and actions; the page computes up to ${MOST_STATES} states and 2 to ${MOST_ACTIONS} actions.`);
    }
    const moves = plain("move").split("_").map(pairsOf);
    if (moves.length !== n * width) throw new Error(`The address has moves for ${moves.length} pairs of a state and an action; the graph has ${n * width}.`);
    const ends = list("end").map(decimal);
    if (!ends.every((s) => Number.isInteger(s) && s >= 0 && s < n)) throw new Error(`The address has the ends “${plain("end")}”; the states have the numbers 0 to ${n - 1}.`);
    world = {
      kind: "graph", ...common, moves: cut(moves, width),
      pays: cut(filled(n * width, pairsOf(plain("pay")), "reward"), width),
      initial: filled(n, pairsOf(plain("start")), "start"),
      terminal: Array.from({ length: n }, (_, s) => ends.includes(s)),
      states: named("states", n, stateName), actions: named("actions", width, actionName),
    };
  } else throw new Error("The address has neither a grid nor a graph.");
  const usual = emptyRun();
  const run = {
    updates: given.has("run") ? list("run") : usual.updates,
    eta: number("eta", usual.eta), share: number("share", usual.share), steps: number("steps", usual.steps),
    from: given.has("from") ? policyFrom(plain("from")) : null,
    changes: list("then").map((part) => part.split("*").map(decimal)),
  };
  const t = number("t", 0);
  const wrong = fault(world) || runFault(world, run)
    || (Number.isInteger(t) && t >= 0 && t <= run.steps ? "" : `The step is ${t}; it must be 0 to ${run.steps}.`);
  if (wrong) throw new Error(wrong);
  const ask = { text: words("ask"), answer: plain("answer") || "first", why: words("why") };
  if (!["first", "last"].includes(ask.answer)) throw new Error(`The answer of the task is “${ask.answer}”; it must be first or last.`);
  return { world, run, hide: list("hide"), ask, t };
}

function runFault(world, { updates, eta, share, steps, from, changes }) {
  const places = world.kind === "grid" ? world.pays.length : world.pays.flat().length;
  const unknown = updates.find((name) => !known(name));
  if (updates.length < 1) return "The address names no update.";
  if (unknown !== undefined) return `The address names the update “${unknown}”, which the page cannot compute.`;
  if (new Set(updates).size < updates.length) return "The address names an update twice.";
  if (!(eta > 0 && eta <= 1e6)) return `The step size is ${eta}; it must be positive and at most a million.`;
  if (!(share >= 0 && share <= 1)) return `The share of the visits is ${share}; it must be between 0 and 1.`;
  if (!(Number.isInteger(steps) && steps >= 1 && steps <= MOST_STEPS)) return `The number of steps is ${steps}; it must be 1 to ${MOST_STEPS}.`;
  const rows = from && (Array.isArray(from[0]) ? from : [from]);
  if (rows && Array.isArray(from[0]) && rows.length !== nStates(world)) return `The first policy has ${rows.length} states; the world has ${nStates(world)}.`;
  if (rows && !rows.every((row) => row.length === nActions(world) && row.every((x) => x > 0) && Math.abs(sum(row) - 1) <= 1e-9)) {
    return `The first policy must have ${nActions(world)} positive probabilities that sum to 1.`;
  }
  const wrong = changes.some(([t, place, reward], i) => !(Number.isInteger(t) && t >= 1 && t <= steps && t >= (changes[i - 1]?.[0] ?? 1)
    && Number.isInteger(place) && place >= 0 && place < places && Number.isFinite(reward)));
  return wrong ? "A change of a reward needs a step of the run, in order, a place and a number."
    : sizeFault(changes.map(([, , reward]) => reward), world.discount);
}

// ---------------------------------------------------------------------------------------------
// Files and code

// The names of states and actions that differ from the usual ones.
function namesOf({ kind, states, actions }) {
  if (kind === "grid") return { actions: MOVES.map(([name]) => name) };
  return {
    ...(states.some((name, s) => name !== stateName(s)) && { states }),
    ...(actions.some((name, a) => name !== actionName(a)) && { actions }),
  };
}

// What pu_lib.FiniteMDP.load reads.
export function jsonOf(world) {
  const { transitions, rewards, initial: first, discount, terminal } = mdpOf(world);
  return `${JSON.stringify({ transitions, rewards, initial: first, discount, terminal, ...namesOf(world) })}\n`;
}

// The performance of each lane after each step, with a first line of names.
export const csvOf = (lanes, t) => [
  ["step", ...lanes.map(({ name }) => name)],
  ...Array.from({ length: t + 1 }, (_, k) => [k, ...lanes.map(({ path }) => path[k].performance)]),
].map((row) => `${row.join(",")}\n`).join("");

const quoted = (text) => JSON.stringify(text);
const dict = (pairs) => `{${pairs.map(([key, value]) => `${key}: ${value}`).join(", ")}}`;

function gridCode({ rows, pays, slip, discount }) {
  const width = rows[0].length;
  const place = (cell) => `(${Math.floor(cell / width)}, ${cell % width})`;
  return {
    place,
    pays: dict(pays.map((value, cell) => [place(cell), value]).filter(([, value]) => value !== 0)),
    text: `# S start, G goal, T trap, x wall
grid = [
${rows.map((row) => `    ${quoted(row)},`).join("\n")}
]
slip, discount = ${slip}, ${discount}
moves = [(-1, 0), (0, 1), (1, 0), (0, -1)]  # up, right, down, left
cells = [(i, j) for i, row in enumerate(grid) for j, kind in enumerate(row) if kind != "x"]
number = {cell: s for s, cell in enumerate(cells)}
kinds = np.array([grid[i][j] for i, j in cells])
terminal = np.isin(kinds, ["G", "T"])
starts = kinds == "S" if "S" in kinds else ~terminal


def build(pays):
    """Return the process with these rewards for arriving in a cell."""
    transitions = np.zeros((len(cells), 4, len(cells)))
    rewards = np.zeros((len(cells), 4))
    for s, (i, j) in enumerate(cells):
        for a in range(4) if not terminal[s] else ():
            for turn, chance in ((a, 1 - slip), (a + 1, slip / 2), (a + 3, slip / 2)):
                down, right = moves[turn % 4]
                after = number.get((i + down, j + right), s)  # a wall or the edge: stay
                transitions[s, a, after] += chance
                rewards[s, a] += chance * pays.get(cells[after], 0)
    return pu_lib.FiniteMDP(transitions, rewards, starts / starts.sum(), discount, terminal)`,
  };
}

function graphCode(world) {
  const { moves, pays, initial: first, terminal, discount, actions } = world;
  const [n, width] = [moves.length, actions.length];
  const named = Object.entries(namesOf(world)).map(([key, names]) => `, ${key}=${JSON.stringify(names)}`).join("");
  const place = (at) => `(${Math.floor(at / width)}, ${at % width})`;
  const lines = moves.flatMap((row, s) => (terminal[s] ? [] : row.map((pairs, a) => {
    const chances = new Map();
    pairs.forEach(([next, chance]) => chances.set(next, (chances.get(next) ?? 0) + chance));
    return `    (${s}, ${a}): ${dict([...chances])},`;
  })));
  return {
    place,
    pays: dict(pays.flat().map((value, at) => [place(at), terminal[Math.floor(at / width)] ? 0 : value]).filter(([, value]) => value !== 0)),
    text: `# (state, action): {next state: probability}
moves = {
${lines.join("\n")}
}
initial = ${JSON.stringify(first)}
terminal = [${terminal.map((end) => (end ? "True" : "False")).join(", ")}]


def build(pays):
    """Return the process with these rewards of states and actions."""
    transitions = np.zeros((${n}, ${width}, ${n}))
    rewards = np.zeros((${n}, ${width}))
    for (s, a), chances in moves.items():
        for after, chance in chances.items():
            transitions[s, a, after] = chance
        rewards[s, a] = pays.get((s, a), 0)
    return pu_lib.FiniteMDP(transitions, rewards, initial, ${discount}, terminal${named})`,
  };
}

// The updates that follow the greedy action alone.
const GREEDY = ["ce", "mce", "sce"];
const TIES = `# Where actions have equal values, CE, MCE and SCE follow the one that is ahead by rounding. That can be
# another one here than in the page, and their runs then differ from that step on.
`;

const IMPORTS = ["import numpy as np", "", "import pu_lib", "from pu_lib.trajectories import mixture"].join("\n");

// Python code that builds the world and runs the comparison.
export function pythonOf(settings) {
  const { world, run } = settings;
  const { place, pays, text } = (world.kind === "grid" ? gridCode : graphCode)(world);
  const changes = run.changes.filter(([t]) => t < run.steps);
  const ends = [...changes.map(([t]) => t), run.steps];
  const stages = changes.map(([t, at, reward], i) =>
    `pays = pays | {${place(at)}: ${reward}}  # from step ${t} on\nstages.append((${ends[i + 1] - t}, build(pays)))`);
  const start = run.from
    ? `    theta = pu_lib.UPDATES[name].parameters(${Array.isArray(run.from[0]) ? `np.array(${JSON.stringify(run.from)})` : `np.tile(${JSON.stringify(run.from)}, (process.n_states, 1))`})`
    : "    theta = None  # the uniform policy";
  return `# ${(world.name || "A world").replace(/\s+/g, " ")}
${IMPORTS}

${text}


pays = ${pays}
process = build(pays)
stages = [(${ends[0]}, process)]  # numbers of steps, and processes
${stages.map((line) => `${line}\n`).join("")}
${run.updates.some((name) => GREEDY.includes(name)) ? TIES : ""}performance = {}
for name in ${JSON.stringify(run.updates)}:
${start}
    performance[name] = []
    for n_steps, stage in stages:
        path = pu_lib.run(stage, name, n_steps, step_size=${run.eta}, weighting=mixture(${run.share}), theta0=theta)
        theta = path.theta[-1]
        performance[name] += path.performance[:-1].tolist()
    performance[name].append(float(path.performance[-1]))
    print(name, performance[name][-1], "of", stage.optimal().performance)
`;
}
