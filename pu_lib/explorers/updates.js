// The mathematics of the explorers: the unlearning and the domino counts, and finite decision
// processes solved exactly. Pure functions of numbers and arrays. The steps of the updates and their
// policies are those of steps.js, which is made from Python.
//
// The formulas are those of pu_lib/chapters/unlearning/quantities.py, pu_lib/chapters/domino/quantities.py
// and pu_lib/mdp.py. tests/explorers/test_live.py runs both sides: numbers agree to 1e-12, counts
// exactly, over the whole range of every control that shows them.

const sum = (xs) => xs.reduce((total, x) => total + x, 0);

// ---------------------------------------------------------------------------------------------
// One update of one state. theta, q and pi are arrays over the actions; w = eta d(s).

export const known = (name) => Object.hasOwn(steps.updates, name);

export const greedy = (q) => steps.greedy(q, q.length);

export function policy(name, theta) {
  const pi = [...theta];
  steps.policies[steps.updates[name].parametrization](theta, pi, pi.length);
  return pi;
}

export function step(name, theta, q, w) {
  const next = [...theta];
  steps.updates[name].kernel(next, policy(name, theta), q, greedy(q), w, q.length);
  return next;
}

// The nearest point of the simplex: a step of DI from zero.
export const projectSimplex = (x) => step("di", x.map(() => 0), x, 1);

// Parameters of a policy with full support; escort parameters have the norm of (1, ..., 1).
export function parametersOf(name, pi) {
  const inverses = { softmax: Math.log, escort: (x) => Math.sqrt(pi.length * x), direct: (x) => x };
  return pi.map(inverses[steps.updates[name].parametrization]);
}

// Parameters of the uniform policy, without rounding wherever that is possible.
export function initial(name, nActions) {
  const uniform = { softmax: 0, escort: 1, direct: 1 / nActions };
  return Array(nActions).fill(uniform[steps.updates[name].parametrization]);
}

// The weight of update t = 1, 2, ...
export function weightAt(eta, schedule, t) {
  return schedule === "inverse-sqrt" ? eta / Math.sqrt(t) : eta;
}

// ---------------------------------------------------------------------------------------------
// Unlearning: two actions, n updates with q = (1, 0), then updates with q = (0, 1).

const FORWARD = [1, 0];
const BACKWARD = [0, 1];

// A step of PG-ES multiplies theta_a by 1 + 2 w adv(a) / |theta|^2. Going out it can shrink a
// parameter by a constant factor thousands of times, below the smallest number there is; so the
// two parameters are kept as the logarithms of their moduli, on which the policy depends.
const escortChance = ([first, second]) => 1 / (1 + Math.exp(2 * (second - first)));

function escortWalk(logs, q, w) {
  const first = escortChance(logs);
  const second = escortChance([logs[1], logs[0]]);
  const scale = (2 * w * (q[0] - q[1])) / (Math.exp(2 * logs[0]) + Math.exp(2 * logs[1]));
  return [scale * second, -scale * first].map((x, a) =>
    logs[a] + (x >= -1 ? Math.log1p(x) : Math.log(-1 - x)));
}

const origin = (name) => (name === "pg-es" ? [0, 0] : initial(name, 2));

const walk = (name, state, q, w) =>
  name === "pg-es" ? escortWalk(state, q, w) : step(name, state, q, w);

const chanceOf = (name, state) => (name === "pg-es" ? escortChance(state) : policy(name, state)[0]);

// Positive, zero or negative as pi(a_1) - 1/2 is.
const ahead = (state) => state[0] - state[1];

// A state that a step leaves as it is stays for ever, as an escort parameter that is exactly zero.
const stuck = (state, next) => state.every((x, a) => x === next[a]);

// pi(a_1) along n updates out and as many home as it takes until pi(a_1) <= 1/2, and their number:
// `count`, which is Infinity where no number does.
export function race(name, n, eta, schedule = "constant") {
  let state = origin(name);
  const chance = () => chanceOf(name, state);
  const out = [chance()];
  for (let t = 1; t <= n; t += 1) {
    state = walk(name, state, FORWARD, weightAt(eta, schedule, t));
    out.push(chance());
  }
  const home = [chance()];
  while (ahead(state) > 0) {
    const next = walk(name, state, BACKWARD, weightAt(eta, schedule, n + home.length));
    if (stuck(state, next)) return { out, home, count: Infinity };
    state = next;
    home.push(chance());
  }
  return { out, home, count: home.length - 1 };
}

