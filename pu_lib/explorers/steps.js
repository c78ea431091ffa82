// Made by tools/translate.py from the kernels of the updates; `make steps` makes it again.

const steps = (() => {
// Math.max and Math.min differ from Python's functions for zeros of different signs.
const max = (x, y) => (y > x ? y : x);
const min = (x, y) => (y < x ? y : x);

function greedy(q, n_actions) {
  let best;
  best = 0;
  for (let a = 1; a < n_actions; a += 1) {
    if (q[a] > q[best]) {
      best = a;
    }
  }
  return best;
}

function softmax(theta, pi, n_actions) {
  let scale, top, total;
  top = theta[0];
  for (let a = 1; a < n_actions; a += 1) {
    top = max(top, theta[a]);
  }
  total = 0;
  for (let a = 0; a < n_actions; a += 1) {
    pi[a] = exponential(theta[a] - top);
    total += pi[a];
  }
  scale = 1.0 / total;
  for (let a = 0; a < n_actions; a += 1) {
    pi[a] *= scale;
  }
}

function escort(theta, pi, n_actions) {
  let scale, top, total, unit;
  top = 1.0;
  for (let a = 0; a < n_actions; a += 1) {
    top = max(top, Math.abs(theta[a]));
  }
  unit = 1.0;
  while (unit < top) {
    unit *= 2;
  }
  total = 0;
  for (let a = 0; a < n_actions; a += 1) {
    pi[a] = (theta[a] / unit) * (theta[a] / unit);
    total += pi[a];
  }
  scale = 1.0 / total;
  for (let a = 0; a < n_actions; a += 1) {
    pi[a] *= scale;
  }
}

function direct(theta, pi, n_actions) {
  for (let a = 0; a < n_actions; a += 1) {
    pi[a] = theta[a];
  }
}

function pg_sm(theta, pi, q, best, weight, n_actions) {
  let v;
  v = 0;
  for (let a = 0; a < n_actions; a += 1) {
    v += pi[a] * q[a];
  }
  for (let a = 0; a < n_actions; a += 1) {
    theta[a] += (weight * pi[a]) * (q[a] - v);
  }
}

function pg_es(theta, pi, q, best, weight, n_actions) {
  let scale, square, v;
  v = 0;
  square = 0;
  for (let a = 0; a < n_actions; a += 1) {
    v += pi[a] * q[a];
  }
  for (let a = 0; a < n_actions; a += 1) {
    square += theta[a] * theta[a];
  }
  scale = (weight * 2) / square;
  for (let a = 0; a < n_actions; a += 1) {
    theta[a] += (scale * theta[a]) * (q[a] - v);
  }
}

function di(theta, pi, q, best, weight, n_actions) {
  let largest, n_above, n_kept, threshold, top, total;
  top = q[0];
  for (let a = 1; a < n_actions; a += 1) {
    top = max(top, q[a]);
  }
  total = 0;
  for (let a = 0; a < n_actions; a += 1) {
    theta[a] += weight * (q[a] - top);
    total += theta[a];
  }
  threshold = (total - 1) / n_actions;
  n_kept = 0;
  for (let a = 0; a < n_actions; a += 1) {
    n_kept += theta[a] > threshold;
  }
  for (let _ = 0; _ < n_actions - 2; _ += 1) {
    if (n_kept == 1) {
      break;
    }
    total = 0;
    for (let a = 0; a < n_actions; a += 1) {
      total += choose(theta[a] > threshold, theta[a], 0);
    }
    threshold = max(threshold, (total - 1) / n_kept);
    n_above = 0;
    for (let a = 0; a < n_actions; a += 1) {
      n_above += theta[a] > threshold;
    }
    if (n_above == n_kept) {
      break;
    }
    n_kept = n_above;
  }
  if (n_kept == 1) {
    largest = theta[0];
    for (let a = 1; a < n_actions; a += 1) {
      largest = max(largest, theta[a]);
    }
    threshold = max(threshold, largest - 1);
  }
  for (let a = 0; a < n_actions; a += 1) {
    theta[a] = max(theta[a] - threshold, 0);
  }
}

function ce(theta, pi, q, best, weight, n_actions) {
  for (let a = 0; a < n_actions; a += 1) {
    theta[a] += weight * choose(a == best, 1 - pi[a], -pi[a]);
  }
}

function mce(theta, pi, q, best, weight, n_actions) {
  let gain, loss, missing;
  missing = 0;
  for (let a = 0; a < n_actions; a += 1) {
    missing += choose(a == best, 0, pi[a]);
  }
  gain = weight * missing;
  loss = gain / (n_actions - 1);
  for (let a = 0; a < n_actions; a += 1) {
    theta[a] += choose(a == best, gain, -loss);
  }
}

function npg(theta, pi, q, best, weight, n_actions) {
  let top;
  top = q[0];
  for (let a = 1; a < n_actions; a += 1) {
    top = max(top, q[a]);
  }
  for (let a = 0; a < n_actions; a += 1) {
    theta[a] += weight * (q[a] - top);
  }
}

function sce(theta, pi, q, best, weight, n_actions) {
  let below, divisor, gain, largest, level, level_below, likeliest, lowered, mean_gap, missing, positive, second, share, total;
  largest = pi[0];
  level = q[0];
  for (let a = 1; a < n_actions; a += 1) {
    level = choose(pi[a] > largest, q[a], level);
    largest = choose(pi[a] > largest, pi[a], largest);
  }
  mean_gap = 0;
  second = -1;
  for (let a = 0; a < n_actions; a += 1) {
    mean_gap += pi[a] * (q[a] - level);
    if ((q[a] != level) && ((second < 0) || (theta[a] > theta[second]))) {
      second = a;
    }
  }
  level_below = (mean_gap > 0) || ((mean_gap == 0) && (second >= 0) && (q[second] > level));
  missing = 0;
  total = 0;
  likeliest = best;
  for (let a = 0; a < n_actions; a += 1) {
    below = (q[a] == level) ? level_below : ((q[a] - level) < mean_gap);
    lowered = choose(below, pi[a], 0);
    missing += choose(a == best, 0, lowered);
    total += choose(a == best, pi[a], lowered);
    if (below && (theta[a] > theta[likeliest])) {
      likeliest = a;
    }
  }
  positive = total > 0;
  divisor = choose(total > 0, total, 1);
  gain = choose(positive, missing / divisor, choose(likeliest == best, 0, 1));
  for (let a = 0; a < n_actions; a += 1) {
    below = (q[a] == level) ? level_below : ((q[a] - level) < mean_gap);
    lowered = choose(below, pi[a], 0);
    share = choose(positive, lowered / divisor, choose(a == likeliest, 1, 0));
    theta[a] += weight * choose(a == best, gain, -share);
  }
}

function exponential(x) {
  let n, r, r2, value;
  x = max(x, -708.0);
  n = ((x * 92.33248261689366) + 6755399441055744.0) - 6755399441055744.0;
  r = (x - (n * 0.010830424695996044)) - (n * 2.5310172166650877e-13);
  r2 = r * r;
  value = (1.0 + r) + ((((1 / 2) + ((1 / 6) * r)) + (((1 / 24) + ((1 / 120) * r)) * r2)) * r2);
  return value * power_of_two(n);
}

function choose(condition, one, other) {
  return condition ? one : other;
}

function power_of_two(n) {
  let bit, power, root;
  n += 65408;
  power = 2.2250738585072014e-308;
  root = 1.3407807929942597e+154;
  bit = 32768.0;
  while (bit >= 1) {
    if (n >= bit) {
      power *= root;
      n -= bit;
    }
    root = Math.sqrt(root);
    bit /= 2;
  }
  return power;
}

return {
  greedy,
  policies: { softmax, escort, direct },
  updates: {
    "pg-sm": { kernel: pg_sm, parametrization: "softmax" },
    "pg-es": { kernel: pg_es, parametrization: "escort" },
    "di": { kernel: di, parametrization: "direct" },
    "ce": { kernel: ce, parametrization: "softmax" },
    "mce": { kernel: mce, parametrization: "softmax" },
    "npg": { kernel: npg, parametrization: "softmax" },
    "sce": { kernel: sce, parametrization: "softmax" },
  },
};
})();
