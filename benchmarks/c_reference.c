/* The loop of pu_lib.engine.loop with the paper's options in C, the baseline of the benchmark.
 *
 * The code is optimised for speed and does not follow the engine line by line. The exponentials of
 * three or four actions are computed in parallel; two actions need only one. The projection has a
 * fast path for the two cases of nearly every step: no action is dropped, or all but one are. The
 * replayed buffer is selected without a branch. Whether a branch on the greedy action pays off
 * depends on the branch prediction of the processor, so BRANCH selects it. The kernels are
 * duplicated on purpose: a test and the benchmark compare both loops bit for bit. The loop draws the
 * same random numbers and rounds in the same places as the engine.
 *
 * c_reference.py defines these macros: KERNEL_<name of a kernel>, POLICY_<parametrization>, A
 * (number of actions, 2 to 4), K (number of successors) and CODE (integer type of the transitions).
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#if A > 2 && defined __AVX2__
#include <immintrin.h>
#define VECTORS (A == 4) /* whether the row of a state is one SIMD vector */
#endif

#define INLINE static inline __attribute__((always_inline))

INLINE double larger(double x, double y) { return x > y ? x : y; }

INLINE double sum(const double *x) {
    double total = x[0] + x[1];
    if (A > 2) total += x[2];
    if (A > 3) total += x[3];
    return total;
}

INLINE double sum_of_products(const double *x, const double *y) {
    double total = x[0] * y[0] + x[1] * y[1];
    if (A > 2) total += x[2] * y[2];
    if (A > 3) total += x[3] * y[3];
    return total;
}

INLINE double largest(const double *x) {
    double top = larger(x[1], x[0]);
    if (A == 3) top = larger(x[2], top);
    if (A == 4) top = larger(larger(x[3], x[2]), top);
    return top;
}

/* Return the action whose subinterval of [0, 1) contains u. */
INLINE uint64_t action_at(double u, const double *running) {
#if VECTORS
    __m256d reached = _mm256_cmp_pd(_mm256_set1_pd(u), _mm256_loadu_pd(running), _CMP_GE_OQ);
    return __builtin_popcount(_mm256_movemask_pd(reached) & 7);
#endif
    uint64_t a = u >= running[0];
    if (A > 2) a += u >= running[1];
    if (A > 3) a += u >= running[2];
    return a;
}

/* xoshiro256++ */
typedef struct { uint64_t a, b, c, d; } stream;

INLINE double draw(stream *w) {
    uint64_t sum = w->a + w->d, word = ((sum << 23) | (sum >> 41)) + w->a, shifted = w->b << 17;
    w->c ^= w->a; w->d ^= w->b; w->b ^= w->c; w->a ^= w->d;
    w->c ^= shifted; w->d = (w->d << 45) | (w->d >> 19);
    return (double)(int64_t)(word >> 11) * 0x1p-53;
}

/* The bits of 2^(j/64) minus those that n << 46 adds for n = 64 k + j. */
static uint64_t powers[64];

static void fill_powers(void) {
    double root = 2.0, power[64];
    for (int j = 0; j < 64; j++) power[j] = 1.0;
    for (int bit = 32; bit; bit >>= 1) {
        root = sqrt(root);
        for (int j = 0; j < 64; j++) if (j & bit) power[j] *= root;
    }
    memcpy(powers, power, sizeof powers);
    for (int j = 0; j < 64; j++) powers[j] -= (uint64_t)j << 46;
}

#define EXPONENTIAL(type, integers, look_up) \
    type rounded = x * 92.33248261689366 + 6755399441055744.0; \
    integers n; memcpy(&n, &rounded, sizeof n); \
    type count = rounded - 6755399441055744.0; \
    type r = (x - count * 0.010830424695996044) - count * 2.5310172166650877e-13, r2 = r * r; \
    type value = (1.0 + r) + ((1.0 / 2 + 1.0 / 6 * r) + (1.0 / 24 + 1.0 / 120 * r) * r2) * r2; \
    integers scale = look_up + (n << 46); \
    type power; memcpy(&power, &scale, sizeof power); \
    return value * power;

