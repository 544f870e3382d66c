/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a warpgroup (HGMMA): D [64 x n] = A [64 x 16] B + D. Each warp computes its own 16 rows, when it waits for
   them or at once. Between issue and wait other instructions must not use the sums or write the first operand. */
#include "tests/sass/handlers.h"
#include "tests/sass/hopper/hopper.h"
#include "tests/sass/hopper/operands.h"
#include <immintrin.h>
#include <stdlib.h>

enum { MAX_PRODUCTS = 64, WARPGROUP_ROWS = 64, READ = 1, WRITTEN = 2 };

/* Sums of the last product, row by row: the next one mostly adds to them. */
struct sums {
    float at[ROWS][MAX_COLUMNS];
    uint32_t first, columns; /* register; 0 columns: none */
};

struct products {
    struct product product[MAX_PRODUCTS];
    uint32_t count, groups;          /* in flight; committed so far */
    uint8_t sums_of[256], used[256]; /* registers: how many products in flight */
    uint8_t touched[256]; /* READ, WRITTEN by others since the last WARPGROUP.ARRIVE */
    struct sums sums;
    float a[ROWS][DEPTH];
};

static struct products *products_of(struct warp *w)
{
    struct hopper_warp *own = hopper_of(w);
    if (!own->products) {
        own->products = aligned_alloc(64, (sizeof *own->products + 63) / 64 * 64);
        memset(own->products, 0, sizeof *own->products);
        memset(own->products->touched, WRITTEN, sizeof own->products->touched);
    }
    return own->products;
}

void products_destroy(struct products *p)
{
    free(p);
}

bool products_pending(const struct hopper_warp *own)
{
    return own->products && own->products->count;
}

static uint32_t columns_of(const struct instruction *i)
{
    return i->bytes * 8u;
}

static const struct operand *sums_in(const struct instruction *i)
{
    return &i->op[i->op[1].kind == OPERAND_REGISTER ? 3 : 2];
}

static const struct operand *descriptor_of(const struct instruction *i)
{
    return &i->op[i->op[1].kind == OPERAND_REGISTER ? 2 : 1];
}

/* ---- sums ---- */

/* Lane 4 g + q holds of register 4 j + 2 h + e row g + 8 h, column 8 j + 2 q + e. */
static void load_sums(const struct warp *w, struct sums *s, uint32_t first, uint32_t columns)
{
    for (uint32_t k = 0; k < columns / 2; k++) {
        const union each x = {w->r[first + k]};
        float *to = &s->at[k / 2 % 2 * 8][k / 4 * 8 + k % 2];
        FOR_LANES to[l / 4 * MAX_COLUMNS + l % 4 * 2] = x.real[l];
    }
}

static void store_sums(struct warp *w, struct sums *s)
{
    for (uint32_t k = 0; k < s->columns / 2; k++) {
        union each x;
        const float *from = &s->at[k / 2 % 2 * 8][k / 4 * 8 + k % 2];
        FOR_LANES x.real[l] = from[l / 4 * MAX_COLUMNS + l % 4 * 2];
        w->r[s->first + k] = x.all;
    }
    s->columns = 0;
}

/* The product's sums as they are before it. */
static struct sums *take_sums(struct warp *w, struct products *all, const struct product *p)
{
    struct sums *s = &all->sums;
    const uint32_t first = p->i->op[0].index, columns = columns_of(p->i);
    if (s->columns && (s->first != first || s->columns != columns))
        store_sums(w, s);
    if (!p->adds)
        memset(s->at, 0, sizeof s->at);
    else if (!s->columns)
        load_sums(w, s, sums_in(p->i)->index, columns);
    s->first = first;
    s->columns = columns;
    return s;
}

/* ---- a product ---- */

/* Four rows by eight columns at a time. */
static void multiply(struct sums *s, const float a[ROWS][DEPTH], const float (*b)[MAX_COLUMNS],
                     uint32_t columns)
{
    for (uint32_t j = 0; j < columns; j += 8)
        for (uint32_t r = 0; r < ROWS; r += 4) {
            __m256 x[4];
            for (uint32_t k = 0; k < 4; k++)
                x[k] = _mm256_loadu_ps(&s->at[r + k][j]);
            for (uint32_t d = 0; d < DEPTH; d++) {
                const __m256 y = _mm256_loadu_ps(&b[d][j]);
                for (uint32_t k = 0; k < 4; k++)
                    x[k] = _mm256_fmadd_ps(_mm256_broadcast_ss(&a[r + k][d]), y, x[k]);
            }
            for (uint32_t k = 0; k < 4; k++)
                _mm256_storeu_ps(&s->at[r + k][j], x[k]);
        }
}