// One state whose actions take turns: in step t the action order[t mod length] is worth 1, the others
// in `order` are worth 1 - gap, the rest 0. After n steps the last action is worth 1, the others 0.
// The probability of the last action after each step, until it is uniform again, and how many steps
// that takes: `count`, which is Infinity where it is more than `most`.
export function takeTurns(name, nActions, order, n, gap, w, most) {
  const indices = [...Array(nActions).keys()];
  const out = order.map((best) =>
    indices.map((a) => (a === best ? 1 : order.includes(a) ? 1 - gap : 0)));
  const home = indices.map((a) => (a === nActions - 1 ? 1 : 0));
  const chance = (theta) => policy(name, theta)[nActions - 1];
  let theta = initial(name, nActions);
  for (let t = 0; t < n; t += 1) theta = step(name, theta, out[t % out.length], w);
  const path = [chance(theta)];
  while (path.at(-1) < 1 / nActions - 1e-12 && path.length <= most) {
    theta = step(name, theta, home, w);
    path.push(chance(theta));
  }
  return { path, count: path.at(-1) < 1 / nActions - 1e-12 ? Infinity : path.length - 1 };
}

// ---------------------------------------------------------------------------------------------
// Domino: state k flips once pi(a_2) exceeds its start; only then state k - 1 sees q = (0, 1). It
// never flips back, so that its steps after the flip are not needed.

// The flip times [n_1, ..., n_h] and pi_t(a_2 | s_k) on the way: all states walk the same way `out`,
// state k up to the flip of state k + 1, and then its own way `home[k]` until it has flipped. The
// last state makes no step out. A state that is stuck flips never, and none in front of it does.
export function dominoPaths(name, states, eta) {
  const chance = (state) => 1 - chanceOf(name, state);
  let furthest = origin(name);
  const out = [chance(furthest)];
  const [times, home] = [[], []];
  while (times.length < states) {
    const later = times[0] ?? 0;
    while (out.length <= later && Number.isFinite(later)) {
      furthest = walk(name, furthest, FORWARD, eta);
      out.push(chance(furthest));
    }
    let state = furthest;
    const path = [chance(state)];
    while (ahead(state) >= 0) {
      const next = walk(name, state, BACKWARD, eta);
      if (stuck(state, next)) break;
      state = next;
      path.push(chance(state));
    }
    home.unshift(path);
    times.unshift(ahead(state) < 0 ? later + path.length - 1 : Infinity);
  }
  return { times, out, home };
}

// pi_t(a_2 | s_k) for t up to the flip of state k, which is counted from 0.
export function dominoAt({ times, out, home }, k, t) {
  const later = times[k + 1] ?? 0;
  const path = t <= later ? out : home[k];
  return path[Math.min(t <= later ? t : t - later, path.length - 1)];
}

// ---------------------------------------------------------------------------------------------
// Finite decision processes: {transitions[s][a][s'], rewards[s][a], initial[s], discount,
// terminal[s]}. The rows of terminal states are zero.

// The factors of a square matrix of floats, by rows: lower times upper is the matrix with its rows in
// the order `rows`. The pivot of a column is its largest entry.
function factorise(matrix, n) {
  const rows = Array.from({ length: n }, (_, i) => i);
  for (let i = 0; i < n; i += 1) {
    let pivot = i;
    for (let j = i + 1; j < n; j += 1) {
      if (Math.abs(matrix[j * n + i]) > Math.abs(matrix[pivot * n + i])) pivot = j;
    }
    if (pivot !== i) {
      [rows[i], rows[pivot]] = [rows[pivot], rows[i]];
      for (let k = 0; k < n; k += 1) {
        const kept = matrix[i * n + k];
        matrix[i * n + k] = matrix[pivot * n + k];
        matrix[pivot * n + k] = kept;
      }
    }
    const top = matrix[i * n + i];
    for (let j = i + 1; j < n; j += 1) {
      const start = j * n;
      if (matrix[start + i] === 0) continue;
      const factor = matrix[start + i] / top;
      matrix[start + i] = factor;
      for (let k = i + 1; k < n; k += 1) matrix[start + k] -= factor * matrix[i * n + k];
    }
  }
  return { matrix, rows, n };
}