#if A == 2
INLINE double exponential(double x) {
    x = larger(x, -708.0);
    EXPONENTIAL(double, uint64_t, powers[n & 63])
}
#else
typedef double four __attribute__((vector_size(32)));
typedef int64_t integers __attribute__((vector_size(32)));
typedef uint64_t words __attribute__((vector_size(32)));

/* Compute four exponentials in parallel. */
INLINE four exponentials(four x) {
    const four low = {-708.0, -708.0, -708.0, -708.0};
#if defined __AVX2__
    x = (four)_mm256_max_pd((__m256d)low, (__m256d)x);
#else
    integers below = x < low;
    x = (four)((below & (integers)low) | (~below & (integers)x));
#endif
    EXPONENTIAL(four, words,
                ((words){powers[n[0] & 63], powers[n[1] & 63], powers[n[2] & 63], powers[n[3] & 63]}))
}
#endif

INLINE void set_policy(const double *theta, double *pi) {
#if defined POLICY_direct
    for (int a = 0; a < A; a++) pi[a] = theta[a];
#elif defined POLICY_escort
    double square[A];
    for (int a = 0; a < A; a++) square[a] = theta[a] * theta[a];
    double scale = 1.0 / sum(square);
    for (int a = 0; a < A; a++) pi[a] = square[a] * scale;
#elif A == 2
    /* One exponential suffices, because that of the larger parameter is 1. */
    double difference = theta[0] - theta[1], small = exponential(-fabs(difference));
    double large_share = 1.0 / (1.0 + small), small_share = small * large_share;
    pi[0] = difference >= 0.0 ? large_share : small_share;
    pi[1] = difference >= 0.0 ? small_share : large_share;
#else
    double top = largest(theta);
    four x = {theta[0], theta[1], theta[2], A == 4 ? theta[A - 1] : top};
    four e = exponentials(x - top);
    double total = (e[0] + e[1]) + e[2];
    if (A == 4) total += e[3];
    e *= 1.0 / total;
#if A == 4
    memcpy(pi, &e, sizeof e);
#else
    for (int a = 0; a < A; a++) pi[a] = e[a];
#endif
#endif
}

#if defined KERNEL_di
/* Michelot's projection: drop entries that are not above the threshold until none is dropped. */
INLINE void project(double *x) {
    double threshold = (sum(x) - 1.0) / A;
    int kept = 0;
    for (int a = 0; a < A; a++) kept += x[a] > threshold;
    if (kept == 1) {
        threshold = larger(largest(x) - 1.0, threshold);
    } else for (int again = 2; again < A; again++) { /* an iteration without effect is cheaper than a test */
        double above[A];
        for (int a = 0; a < A; a++) above[a] = x[a] > threshold ? x[a] : 0.0;
        threshold = larger((sum(above) - 1.0) / kept, threshold);
        kept = 0;
        for (int a = 0; a < A; a++) kept += x[a] > threshold;
        if (kept == 1) threshold = larger(largest(x) - 1.0, threshold);
    }
    for (int a = 0; a < A; a++) x[a] = larger(x[a] - threshold, 0.0);
}
#endif

#if defined KERNEL_pg_es_drop
/* Keep the mantissas m of the parameters m 2^(-256 e) away from the smallest numbers. */
INLINE void rescale(double *theta, int64_t *exponent) {
    int due = 0;
    for (int a = 0; a < A; a++) {
        double size = fabs(theta[a]);
        due |= (size < 0x1p-480) | ((exponent[a] > 0) & (size >= 0x1p-120));
    }
    if (__builtin_expect(due, 0)) for (int a = 0; a < A; a++) {
        double size = fabs(theta[a]);
        if (size > 0.0 && size < 0x1p-480) { theta[a] *= 0x1p256; exponent[a]++; }
        else if (size >= 0x1p-120 && exponent[a] > 0) { theta[a] *= 0x1p-256; exponent[a]--; }
    }
}
#endif

