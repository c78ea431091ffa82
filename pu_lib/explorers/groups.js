// Groups of samples from a policy over answers. The answers are the hack, the correct one, and some
// that always fail; the policy is a softmax, and each update is one step along the mean of
// A_i (onehot(a_i) - pi) over the samples a_i of a group with the advantages A_i.

const HACK = 0;
const CORRECT = 1;

// The advantages of the rewards of a group, as in pu_lib/chapters/reward_hack/quantities.py.
export function groupAdvantages(method, rewards) {
  const size = rewards.length;
  const mean = sum(rewards) / size;
  const top = Math.max(...rewards);
  if (top === Math.min(...rewards)) return rewards.map(() => 0);
  if (method === "best of the group") {
    const winners = rewards.filter((r) => r === top).length;
    return rewards.map((r) => (r === top ? size / winners : 0));
  }
  const spread = Math.sqrt(sum(rewards.map((r) => (r - mean) ** 2)) / (size - 1));
  const scale = { RLOO: (size - 1) / size, GRPO: spread, MaxRL: mean }[method];
  return rewards.map((r) => (r - mean) / scale);
}

// The step of the log-odds of the correct answer against the hack by one correct sample in a group
// of hacks, if the hack has nearly all the probability and is not paid.
export function sightStep(method, size, w) {
  const rewards = Array.from({ length: size }, (_, i) => (i === 0 ? 1 : 0));
  return (2 * w * groupAdvantages(method, rewards)[0]) / size;
}

// The mean number of updates until half that this step makes expect: 1/(1 - e^-s) sights, each after
// 1/(size * chance) updates.
export const expectedReturn = (method, size, w, chance) => 1 / (size * chance * -Math.expm1(-sightStep(method, size, w)));

// One run from a policy until the correct answer has one half, if the hack is paid `pays`: the update
// at which it has, or Infinity if that takes more than `most`, and the path of [update, probability
// after it, whether a sample was correct] over the updates that change the policy.
export function groupRun(method, start, pays, size, w, most, seed) {
  const draw = random(seed);
  const rewards = start.map((_, a) => (a === HACK ? pays : a === CORRECT ? 1 : 0));
  const levels = [...new Set(rewards)].map((reward) => rewards.flatMap((r, a) => (r === reward ? [a] : [])));
  const path = [];
  let pi = start;
  let theta = start.map(Math.log);
  let count = 0;
  while (pi[CORRECT] < 0.5) {
    const masses = levels.map((level) => sum(level.map((a) => pi[a])));
    // their logarithms, from the sum of the others: that of a mass near 1 loses no digits
    const logs = masses.map((_, k) => Math.log1p(-sum(masses.filter((_, j) => j !== k))));
    count += groupsThatAgree(draw, masses, logs, size) + 1;
    if (!(count <= most)) return { count: Infinity, path };
    const chosen = mixedGroup(draw, masses, logs, levels, pi, size);
    const advantages = groupAdvantages(method, chosen.map((a) => rewards[a]));
    const shift = (w * sum(advantages)) / size;
    theta = theta.map((x, a) => x - shift * pi[a]);
    chosen.forEach((a, i) => { theta[a] += (w * advantages[i]) / size; });
    pi = policy("pg-sm", theta);
    path.push([count, pi[CORRECT], chosen.includes(CORRECT)]);
  }
  return { count, path };
}

// How many groups in a row have samples of one level of reward only, which change nothing.
function groupsThatAgree(draw, masses, logs, size) {
  const likely = masses.indexOf(Math.max(...masses));
  const others = sum(masses.filter((_, k) => k !== likely).map((mass) => mass ** size));
  const mixed = -Math.expm1(size * logs[likely]) - others;
  return Math.floor(Math.log1p(-draw()) / Math.log1p(-mixed));
}

// The answers of a group whose samples are not all of one level: the level of the first, how many samples
// follow before one of another level, that level, and then any answers.
function mixedGroup(draw, masses, logs, levels, pi, size) {
  const first = pick(draw, masses.map((mass, k) => mass * -Math.expm1((size - 1) * logs[k])));
  const follow = Math.floor(Math.log1p(draw() * Math.expm1((size - 1) * logs[first])) / logs[first]);
  const other = pick(draw, masses.map((mass, k) => (k === first ? 0 : mass)));
  const within = (level) => level[pick(draw, level.map((a) => pi[a]))];
  return Array.from({ length: size }, (_, i) => {
    if (i <= follow) return within(levels[first]);
    return i === follow + 1 ? within(levels[other]) : pick(draw, pi);
  });
}

// An index with a probability proportional to its weight.
function pick(draw, weights) {
  if (weights.length === 1) return 0;
  let left = draw() * sum(weights);
  let k = 0;
  for (; k < weights.length - 1 && left >= weights[k]; k += 1) left -= weights[k];
  return k;
}