// The solution x of A x = right, given the factors of A.
function solveFactorised({ matrix, rows, n }, right) {
  const x = rows.map((row) => right[row]);
  for (let i = 0; i < n; i += 1) {
    for (let k = 0; k < i; k += 1) x[i] -= matrix[i * n + k] * x[k];
  }
  for (let i = n - 1; i >= 0; i -= 1) {
    for (let k = i + 1; k < n; k += 1) x[i] -= matrix[i * n + k] * x[k];
    x[i] /= matrix[i * n + i];
  }
  return x;
}

// The solution x of A x = right.
const solve = (matrix, right) =>
  solveFactorised(factorise(Float64Array.from(matrix.flat()), right.length), right);

// The solution x of the transposed system.
function solveTransposed({ matrix, rows, n }, right) {
  const y = [...right];
  for (let i = 0; i < n; i += 1) {
    y[i] /= matrix[i * n + i];
    for (let k = i + 1; k < n; k += 1) y[k] -= matrix[i * n + k] * y[i];
  }
  for (let i = n - 1; i >= 0; i -= 1) {
    for (let k = 0; k < i; k += 1) y[k] -= matrix[i * n + k] * y[i];
  }
  const x = Array(n);
  rows.forEach((row, i) => { x[row] = y[i]; });
  return x;
}

// For each state and action of a process, the next states with positive probabilities, and these.
const SUCCESSORS = new WeakMap();
function successors(mdp) {
  if (!SUCCESSORS.has(mdp)) {
    SUCCESSORS.set(mdp, mdp.transitions.map((row) => row.map((chances) => {
      const next = [...chances.keys()].filter((s) => chances[s] > 0);
      return { next, chances: next.map((s) => chances[s]) };
    })));
  }
  return SUCCESSORS.get(mdp);
}

// The values of a policy, its performance and its discounted expected numbers of visits. One
// factorisation serves both systems; plain loops, because figures call this at every step.
export function evaluate(mdp, pi) {
  const { rewards, discount, terminal } = mdp;
  const n = rewards.length;
  const after = successors(mdp);
  const matrix = new Float64Array(n * n);
  const reward = Array(n).fill(0);
  for (let s = 0; s < n; s += 1) {
    matrix[s * n + s] = 1;
    if (terminal[s]) continue;
    for (let a = 0; a < rewards[s].length; a += 1) {
      const { next, chances } = after[s][a];
      reward[s] += pi[s][a] * rewards[s][a];
      for (let i = 0; i < next.length; i += 1) matrix[s * n + next[i]] -= discount * pi[s][a] * chances[i];
    }
  }
  const factors = factorise(matrix, n);
  const v = solveFactorised(factors, reward);
  const q = rewards.map((row, s) => row.map((paid, a) => {
    if (terminal[s]) return 0;
    const { next, chances } = after[s][a];
    let ahead = 0;
    for (let i = 0; i < next.length; i += 1) ahead += chances[i] * v[next[i]];
    return paid + discount * ahead;
  }));
  const visits = solveTransposed(factors, mdp.initial);
  const occupancy = visits.map((count, s) => (terminal[s] ? 0 : Math.max(count, 0)));
  return { v, q, occupancy, performance: sum(mdp.initial.map((chance, s) => chance * v[s])) };
}

// The chain of the paper's figure 1: action 0 jumps to the end, action 1 walks on.
export function chain(nStates, beta = 0.8, discount = 0.99) {
  const end = nStates - 1;
  const unit = (to) => Array.from({ length: nStates }, (_, s) => (s === to ? 1 : 0));
  const nothing = Array(nStates).fill(0);
  const jump = beta * discount ** (nStates - 2);
  return {
    transitions: unit(0).map((_, s) => (s === end ? [nothing, nothing] : [unit(end), unit(s + 1)])),
    rewards: unit(0).map((_, s) => (s === end ? [0, 0] : [jump, s === end - 1 ? 1 : 0])),
    initial: unit(0),
    discount,
    terminal: unit(end).map(Boolean),
  };
}