#if defined KERNEL_sce
/* Masked cross-entropy: only the greedy action and actions with a negative advantage move. Gaps are
 * relative to the most probable action, whose own term is then exactly zero. If probabilities
 * underflow, the action with the largest parameter decides, as in the kernel. */
INLINE void masked_step(double *theta, const double *pi, const double *q, double weight, int best) {
    int certain = 0, rival = -1, likeliest = best, below[A];
    for (int a = 1; a < A; a++) if (pi[a] > pi[certain]) certain = a;
    const double level = q[certain];
    double gap[A], mean_gap, part[A], others[A];
    for (int a = 0; a < A; a++) {
        gap[a] = q[a] - level;
        if (q[a] != level && (rival < 0 || theta[a] > theta[rival])) rival = a;
    }
    mean_gap = sum_of_products(pi, gap);
    int level_below = mean_gap > 0.0 || (mean_gap == 0.0 && rival >= 0 && q[rival] > level);
    for (int a = 0; a < A; a++) {
        below[a] = q[a] == level ? level_below : gap[a] < mean_gap;
        part[a] = below[a] || a == best ? pi[a] : 0.0;
        others[a] = a == best ? 0.0 : part[a];
        if (below[a] && theta[a] > theta[likeliest]) likeliest = a;
    }
    double all = sum(part), rest = sum(others);
    for (int a = 0; a < A; a++) {
        double share = all > 0.0 ? others[a] / all : a == likeliest;
        double gain = all > 0.0 ? rest / all : likeliest != best;
        theta[a] += weight * (a == best ? gain : -share);
    }
}
#endif

#if defined KERNEL_ce || defined KERNEL_mce
/* One for the greedy action and zero for the others: factors that replace branches. */
static const double one_hot[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};

INLINE void towards(double *theta, const double *pi, const double *greedy, double weight) {
#if defined KERNEL_ce
    for (int a = 0; a < A; a++) theta[a] += weight * (greedy[a] - pi[a]);
#else
    double others[A];
    for (int a = 0; a < A; a++) others[a] = (1.0 - greedy[a]) * pi[a];
    double gain = weight * sum(others), loss = gain / (A - 1);
    for (int a = 0; a < A; a++) theta[a] += greedy[a] * gain - (1.0 - greedy[a]) * loss;
#endif
}
#endif

INLINE void improve(double *theta, int64_t *exponent, const double *pi, const double *q, double weight) {
    (void)exponent; (void)pi;
#if defined KERNEL_pg_sm
    double v = sum_of_products(pi, q);
    for (int a = 0; a < A; a++) theta[a] += weight * pi[a] * (q[a] - v);
#elif defined KERNEL_pg_es_drop
    double v = sum_of_products(pi, q), factor = weight / sqrt(sum_of_products(theta, theta));
    for (int a = 0; a < A; a++) theta[a] += factor * theta[a] * (q[a] - v);
    rescale(theta, exponent);
#elif defined KERNEL_di || defined KERNEL_npg
    double top = largest(q);
    for (int a = 0; a < A; a++) theta[a] += weight * (q[a] - top);
#if defined KERNEL_di
    project(theta);
#endif
#elif defined KERNEL_sce
    double top = largest(q);
    int best = 0;
    while (q[best] != top) best++;
    masked_step(theta, pi, q, weight, best);
#elif BRANCH
    double top = largest(q);
    if (q[0] == top) towards(theta, pi, one_hot[0], weight);
    else if (q[1] == top) towards(theta, pi, one_hot[1], weight);
    else if (A == 3 || (A > 3 && q[2] == top)) towards(theta, pi, one_hot[2], weight);
    else towards(theta, pi, one_hot[3], weight);
#else
    double top = largest(q);
    int64_t best = A - 1;
    for (int64_t a = A - 2; a >= 0; a--) best ^= (best ^ a) & -(int64_t)(q[a] == top);
    towards(theta, pi, one_hot[best], weight);
#endif
}

