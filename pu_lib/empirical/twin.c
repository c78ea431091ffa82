/* The loop of pu_lib.empirical.jekyll_hyde with the paper's options, in C, for the benchmark.
 *
 * Compiled by pu_lib.empirical.bench with -O3 -march=native -ffp-contract=off and -D of
 * KERNEL_<name of a kernel>, POLICY_<parametrization>, A (actions), K (successors) and CODE (the
 * type that numbers transitions). The kernels are written here a second time, on purpose: a test
 * and the benchmark hold both loops to the same bits. It draws the same random numbers and rounds in the same places, so
 * that it ends after the same number of steps with the same parameters.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct { uint64_t w[4]; } stream;

static inline double draw(stream *r) {
    uint64_t *w = r->w, sum = w[0] + w[3];
    uint64_t word = ((sum << 23) | (sum >> 41)) + w[0], shifted = w[1] << 17;
    w[2] ^= w[0]; w[3] ^= w[1]; w[1] ^= w[2]; w[0] ^= w[3];
    w[2] ^= shifted; w[3] = (w[3] << 45) | (w[3] >> 19);
    return (double)(int64_t)(word >> 11) * 0x1p-53;
}

static double powers[64];

static void fill_powers(void) {
    double root = 2.0;
    for (int j = 0; j < 64; j++) powers[j] = 1.0;
    for (int bit = 32; bit; bit >>= 1) {
        root = sqrt(root);
        for (int j = 0; j < 64; j++) if (j & bit) powers[j] *= root;
    }
}

static inline double exponential(double x) {
    if (x < -708.0) x = -708.0;
    double rounded = x * 92.33248261689366 + 6755399441055744.0;
    int64_t n; memcpy(&n, &rounded, 8); n -= 0x4338000000000000;
    double count = rounded - 6755399441055744.0;
    double r = (x - count * 0.010830424695996044) - count * 2.5310172166650877e-13, r2 = r * r;
    double value = (1.0 + r) + ((1.0 / 2 + 1.0 / 6 * r) + (1.0 / 24 + 1.0 / 120 * r) * r2) * r2;
    int64_t bits = (int64_t)((uint64_t)(n >> 6) << 52) + ((int64_t)1023 << 52);
    double scale; memcpy(&scale, &bits, 8);
    return value * powers[n & 63] * scale;
}

static inline double largest(const double *x) {
    double top = x[0];
    for (int a = 1; a < A; a++) top = x[a] > top ? x[a] : top;
    return top;
}

static inline void set_policy(double *theta, double *pi) {
#if defined POLICY_escort
    double total = 0.0;
    for (int a = 0; a < A; a++) total += theta[a] * theta[a];
    double scale = 1.0 / total;
    for (int a = 0; a < A; a++) pi[a] = theta[a] * theta[a] * scale;
#elif defined POLICY_direct
    for (int a = 0; a < A; a++) pi[a] = theta[a];
#elif defined POLICY_softmax
    double top = largest(theta), total = 0.0, e[A];
    for (int a = 0; a < A; a++) e[a] = exponential(theta[a] - top);
    for (int a = 0; a < A; a++) total += e[a];
    double scale = 1.0 / total;
    for (int a = 0; a < A; a++) pi[a] = e[a] * scale;
#endif
}

#if defined KERNEL_pg_es_drop
/* Keep the mantissas m of parameters m 2^(-256 e) clear of the smallest numbers. */
static inline void rescale(double *theta, int64_t *exponent) {
    int due = 0;
    for (int a = 0; a < A; a++) {
        double size = fabs(theta[a]);
        due |= (size < 0x1p-480) | ((exponent[a] > 0) & (size >= 0x1p-120));
    }
    if (due) for (int a = 0; a < A; a++) {
        double size = fabs(theta[a]);
        if (size > 0.0 && size < 0x1p-480) { theta[a] *= 0x1p256; exponent[a]++; }
        else if (size >= 0x1p-120 && exponent[a] > 0) { theta[a] *= 0x1p-256; exponent[a]--; }
    }
}
#endif