// The exact process from the uniform policy: `share` of each weight follows the visits of the
// current policy, the rest is the same for every state. One entry before each update and one after
// the last.
export function learn(mdp, name, nSteps, eta, share, schedule = "constant") {
  let theta = mdp.rewards.map((row) => initial(name, row.length));
  const path = [];
  for (let t = 1; ; t += 1) {
    const policies = theta.map((row) => policy(name, row));
    const { q, occupancy, performance } = evaluate(mdp, policies);
    path.push({ policies, q, performance });
    if (t > nSteps) return path;
    theta = theta.map((row, s) => (mdp.terminal[s] ? row : step(name, row, q[s],
      weightAt(eta, schedule, t) * (share * occupancy[s] + 1 - share))));
  }
}

// A deterministic process whose states may have different numbers of actions; null is the end, which
// becomes a state of its own, the last.
export function deterministic(rewards, successors, discount) {
  const end = rewards.length;
  const states = [...rewards.keys(), end];
  const unit = (to) => states.map((s) => (s === (to ?? end) ? 1 : 0));
  return {
    transitions: [...successors.map((row) => row.map(unit)), [states.map(() => 0)]],
    rewards: [...rewards, [0]],
    initial: unit(0),
    discount,
    terminal: unit(end).map(Boolean),
  };
}

// The process under a periodic schedule that updates one state a step, towards its greedy action.
// One entry before each step, and one after the last, which says what the next step would be.
export function followCycle(mdp, name, start, phases, periods) {
  let theta = start.map((row) => [...row]);
  const path = [];
  for (let t = 0; t <= periods * phases.length; t += 1) {
    const { state, weight } = phases[t % phases.length];
    const policies = [...theta.map((row) => policy(name, row)), [1]];
    const { v, q } = evaluate(mdp, policies);
    const before = theta[state];
    const after = step(name, before, q[state], weight);
    path.push({ theta, policies, v, q, state, weight, greedy: greedy(q[state]), before, after });
    theta = theta.map((row, s) => (s === state ? after : row));
  }
  return path;
}

// ---------------------------------------------------------------------------------------------
// Two actions and one step of weight w: the change of theta_1 - theta_2.

const change = (name, pi, q, w) => {
  const before = parametersOf(name, pi);
  const after = step(name, before, q, w);
  return after[0] - before[0] - (after[1] - before[1]);
};

// The steps for q = (1, 0) and for -q from the policy (x, 1 - x).
export function mirror(name, x, w) {
  return [change(name, [x, 1 - x], [1, 0], w), change(name, [x, 1 - x], [-1, 0], w)];
}

// Action 1 pays 1 with probability `odds` and else nothing, action 2 pays `sure`; the policy is
// uniform. The step for the expected values, and the mean of the steps for sampled ones.
export function sampled(name, odds, sure, w) {
  const from = (paid) => change(name, [0.5, 0.5], [paid, sure], w);
  return [from(odds), odds * from(1) + (1 - odds) * from(0)];
}

// Whether an action that is worth less than the best gains more than the greedy one.
function pulled(gains, q) {
  const [top, most] = [Math.max(...q), gains[greedy(q)]];
  return gains.some((gain, a) => q[a] < top && gain > most + 1e-12);
}

// The policy after one step, the change of its value at the given q, and whether it is in a well.
export function oneStep(name, pi, q, w) {
  const after = policy(name, step(name, parametersOf(name, pi), q, w));
  const gains = after.map((chance, a) => chance - pi[a]);
  const top = Math.max(...q);
  return {
    after,
    change: sum(gains.map((gain, a) => gain * (q[a] - top))),
    well: pulled(gains, q),
  };
}

// One gradient step of a policy that projects its scores: only the scores of its support move.
function sparsemaxStep(theta, q, w) {
  const inside = projectSimplex(theta).map((chance) => chance > 0);
  const mean = sum(q.filter((_, a) => inside[a])) / inside.filter(Boolean).length;
  return theta.map((x, a) => (inside[a] ? x + w * (q[a] - mean) : x));
}