static struct matrix_request first_operand(const struct warp *w, const struct product *p)
{
    const struct operand *o = descriptor_of(p->i);
    return (struct matrix_request){.descriptor = p->a,
                                   .first = w->index % 4 * ROWS,
                                   .lines = ROWS,
                                   .transposed = o->matrix & MATRIX_TRANSPOSE_A,
                                   .bf16 = has(p->i, MODIFIER_BF16)};
}

static struct matrix_request second_operand(const struct product *p)
{
    const struct operand *o = descriptor_of(p->i);
    return (struct matrix_request){.descriptor = p->b,
                                   .lines = columns_of(p->i),
                                   .transposed = o->matrix & MATRIX_TRANSPOSE_B,
                                   .bf16 = has(p->i, MODIFIER_BF16)};
}

static bool is_negative(const struct instruction *i)
{
    const uint32_t sign = descriptor_of(i)->matrix & (MATRIX_NEGATIVE_A | MATRIX_NEGATIVE_B);
    return (sign == MATRIX_NEGATIVE_A || sign == MATRIX_NEGATIVE_B) != i->op[1].negative;
}

/* Fails unless operands in shared memory have arrived and this warp has waited for them. PTX does not say which warp reads which rows: each warp is checked for all. */
static void check_operands(struct warp *w, struct product *p)
{
    struct matrix_request a = first_operand(w, p);
    const struct matrix_request b = second_operand(p);
    a.first = 0;
    a.lines = WARPGROUP_ROWS;
    if (p->i->op[1].kind != OPERAND_REGISTER)
        matrix_check(w, &a);
    matrix_check(w, &b);
    p->changes = w->block->hopper->changes;
}

static void run_product(struct warp *w, struct products *all, struct product *p)
{
    const struct matrix_request a = first_operand(w, p), b = second_operand(p);
    if (p->changes != w->block->hopper->changes)
        check_operands(w, p);
    if (p->i->op[1].kind == OPERAND_REGISTER)
        matrix_of_registers(w, p->i->op[1].index, a.bf16, all->a);
    else
        matrix_rows(w, &a, all->a);
    const float(*columns)[MAX_COLUMNS] = matrix_columns(w, &b);
    for (uint32_t r = 0; r < ROWS && is_negative(p->i); r++)
        for (uint32_t k = 0; k < DEPTH; k++)
            all->a[r][k] = -all->a[r][k];
    multiply(take_sums(w, all, p), all->a, columns, columns_of(p->i));
    p->done = true;
}

/* ---- registers in flight ---- */

static void note_registers(struct products *all, const struct instruction *i, int by)
{
    for (uint32_t k = 0; k < columns_of(i) / 2; k++)
        all->sums_of[i->op[0].index + k] = (uint8_t)(all->sums_of[i->op[0].index + k] + by);
    for (uint32_t k = 0; k < 4 && i->op[1].kind == OPERAND_REGISTER; k++)
        all->used[i->op[1].index + k] = (uint8_t)(all->used[i->op[1].index + k] + by);
}

void products_watch(struct warp *w, const struct instruction *i)
{
    struct products *all = products_of(w);
    if (i->run == run_product_issue)
        return;
    for (uint32_t k = 0; k < i->n_sources; k++) {
        const uint32_t r = i->source[k];
        if (r >= 256)
            continue;
        if (all->sums_of[r])
            fault(w, "R%u is read, a product in flight adds to it", r);
        all->touched[r] |= READ;
    }
    for (uint32_t k = 0; k < i->n_results; k++) {
        const uint32_t r = i->result[k];
        if (r >= 256)
            continue;
        if (all->sums_of[r] || all->used[r])
            fault(w, "R%u is written, a product in flight uses it", r);
        all->touched[r] |= WRITTEN;
    }
}

/* `by`: what others must not have done to the registers since the last WARPGROUP.ARRIVE. */
static void need_ready(struct warp *w, const struct products *all, uint32_t first,
                       uint32_t count, uint32_t by)
{
    scoreboard_need(w, first, count);
    for (uint32_t k = first; k < first + count; k++)
        if (all->touched[k] & by)
            fault(w, "R%u of a product was %s after the last WARPGROUP.ARRIVE", k,
                  all->touched[k] & WRITTEN ? "written" : "read");
}