#if VECTORS
INLINE four load(const double *x) { four row; memcpy(&row, x, sizeof row); return row; }
INLINE void store(double *x, four row) { memcpy(x, &row, sizeof row); }
INLINE four each(double x) { return (four){x, x, x, x}; }
INLINE double total(four x) { return ((x[0] + x[1]) + x[2]) + x[3]; }
INLINE four pick(integers m, four one, four other) {
    return (four)_mm256_blendv_pd((__m256d)other, (__m256d)one, (__m256d)m);
}
INLINE four highest(four x) {
    __m256d halves = _mm256_max_pd((__m256d)x, _mm256_permute4x64_pd((__m256d)x, 0x4e));
    return (four)_mm256_max_pd(halves, _mm256_permute_pd(halves, 5));
}
INLINE int marks(integers m) { return _mm256_movemask_pd((__m256d)m); }

INLINE four projected(four x) {
    double threshold = (total(x) - 1.0) / 4;
    int above = marks(x > threshold), kept = __builtin_popcount(above);
    if (kept == 1) {
        threshold = larger(highest(x)[0] - 1.0, threshold);
    } else if (kept < 4) for (;;) {
        threshold = larger((total(pick(x > threshold, x, each(0.0))) - 1.0) / kept, threshold);
        int left = __builtin_popcount(marks(x > threshold));
        if (left == kept) break;
        kept = left;
    }
    return (four)_mm256_max_pd((__m256d)(x - threshold), (__m256d)each(0.0));
}

INLINE four improved(four theta, four pi, four q, double weight, int64_t *exponent) {
    (void)pi; (void)exponent;
#if defined KERNEL_pg_sm
    return theta + weight * pi * (q - total(pi * q));
#elif defined KERNEL_pg_es_drop
    theta += weight / sqrt(total(theta * theta)) * theta * (q - total(pi * q));
    four size = (four)((integers)theta & INT64_MAX);
    integers e; memcpy(&e, exponent, sizeof e);
    if (__builtin_expect(marks((size < 0x1p-480) | ((e > 0) & (size >= 0x1p-120))), 0)) {
        double row[4];
        store(row, theta);
        rescale(row, exponent);
        theta = load(row);
    }
    return theta;
#elif defined KERNEL_npg
    return theta + weight * (q - highest(q));
#elif defined KERNEL_di
    return projected(theta + weight * (q - highest(q)));
#elif defined KERNEL_sce
    double row[4], shares[4], values[4];
    store(row, theta);
    store(shares, pi);
    store(values, q);
    masked_step(row, shares, values, weight, __builtin_ctz(marks(q == highest(q))));
    return load(row);
#else
    const integers places = {0, 1, 2, 3};
    integers greedy = places == (int64_t)__builtin_ctz(marks(q == highest(q)));
#if defined KERNEL_ce
    return theta + weight * (pick(greedy, each(1.0), each(0.0)) - pi);
#else
    double gain = weight * total(pick(greedy, each(0.0), pi)), loss = gain / 3;
    return theta + pick(greedy, each(gain), each(-loss));
#endif
#endif
}

INLINE four policy_of(four theta) {
#if defined POLICY_direct
    return theta;
#else
#if defined POLICY_escort
    four share = theta * theta;
#else
    four share = exponentials(theta - highest(theta));
#endif
    return share * (1.0 / total(share));
#endif
}
#endif