// pi(a_1) along n updates out and then updates home, `total` in all, from the uniform policy.
export function reversal(name, n, eta, total) {
  const projected = name === "sparsemax";
  const chance = (state) => (projected ? projectSimplex(state) : policy(name, state))[0];
  let state = projected ? [0.5, 0.5] : initial(name, 2);
  const path = [chance(state)];
  for (let t = 0; t < total; t += 1) {
    const q = t < n ? FORWARD : BACKWARD;
    state = projected ? sparsemaxStep(state, q, eta) : step(name, state, q, eta);
    path.push(chance(state));
  }
  return path;
}

// What one step adds to the value of theta = (x, 0, 0) at q = (first, 1, 0), for each x of `tops`.
export function lowering(name, first, w, tops) {
  return tops.map((x) => oneStep(name, policy(name, [x, 0, 0]), [first, 1, 0], w).change);
}

// The factor that gives escort parameters of `parametersOf` the norm one.
export const normed = (name, nActions) => (name === "pg-es" ? 1 / Math.sqrt(nActions) : 1);

// Where a policy lies under one step with parameters of norm one: 0 where the best action gains
// most, 1 where another one does, 2 where the best action even loses.
export function gravity(name, pi, q, w) {
  const theta = parametersOf(name, pi).map((x) => normed(name, pi.length) * x);
  const gains = policy(name, step(name, theta, q, w)).map((chance, a) => chance - pi[a]);
  if (gains[greedy(q)] < -1e-12) return 2;
  return pulled(gains, q) ? 1 : 0;
}

// ---------------------------------------------------------------------------------------------
// One state, step by step. `values(t)` are those of step t = 0, 1, ...; go(t) makes `path` hold the
// policies up to step t. DI can reach a share exactly but for `rounding`, the other updates cannot.
export function travel(name, pi, values, w, scale = 1) {
  let theta = parametersOf(name, pi).map((x) => scale * x);
  const path = [pi];
  const go = (t) => {
    for (let made = path.length - 1; made < t; made += 1) {
      theta = step(name, theta, values(made), w);
      path.push(policy(name, theta));
    }
  };
  return { path, go, rounding: steps.updates[name].parametrization === "direct" ? 1e-12 : 0 };
}

// The steps from step `from` on until the best actions have each of the shares `goals`, in order;
// Infinity where that takes more than `most`.
export function arrive(runner, q, goals, from, most) {
  const top = Math.max(...q);
  const arrivals = goals.map(() => Infinity);
  for (let t = 0, k = 0; t <= most && k < goals.length; t += 1) {
    runner.go(from + t);
    const share = sum(runner.path[from + t].filter((_, a) => q[a] === top));
    while (k < goals.length && share >= goals[k] - runner.rounding) arrivals[k++] = t;
  }
  return arrivals;
}

// ---------------------------------------------------------------------------------------------
// MCE on a bandit with one best arm, from the uniform policy: the odds kappa of the best arm follow
// kappa' = kappa exp(c w / (1 + kappa)) with c = |A| / (|A| - 1).
const nextOdds = (kappa, nActions, w) =>
  kappa * Math.exp((nActions / (nActions - 1)) * (w / (1 + kappa)));

// Weights eta (t + 1)^-x: the weight spent, the mass outside the best arm, its upper bound (the key
// lemma) and its floor, at times that are dense on a logarithmic axis.
export function fading(exponent, eta, nActions, end) {
  const c = nActions / (nActions - 1);
  const start = 1 - 1 / nActions;
  const curves = { times: [], spent: [], mass: [], bound: [], floor: [] };
  let kappa = 1 / (nActions - 1);
  let spent = 0;
  for (let t = 0, next = 0; t <= end; t += 1) {
    if (t === next || t === end) {
      curves.times.push(t);
      curves.spent.push(spent);
      curves.mass.push(1 / (1 + kappa));
      curves.bound.push(1 / (1 / start + (c / 2) * Math.min(1, 1 / (nActions - 1)) * spent));
      curves.floor.push(start * Math.exp(-c * spent));
      next = Math.max(t + 1, Math.round(1.08 * t));
    }
    const w = eta * (t + 1) ** -exponent;
    kappa = nextOdds(kappa, nActions, w);
    spent += w;
  }
  return curves;
}

