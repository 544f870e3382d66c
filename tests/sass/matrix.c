/* SPDX-License-Identifier: Apache-2.0 */
/* Products by the tensor units: D = A B + C, sums in float. Lane l holds of C rows l / 4 and l / 4 + 8, columns
   2 (l % 4), + 1; A and B are laid out as PTX's mma.sync says. */
#include "tests/sass/handlers.h"
#include <immintrin.h>

enum { ROWS = 16, COLUMNS = 8, MOST_DEPTH = 16 };

typedef float row8 __attribute__((vector_size(32)));

struct product {
    float a[ROWS][MOST_DEPTH];
    row8 b[MOST_DEPTH];
    row8 c[ROWS];
};

static float half_at(uint32_t word, bool high, bool bf16)
{
    const uint32_t bits = high ? word >> 16 : word & 0xffff;
    float x;
    if (!bf16)
        return _cvtsh_ss((uint16_t)bits);
    memcpy(&x, &(uint32_t){bits << 16}, sizeof x);
    return x;
}

/* Operands are 19 bits: the unit does not look at the others. */
static float tf32_at(uint32_t word)
{
    float x;
    memcpy(&x, &(uint32_t){word & 0xffffe000u}, sizeof x);
    return x;
}

static void multiply(struct product *p, uint32_t depth)
{
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t k = 0; k < depth; k++)
            p->c[r] += p->a[r][k] * p->b[k];
}

static void read_sums(const struct warp *w, const struct operand *o, struct product *p)
{
    for (uint32_t k = 0; k < 4; k++) {
        const union each x = {register_at(w, o->index, k)};
        FOR_LANES p->c[l / 4 + k / 2 * 8][l % 4 * 2 + k % 2] = x.real[l];
    }
}

static void put_sums(struct warp *w, const struct operand *o, const struct product *p)
{
    for (uint32_t k = 0; k < 4; k++) {
        union each x;
        FOR_LANES x.real[l] = p->c[l / 4 + k / 2 * 8][l % 4 * 2 + k % 2];
        put_register(w, o->index + k, x.all, ALL_LANES);
    }
}

/* HMMA.16816.F32[.BF16] D, A, B, C: 16-bit halves. */
void run_mma_16816(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const bool bf16 = has(i, MODIFIER_BF16);
    struct product p;
    if (mask != ALL_LANES)
        fault(w, "HMMA by some lanes of the warp only");
    for (uint32_t k = 0; k < 4; k++) {
        const union each a = {register_at(w, i->op[1].index, k)};
        FOR_LANES for (uint32_t x = 0; x < 2; x++)
            p.a[l / 4 + k % 2 * 8][l % 4 * 2 + x + k / 2 * 8] = half_at(a.lane[l], x, bf16);
    }
    for (uint32_t k = 0; k < 2; k++) {
        const union each b = {register_at(w, i->op[2].index, k)};
        FOR_LANES for (uint32_t x = 0; x < 2; x++) p.b[l % 4 * 2 + x + 8 * k][l / 4] =
            half_at(b.lane[l], x, bf16);
    }
    read_sums(w, &i->op[3], &p);
    multiply(&p, 16);
    put_sums(w, &i->op[0], &p);
}

/* HMMA.1688.F32.TF32 D, A, B, C. */
void run_mma_1688(struct warp *w, const struct instruction *i, uint32_t mask)
{
    struct product p;
    if (mask != ALL_LANES || !has(i, MODIFIER_TF32))
        fault(w, "HMMA.1688 by some lanes of the warp only, or of another type than TF32");
    for (uint32_t k = 0; k < 4; k++) {
        const union each a = {register_at(w, i->op[1].index, k)};
        FOR_LANES p.a[l / 4 + k % 2 * 8][l % 4 + k / 2 * 4] = tf32_at(a.lane[l]);
    }
    for (uint32_t k = 0; k < 2; k++) {
        const union each b = {register_at(w, i->op[2].index, k)};
        FOR_LANES p.b[l % 4 + 4 * k][l / 4] = tf32_at(b.lane[l]);
    }
    read_sums(w, &i->op[3], &p);
    multiply(&p, 8);
    put_sums(w, &i->op[0], &p);
}