/* Run `steps` steps without evaluations. The caller initialises theta, q and the other arrays. */
int64_t run(int64_t steps, const double *cumulative, const uint16_t *successor,
            const double *reward, const uint8_t *restrict terminal, double eta, double gamma,
            int explores, double off_c, int off_alpha, double epsilon_c, int64_t cut,
            const uint64_t *seeds, double *restrict theta, int64_t *restrict exponent,
            double *restrict pi, double *restrict running, double *restrict q,
            double *restrict hyde, int64_t *restrict visits, double *restrict bonus, CODE *restrict buffer,
            int64_t start) {
    stream r = {seeds[0], seeds[1], seeds[2], seeds[3]};
    fill_powers();
    uint64_t s = start;
    int64_t jekyll = 0, hydes = 0, episodes = 0, length = 0;
    int hyde_acts = 0;
    for (int64_t t = 1; t <= steps; t++) {
        /* Act and store the transition */
        double u = draw(&r);
        uint64_t a = 0, k = 0;
        if (hyde_acts) {
            const double *row = hyde + s * A;
            double top = row[0];
            int64_t ties = 0;
            for (int b = 1; b < A; b++) top = larger(row[b], top);
            for (int b = 0; b < A; b++) ties += row[b] == top;
            int64_t n = (int64_t)(u * (double)ties);
            for (int b = A - 1, left = ties - 1; b >= 0; b--) {
                int best = row[b] == top;
                a = best & (left == n) ? (uint64_t)b : a;
                left -= best;
            }
        } else {
            a = action_at(u, running + s * A);
        }
        uint64_t i = s * A + a;
        if (K > 1) {
            u = draw(&r);
            for (int j = 0; j < K - 1; j++) k += u >= cumulative[i * K + j];
        }
        uint64_t code = i * K + k, entered = successor[code];
        buffer[hyde_acts ? steps - 1 - hydes : jekyll] = (CODE)code;
        hydes += hyde_acts;
        jekyll += 1 - hyde_acts;

        /* Replay */
        int64_t from_hyde = 0;
        if (explores) {
            bonus[i] = 1.0 / sqrt((double)++visits[i]);
            u = draw(&r);
            double share = off_alpha ? off_c / sqrt((double)t) : off_c;
            from_hyde = -(int64_t)((hydes > 0) & (u < (share < 1.0 ? share : 1.0)));
        }
        u = draw(&r);
        int64_t place = (int64_t)(u * (double)(jekyll ^ ((jekyll ^ hydes) & from_hyde)));
        code = buffer[(place ^ from_hyde) + (steps & from_hyde)];
        uint64_t pair = code / K, x = pair / A * A, after = (uint64_t)successor[code] * A;

        /* Learn */
        if (explores) {
            const double *values = hyde + after;
            double top = larger(values[1], values[0]);
            for (int b = 2; b < A; b++) top = larger(values[b], top);
            hyde[pair] += 0.1 * (bonus[pair] + gamma * top - hyde[pair]);
        }
        u = draw(&r);
        double ahead = q[after + action_at(u, running + after)];
        double new_value = q[pair] + 0.1 * (reward[code] + gamma * ahead - q[pair]);
#if VECTORS
        const integers places = {0, 1, 2, 3};
        four values = pick(places == (int64_t)(pair & 3), each(new_value), load(q + x));
        store(q + x, values);
        four new = improved(load(theta + x), load(pi + x), values, eta, exponent + x);
        store(theta + x, new);
        new = policy_of(new);
        store(pi + x, new);
        double first = new[0], second = first + new[1], third = second + new[2];
        store(running + x, (four){first, second, third, third + new[3]});
#else
        q[pair] = new_value;
        double old[A], new[A], values[A];
        for (int b = 0; b < A; b++) { old[b] = pi[x + b]; new[b] = theta[x + b]; values[b] = q[x + b]; }
        improve(new, exponent + x, old, values, eta);
        for (int b = 0; b < A; b++) theta[x + b] = new[b];
        set_policy(new, old);
        for (int b = 0; b < A; b++) pi[x + b] = old[b];
        running[x] = old[0];
        running[x + 1] = old[0] + old[1];
        for (int b = 2; b < A; b++) running[x + b] = running[x + b - 1] + old[b];
#endif

        /* End the trajectory */
        s = entered;
        length++;
        if (__builtin_expect(terminal[s] | (length == cut), 0)) {
            episodes++;
            length = 0;
            s = start;
            if (explores) {
                double epsilon = epsilon_c / sqrt((double)t);
                u = draw(&r);
                hyde_acts = u < (epsilon < 1.0 ? epsilon : 1.0);
            }
        }
    }
    return episodes;
}