// The mass outside the best arm at weight eta, to half again as many updates as it takes to fall to
// `goal`, which is `count`, with the mass it has `reached` then; Infinity where that is more than `most`.
export function rateRun(nActions, eta, goal, most) {
  const run = { times: [], mass: [], count: Infinity };
  let kappa = 1 / (nActions - 1);
  for (let t = 0, next = 0; t <= Math.min(most, 1.5 * run.count); t += 1) {
    const mass = 1 / (1 + kappa);
    if (mass <= goal && t < run.count) [run.count, run.reached] = [t, mass];
    if (t === next) {
      run.times.push(t);
      run.mass.push(mass);
      next = Math.max(t + 1, Math.round(1.08 * t));
    }
    kappa = nextOdds(kappa, nActions, eta);
  }
  return run;
}

// ---------------------------------------------------------------------------------------------
// Mirror descent with the Tsallis entropy of index alpha, between NPG (1) and DI (2): the updates
// that undo n, with two actions a unit apart, weight w and the uniform start. No step leads beyond
// 1 / (alpha - 1). With binary fractions alpha and w the product is exact, and rounding the quotient
// can make no integer of what is none.
export const familyCount = (n, alpha, w) => Math.min(n, Math.ceil(1 / ((alpha - 1) * w)));

// ---------------------------------------------------------------------------------------------
// Linear DI on contexts, from the uniform policy, with weights first * growth^t. A linear model is
// fitted by least squares to pi + w q `before` the projection, or `after` it: the largest distance
// of a context from its best value, before each step and after the last, and what the theorem allows.
export function fittedRun({ features, rewards }, first, growth, steps, place) {
  const inputs = features.map((row) => [1, ...row]);
  const columns = inputs[0].map((_, i) => inputs.map((row) => row[i]));
  const dot = (x, y) => sum(x.map((value, i) => value * y[i]));
  const gram = columns.map((x) => columns.map((y) => dot(x, y)));
  const fitted = (targets) => {
    const slopes = targets[0].map((_, a) => {
      const target = targets.map((row) => row[a]);
      return solve(gram, columns.map((x) => dot(x, target)));
    });
    return inputs.map((row) => slopes.map((slope) => dot(row, slope)));
  };
  const distance = (policies) => Math.max(...policies.map((pi, s) => Math.max(...rewards[s]) - dot(pi, rewards[s])));
  let policies = rewards.map((row) => row.map(() => 1 / row.length));
  const gaps = [distance(policies)];
  const bounds = [gaps[0]];
  for (let t = 0; t < steps; t += 1) {
    const w = first * growth ** t;
    const wanted = policies.map((pi, s) => pi.map((chance, a) => chance + w * rewards[s][a]));
    const scores = fitted(place === "before" ? wanted : wanted.map(projectSimplex));
    const missed = scores.map((row, s) => row.map((score, a) => (score - wanted[s][a]) / w));
    policies = scores.map(projectSimplex);
    gaps.push(distance(policies));
    bounds.push(1 / w + Math.max(...missed.map((row) => Math.max(...row) - Math.min(...row))));
  }
  return { gaps, bounds };
}

// ---------------------------------------------------------------------------------------------
// Sampled values.

// A sure 1 against 5/4 plus or minus a noise of mean zero: pairs of a probability and the values.
export function lawOf(noise) {
  return [
    [0.75, [1, 1.25 * (1 - noise)]],
    [0.25, [1, 1.25 * (1 + 3 * noise)]],
  ];
}

// The next number in [0, 1) of a generator, whose state advances (mulberry32).
function uniform(generator) {
  generator.state = (generator.state + 0x6d2b79f5) >>> 0;
  let x = Math.imul(generator.state ^ (generator.state >>> 15), generator.state | 1);
  x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
  return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
}

// Numbers in [0, 1) from a seed.
export function random(seed) {
  const generator = { state: seed >>> 0 };
  return () => uniform(generator);
}

