/* Read numbers from standard input, apply the engine's arithmetic, as LLVM compiled it for this
 * processor, and write the results to standard output. */
#include <stdint.h>
#include <stdio.h>

double exponential(double) __asm__(EXPONENTIAL);
double logarithm(double) __asm__(LOGARITHM);
double draw(uint64_t, uint64_t, uint64_t, uint64_t, int64_t) __asm__(DRAW);

int main(void) {
    double x, out[3];
    uint64_t w[4];
    if (fread(w, 8, 4, stdin) != 4) return 2;
    for (int64_t i = 0; fread(&x, 8, 1, stdin) == 1; i++) {
        out[0] = exponential(-x);
        out[1] = logarithm(1.0 + x);
        out[2] = draw(w[0], w[1], w[2], w[3], i % 500);
        fwrite(out, 8, 3, stdout);
    }
    return 0;
}