static inline void update(double *theta, int64_t *exponent, double *pi, const double *q, double weight) {
#if defined KERNEL_pg_sm || defined KERNEL_pg_es_drop
    double v = 0.0;
    for (int a = 0; a < A; a++) v += pi[a] * q[a];
#endif
#if defined KERNEL_pg_sm
    for (int a = 0; a < A; a++) theta[a] += weight * pi[a] * (q[a] - v);
#elif defined KERNEL_pg_es_drop
    double square = 0.0;
    for (int a = 0; a < A; a++) square += theta[a] * theta[a];
    double scale = weight / sqrt(square);
    for (int a = 0; a < A; a++) theta[a] += scale * theta[a] * (q[a] - v);
    rescale(theta, exponent);
#elif defined KERNEL_di
    double top = largest(q), total = 0.0, threshold;
    for (int a = 0; a < A; a++) { theta[a] += weight * (q[a] - top); total += theta[a]; }
    threshold = (total - 1.0) / A;
    for (int kept = A;;) {
        int count = 0;
        total = 0.0;
        for (int a = 0; a < A; a++) {
            int above = theta[a] > threshold;
            count += above;
            total += above ? theta[a] : 0.0;
        }
        if (count == kept) break;
        kept = count;
        threshold = fmax(threshold, (total - 1.0) / count);
    }
    for (int a = 0; a < A; a++) theta[a] = fmax(theta[a] - threshold, 0.0);
#else
    double top = largest(q);
    int best = 0;
    for (int a = A - 1; a >= 0; a--) best = q[a] == top ? a : best;
#if defined KERNEL_ce
    for (int a = 0; a < A; a++) theta[a] += weight * ((a == best ? 1.0 : 0.0) - pi[a]);
#elif defined KERNEL_mce
    double missing = 0.0;
    for (int a = 0; a < A; a++) missing += a == best ? 0.0 : pi[a];
    double gain = weight * missing, loss = gain / (A - 1);
    for (int a = 0; a < A; a++) theta[a] += a == best ? gain : -loss;
#endif
#endif
    set_policy(theta, pi);
}

/* Run `steps` steps without evaluations; theta, q and the rest are set up by the caller. */
int64_t run(int64_t steps, const double *cumulative, const uint16_t *successor,
            const double *reward, const uint8_t *terminal, double eta, double gamma, int explores,
            double off_c, int off_alpha, double epsilon_c, int64_t cut, uint64_t *seeds,
            double *theta, int64_t *exponent, double *pi, double *running, double *q, double *hyde, int64_t *visits,
            double *bonus, CODE *buffer, int64_t start) {
    stream r;
    memcpy(r.w, seeds, sizeof r.w);
    fill_powers();
    int64_t s = start, jekyll = 0, hydes = 0, last = steps - 1, episodes = 0, length = 0;
    int hyde_acts = 0;
    for (int64_t t = 1; t <= steps; t++) {
        double u = draw(&r);
        int64_t a = 0, k = 0;
        if (hyde_acts) {
            const double *row = hyde + s * A;
            double top = largest(row);
            int ties = 0;
            for (int b = 0; b < A; b++) ties += row[b] == top;
            int64_t n = (int64_t)(u * ties);
            for (int b = A - 1, left = ties - 1; b >= 0; b--)
                if (row[b] == top && left-- == n) a = b;
        } else {
            for (int b = 0; b < A - 1; b++) a += u >= running[s * A + b];
        }
        int64_t i = s * A + a;
        if (K > 1) {
            u = draw(&r);
            for (int j = 0; j < K - 1; j++) k += u >= cumulative[i * K + j];
        }
        int64_t code = i * K + k, entered = successor[code];
        if (hyde_acts) buffer[last - hydes++] = (CODE)code;
        else buffer[jekyll++] = (CODE)code;
        if (explores) {
            visits[i]++;
            bonus[i] = 1.0 / sqrt((double)visits[i]);
        }
        int from_hyde = 0;
        if (explores) {
            double o = off_alpha ? off_c / sqrt((double)t) : off_c;
            u = draw(&r);
            from_hyde = hydes > 0 && u < fmin(1.0, o);
        }
        u = draw(&r);
        int64_t place = (int64_t)(u * (double)(from_hyde ? hydes : jekyll));
        code = buffer[from_hyde ? last - place : place];
        i = code / K;
        int64_t x = i / A, after = successor[code];
        if (explores) {
            double top = largest(hyde + after * A);
            hyde[i] += 0.1 * (bonus[i] + gamma * top - hyde[i]);
        }
        u = draw(&r);
        int64_t b = 0;
        for (int j = 0; j < A - 1; j++) b += u >= running[after * A + j];
        q[i] += 0.1 * (reward[code] + gamma * q[after * A + b] - q[i]);
        update(theta + x * A, exponent + x * A, pi + x * A, q + x * A, eta);
        double total = 0.0;
        for (int j = 0; j < A; j++) running[x * A + j] = total += pi[x * A + j];
        s = entered;
        length++;
        if (terminal[s] || length == cut) {
            episodes++;
            length = 0;
            s = start;
            if (explores) {
                u = draw(&r);
                hyde_acts = u < fmin(1.0, epsilon_c / sqrt((double)t));
            }
        }
    }
    return episodes;
}