// The mean probability of the second of two actions over runs that see one sample of the values a
// step, with weights (t + 1)^-power. All updates see the same samples.
export function sampledRuns(name, law, fall, steps, runs, seed) {
  const draw = random(seed);
  const mean = Array(steps + 1).fill(0);
  for (let run = 0; run < runs; run += 1) {
    let theta = initial(name, 2);
    for (let t = 0; t <= steps; t += 1) {
      mean[t] += policy(name, theta)[1] / runs;
      const values = draw() < law[0][0] ? law[0][1] : law[1][1];
      theta = step(name, theta, values, (t + 1) ** -fall);
    }
  }
  return mean;
}

// ---------------------------------------------------------------------------------------------
// Remedies: two actions, whose values change after n steps of weight 1. The state is the log-odds of
// the first action (for DI its probability), as both parameters change by opposite amounts.

const CHANGED = {
  swap: [[1, 0], [0, 1]],
  "good turns bad": [[1, 0.5], [0, 0.5]],
  "bad turns good": [[0.5, 0], [0.5, 1]],
};

const logistic = (x) => 1 / (1 + Math.exp(-x));

// {update, entropy, penalty, estimator, reference, epochs, clip, normalised, adam, decay, critic,
// sampled, exploration}, as in pu_lib/chapters/remedies/quantities.py
function remedyStep(set, state, values) {
  const { update = "pg-sm", entropy = 0, penalty = 0, reference = 0.5, epochs = 1, clip = 0, adam = 0, decay = 0, critic = 1, exploration = 0 } = set;
  const [first, second] = update === "di" ? [state.x, 1 - state.x] : [logistic(state.x), logistic(-state.x)];
  const rates = [first, second].map((p) => (set.sampled ? critic * (exploration / 2 + (1 - exploration) * p) : critic));
  state.q = state.q.map((q, a) => q + rates[a] * (values[a] - q));
  const gap = state.q[0] - state.q[1];
  if (update === "di") state.x = Math.min(1, Math.max(0, state.x + gap / 2));
  else if (update === "npg") state.x += gap - entropy * state.x;
  else if (update === "ce") state.x += gap >= 0 ? 2 * second : -2 * first;
  else {
    const spread = set.normalised ? Math.sqrt(first * second) * Math.abs(gap) : 1;
    const [up, down] = spread > 0 ? [(second * gap) / spread, (-first * gap) / spread] : [0, 0];
    for (let k = 0; k < epochs; k += 1) {
      const [p, r] = [logistic(state.x), logistic(-state.x)];
      const kept = (c, now, old) => !clip || !((c > 0 && now > (1 + clip) * old) || (c < 0 && now < (1 - clip) * old));
      const [a, b] = [kept(up, p, first) ? p * up : 0, kept(down, r, second) ? r * down : 0];
      let slope = a * r - b * p; // of the first parameter; the second has its opposite
      slope -= entropy * p * r * state.x;
      if (penalty && set.estimator) slope -= penalty * (p - reference) * (k > 0 ? (first * r) / p + (second * p) / r : 1); // the samples are of the first epoch's policy
      else if (penalty) slope -= penalty * p * r * (state.x - Math.log(reference / (1 - reference)));
      if (!adam) state.x += 2 * slope - decay * state.x;
      else { // with decay the two parameters are not opposite: they start at log ½ and have the mean `mean`
        state.t += 1;
        state.first = averaged(state.first, slope - decay * (state.mean + state.x / 2));
        state.second = averaged(state.second, -slope - decay * (state.mean - state.x / 2));
        const [one, two] = [state.first, state.second].map(([m, v]) => (adam * m / (1 - 0.9 ** state.t)) / (Math.sqrt(v / (1 - 0.999 ** state.t)) + 1e-8));
        state.x += one - two;
        state.mean += (one + two) / 2;
      }
    }
  }
}

// Adam's averages of a gradient and of its square.
const averaged = ([m, v], slope) => [0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope * slope];

// For each n of an increasing list: the regret at the change, and the count of steps from then on
// until the new best action has one half, Infinity where that is more than `most`.
export function remedyCurve(set, ns, change, most) {
  const [before, after] = CHANGED[change];
  const direct = set.update === "di";
  const state = { x: direct ? 0.5 : 0, q: [0, 0], mean: -Math.LN2, first: [0, 0], second: [0, 0], t: 0 };
  return curve(state, ns, change, most, {
    direct,
    low: direct ? 0.5 + 1e-12 : 4e-12, // a policy within 1e-12 of one half is there
    step: (learner, values) => remedyStep(set, learner, values),
    stuck: ({ x, q }) => direct && set.sampled && !set.exploration && x === 1 && q[0] > q[1] && after[0] === before[0],
  });
}