/* Sums of products in flight are those of this one, or others. */
static void need_same_sums(struct warp *w, const struct products *all,
                           const struct instruction *i)
{
    const uint32_t first = i->op[0].index, last = first + columns_of(i) / 2;
    for (uint32_t k = 0; k < all->count; k++) {
        const struct instruction *other = all->product[k].i;
        const uint32_t from = other->op[0].index, to = from + columns_of(other) / 2;
        if (from < last && first < to && (from != first || to != last))
            fault(w, "sums of a product in flight are in other registers in part");
    }
    for (uint32_t k = first; k < last; k++)
        if (all->used[k])
            fault(w, "R%u is a sum, and the first operand of a product in flight", k);
}

static void check_registers(struct warp *w, const struct products *all, const struct product *p)
{
    const struct instruction *i = p->i;
    if (p->adds && sums_in(i)->index != i->op[0].index)
        fault(w, "sums that are read and written in different registers are not known");
    need_same_sums(w, all, i);
    need_ready(w, all, i->op[0].index, columns_of(i) / 2, READ | WRITTEN);
    if (i->op[1].kind == OPERAND_REGISTER)
        need_ready(w, all, i->op[1].index, 4, WRITTEN);
    for (uint32_t k = 0; k < 4 && i->op[1].kind == OPERAND_REGISTER; k++)
        if (all->sums_of[i->op[1].index + k])
            fault(w, "R%u is read, a product in flight adds to it", i->op[1].index + k);
}

/* ---- instructions ---- */

static uint64_t pair(const struct warp *w, uint32_t index)
{
    return w->ur[index] | (uint64_t)w->ur[index + 1] << 32;
}

static bool adds(const struct warp *w, const struct instruction *i)
{
    const struct operand *c = sums_in(i);
    for (const struct operand *o = c + 1; o < i->op + i->operands; o++)
        if (o->kind == OPERAND_PREDICATE && !predicate_of(w, o))
            return false;
    return c->index != ZERO_REGISTER;
}

static bool commits(const struct instruction *i)
{
    return i->op[i->operands - 1].kind == OPERAND_GROUP;
}

/* HGMMA.64xNx16.F32[.BF16] D, [A,] gdesc[UR], C[, UP][, gsb0]: descriptors of A and B are in UR.. and UR + 2; with gsb0
   it ends a group. */
void run_product_issue(struct warp *w, const struct instruction *i, uint32_t mask)
{
    struct products *all = products_of(w);
    const uint32_t ur = descriptor_of(i)->index;
    if (mask != ALL_LANES || all->count == MAX_PRODUCTS)
        fault(w, "HGMMA by some lanes of the warp only, or too many in flight");
    struct product *p = &all->product[all->count];
    *p = (struct product){.i = i,
                          .a = i->op[1].kind == OPERAND_REGISTER ? 0 : pair(w, ur),
                          .b = pair(w, ur + 2),
                          .adds = adds(w, i),
                          .group = all->groups};
    check_registers(w, all, p);
    check_operands(w, p);
    hopper_of(w)->issued = (hopper_of(w)->issued + i->address + 1 + p->a * 31 + p->b) *
                           UINT64_C(0x9e3779b97f4a7c15);
    all->count++;
    note_registers(all, i, 1);
    all->groups += commits(i);
    if (w->block->hopper->early) {
        run_product(w, all, p);
        store_sums(w, &all->sums);
    }
}

/* WARPGROUP.ARRIVE orders products behind earlier uses of their registers. */
void run_products_fence(struct warp *w, const struct instruction *i, uint32_t mask)
{
    (void)i, (void)mask;
    memset(products_of(w)->touched, 0, sizeof products_of(w)->touched);
}

/* WARPGROUP.DEPBAR.LE gsb0, n: all but the newest n groups have ended. */
void run_products_wait(struct warp *w, const struct instruction *i, uint32_t mask)
{
    struct products *all = products_of(w);
    const uint32_t newest = i->op[1].value;
    uint32_t ended = 0;
    (void)mask;
    while (ended < all->count && all->product[ended].group + newest < all->groups)
        ended++;
    for (uint32_t k = 0; k < ended; k++) {
        if (!all->product[k].done)
            run_product(w, all, &all->product[k]);
        note_registers(all, all->product[k].i, -1);
    }
    store_sums(w, &all->sums);
    all->count -= ended;
    memmove(all->product, all->product + ended, all->count * sizeof *all->product);
}