// For each n: the regret of a learner after n steps, and how many steps after the change take its x to
// `low`; infinity if these are more than `most`, or if the learner is stuck.
function curve(learner, ns, change, most, { direct, low, step, stuck }) {
  const [before, after] = CHANGED[change];
  let made = 0;
  return ns.map((n) => {
    for (; made < n; made += 1) step(learner, before);
    const regret = (before[0] - before[1]) * (direct ? 1 - learner.x : logistic(-learner.x));
    const now = { ...learner };
    for (let count = 0; count <= most; count += 1) {
      if (now.x <= low) return { n, regret, count };
      if (stuck(now)) break;
      step(now, after);
    }
    return { n, regret, count: Infinity };
  });
}

// How many of a group of samples are the first action, whose probability is p; `other` is that of
// the second. One number is inverted.
function binomial(generator, group, p, other) {
  const rare = Math.min(p, other);
  let left = uniform(generator);
  let chance = 1;
  for (let i = 0; i < group; i += 1) chance *= 1 - rare;
  let successes = 0;
  for (; left >= chance && successes < group; successes += 1) {
    left -= chance;
    chance *= ((group - successes) / (successes + 1)) * (rare / (1 - rare));
  }
  return p <= other ? successes : group - successes;
}

// {update, group, critic, exploration, entropy, normalised, decay}: as _sampled_step of
// pu_lib/chapters/remedies/quantities.py. `rates` are those of a critic for each number of samples.
function sampledStep({ update, group, exploration, entropy, decay, normalised }, state, good, bad, rates) {
  const small = update === "di" ? 1 - state.x : Math.exp(-state.x);
  const first = update === "di" ? state.x : 1 / (1 + small);
  const second = update === "di" ? small : small * first;
  const taken = binomial(state, group, exploration / 2 + (1 - exploration) * first, exploration / 2 + (1 - exploration) * second);
  if (update === "group") {
    const both = (taken / group) * (1 - taken / group);
    state.x += 2 * (normalised ? Math.sign(good - bad) * Math.sqrt(both) : both * (good - bad)) - (2 * entropy * first * second + decay) * state.x;
    return;
  }
  state.q0 += rates[taken] * (good - state.q0);
  state.q1 += rates[group - taken] * (bad - state.q1);
  const gap = state.q0 - state.q1;
  if (update === "di") state.x = Math.min(1, Math.max(0, state.x + gap / 2));
  else if (update === "npg") state.x += gap - entropy * state.x;
  else if (update === "ce") state.x += gap === 0 ? 0 : gap > 0 ? 2 * second : -2 * first;
  else state.x += 2 * first * second * (gap - entropy * state.x) - decay * state.x;
}

// As remedyCurve, for a run with samples from a seed.
export function sampledCurve(given, ns, change, most, seed) {
  const set = { critic: 0.1, exploration: 0, entropy: 0, decay: 0, normalised: false, ...given };
  const rates = Array.from({ length: set.group + 1 }, (_, k) => 1 - (1 - set.critic) ** k);
  const [, after] = CHANGED[change];
  const direct = set.update === "di";
  const half = direct ? 0.5 : 0;
  return curve({ x: half, q0: 0, q1: 0, state: seed >>> 0 }, ns, change, most, {
    direct,
    low: half,
    step: (learner, [good, bad]) => sampledStep(set, learner, good, bad, rates),
    stuck: ({ x, q0, q1 }) => direct && !set.exploration && x === 1 && Math.min(q0, after[0]) >= q1, // only the first action is heard
  });
}

// The medians over an odd number of runs, for each n.
export function medianCurve(curves) {
  const middle = (numbers) => numbers.sort((a, b) => a - b)[(numbers.length - 1) / 2];
  return curves[0].map(({ n }, i) => ({ n, regret: middle(curves.map((curve) => curve[i].regret)), count: middle(curves.map((curve) => curve[i].count)) }));
}
