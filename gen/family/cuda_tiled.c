/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's matrix unit for any length: a block works on a row block, columns are brought to shared memory 32 at a
   time: rows of halves, their chunks permuted; two operands. */
#include "gen/family/cuda_tiled.h"
#include "gen/family/cuda.h"
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

static uint32_t steps(const struct kernel_config *c)
{
    return (c->request.head_dim + 15) / 16;
}

/* All else takes a few registers more. */
static bool is_plain(const struct kernel_request *r)
{
    return r->transform == ABI_SOFTMAX && !r->dropout && !r->bias;
}

/* True if a warp of a tall row block has 32 rows, so that it loads columns half as often. Registers suffice for short heads. */
static bool has_wide_warps(const struct kernel_config *c)
{
    enum { MOST_STEPS = 4 };
    return c->tall && is_plain(&c->request) && steps(c) <= MOST_STEPS;
}

/* A tall row block takes a block of twice the threads, or warps of twice the rows. */
static uint32_t block_threads(const struct target *t, const struct kernel_config *c)
{
    return c->tall && !has_wide_warps(c) ? 2 * t->threads : t->threads;
}

/* 16 for each warp, or 32. */
static uint32_t block_rows(const struct target *t, const struct kernel_config *c)
{
    return c->tall ? t->threads : t->threads / 2;
}

static uint32_t forward_bytes(const struct target *t, const struct kernel_config *c)
{
    return TILED_FORWARD_BYTES(block_rows(t, c), block_threads(t, c), c->request.head_dim);
}

/* The gradient of a bias takes as much. */
static uint32_t backward_bytes(const struct target *t, const struct kernel_config *c)
{
    return TILED_BACKWARD_BYTES(block_rows(t, c), block_threads(t, c), c->request.head_dim);
}

/* Chips where a kernel, or one with dropout, a bias or shared rows, takes more registers than the blocks below would leave:
   the most that fit, 0 for any number. */
static const struct few {
    const char *target;
    uint32_t steps;
    enum abi_transform transform;
    bool dropout, bias, shared; /* what it takes; shared: items share rows */
    struct tiled_blocks most;
} few[] = {
    {"sm_80", 5, ABI_SOFTMAX, true, true, false, {.forward = 2}},
    {"sm_90a", 5, ABI_SOFTMAX, true, true, false, {.forward = 2}},
    {"sm_90a", 3, ABI_SOFTMAX, false, false, false, {.key = 2}},
    {"sm_100a", 3, ABI_SOFTMAX, false, false, false, {.key = 2}},
    {"sm_100a", 3, ABI_SOFTMAX, false, false, true, {.query = 2}},
    {"sm_100a", 4, ABI_SOFTMAX, false, false, false, {.query = 2, .key = 2}},
    {"sm_100a", 4, ABI_SOFTMAX, false, true, false, {.bias = 2}},
    {"sm_100a", 5, ABI_SOFTMAX, true, false, false, {.forward = 2}},
    {"sm_100a", 5, ABI_SOFTMAX, false, true, false, {.forward = 2}},
    {"sm_120", 3, ABI_SOFTMAX, false, false, false, {.query = 2}},
    {"sm_120", 4, ABI_SOFTMAX, false, false, false, {.forward = 3, .query = 2, .key = 2}},
    {"sm_100a", 3, ABI_SPARSEGEN, false, true, false, {.bias = 2}},
    {"sm_100a", 4, ABI_SPARSEGEN, false, true, false, {.bias = 2}},
    {"sm_120", 4, ABI_SPARSEGEN, false, true, false, {.bias = 2}},
    {"sm_120", 4, ABI_SOFTMAX, true, false, false, {.bias = 2}},
    {"sm_120", 4, ABI_SPARSEGEN, true, false, false, {.query = 2, .bias = 2}},
};

static void cap(uint32_t *blocks, uint32_t most)
{
    if (most && *blocks > most)
        *blocks = most;
}

static void cap_all(struct tiled_blocks *b, const struct target *t,
                    const struct kernel_config *c)
{
    for (size_t k = 0; k < sizeof few / sizeof *few; k++) {
        const struct few *w = &few[k];
        if ((w->dropout && !c->request.dropout) || (w->bias && !c->request.bias) ||
            (w->shared && !c->shared_rows) || strcmp(w->target, t->name) ||
            w->steps != steps(c) || w->transform != c->request.transform)
            continue;
        cap(&b->forward, w->most.forward);
        cap(&b->query, w->most.query);
        cap(&b->key, w->most.key);
        cap(&b->bias, w->most.bias);
    }
}

struct tiled_blocks tiled_blocks(const struct target *t, const struct kernel_config *c)
{
    if (has_wide_warps(c))
        return (struct tiled_blocks){.forward = 2, .query = 2, .key = 2, .bias = 1};
    const uint32_t s = steps(c), times = c->tall ? 2 : 1;
    const bool plain = is_plain(&c->request);
    /* four blocks leave 128 registers, which is enough but on the chip named */
    const bool four =
        !c->request.dropout && !c->request.bias && (s <= 2 || strcmp(t->name, "sm_100a"));
    struct tiled_blocks ret = {
        .forward = (s <= 4   ? 3 + four
                    : s <= 6 ? 3
                             : 2) /
                   times,
        .query = (s <= 2 || s == 4 || (s == 3 && !c->request.bias) ? 3 : 2) / times,
        .key = (s <= 2 || (s <= 4 && plain) ? 3 : 2) / times,
        .bias = s <= 4 ? 3 : 2,
    };
    cap_all(&ret, t, c);
    return ret;
}

/* With tall row blocks this dQ spills. */
static bool tall_spills(const struct target *t, const struct kernel_request *r)
{
    return (r->dtype == ABI_F16 || !strcmp(t->name, "sm_100a")) &&
           r->transform == ABI_SOFTMAX && r->head_dim > 112;
}

/* True if a processor holds two blocks. It has a KiB more than a block may ask for, and keeps a KiB for each. */
static bool two_fit(const struct target *t, uint32_t bytes)
{
    enum { KEPT = 1024 };
    return 2 * (bytes + KEPT) <= t->shared_bytes + KEPT;
}

/* True if tall row blocks are possible: a processor must hold as many rows as with low ones, and a block must fit it. */
static bool takes_tall(const struct target *t, const struct kernel_request *r,
                       enum family_pass pass)
{
    const struct kernel_config low = {.request = *r}, tall = {.request = *r, .tall = true};
    const struct tiled_blocks b = tiled_blocks(t, &low);
    if (r->bias)
        return false;
    if (has_wide_warps(&tall)) /* dQ, dK and dV would spill */
        return pass == FAMILY_FORWARD && two_fit(t, forward_bytes(t, &tall));
    if (pass == FAMILY_FORWARD)
        return b.forward % 2 == 0 && forward_bytes(t, &tall) <= t->shared_bytes;
    return !tall_spills(t, r) && b.query % 2 == 0 && b.key % 2 == 0 &&
           backward_bytes(t, &tall) <= t->shared_bytes;
}

bool tiled_has_row_pass(const struct kernel_config *c)
{
    return c->global_rows || steps(c) < 8;
}

static bool applies(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)pass;
    return t->kind == TARGET_CUDA && t->matrix_machine && dtype_bytes(r->dtype) == 2;
}

static uint32_t can(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    enum { MOST_SPLIT_DIM = 128 }; /* above, the sums of dQ do not fit the registers together */
    const bool softmax = r->transform == ABI_SOFTMAX;
    return CAN_PIECES | CAN_WHOLE_CLASSES | CAN_JOIN_NESTED | MERGES_LAST | SKIPS_FRAGMENTS |
           (softmax ? CAN_CUT_ROWS : 0) |
           (softmax && r->head_dim <= MOST_SPLIT_DIM ? CAN_SPLIT : 0) |
           (takes_tall(t, r, pass) ? CAN_TALL : 0);
}

/* By registers, as the launch bounds say, and by shared memory, of which sm_86, sm_89 and sm_120 have less. */
static uint32_t in_flight(const struct target *t, const struct kernel_config *c,
                          enum machine_pass pass)
{
    const struct tiled_blocks b = tiled_blocks(t, c);
    const uint32_t most = pass == PASS_FORWARD ? b.forward : pass == PASS_DQ ? b.query : b.key;
    const uint32_t fit = cuda_blocks_that_fit(t, pass == PASS_FORWARD ? forward_bytes(t, c)
                                                                      : backward_bytes(t, c));
    return most < fit ? most : fit;
}

/* The machine's rates are of D = 64 and `measured` blocks in flight. Warps of 32 rows are priced like warps of 16, because no GPU
   has run them; tools/sass --model h100 predicts that they take .77 of the time of 16. */
static void rates(const struct target *t, const struct kernel_config *c, struct machine *m)
{
    static const double measured[PASSES] = {4, 3, 3};
    const uint32_t heights = c->tall ? 2 : 1;
    for (int pass = 0; pass < PASSES && m->processors; pass++) {
        const enum machine_pass which = (enum machine_pass)pass;
        cuda_slow_down(m, which, measured[pass] / (heights * in_flight(t, c, which)));
    }
}

static struct family_shape shape(const struct target *t, const struct kernel_config *c)
{
    return (struct family_shape){block_rows(t, c), block_threads(t, c)};
}

static bool splits(const struct kernel_config *c)
{
    return c->shared_rows || c->cut_rows;
}

/* Bytes that a split item stores for a row (templates/cuda/tiled/partial.h). */
static uint64_t partial_row(const struct kernel_config *c)
{
    return sizeof(float) * ((1 + c->request.backward) * 16 * (uint64_t)steps(c) + 8);
}

/* By tools/sass --model h100 --batch 32 the last block of star's forward pass ends at 1.125 of the mean with one wave, at
   1.019 with five. Sparsegen has scratch for each block that the GPU holds at once, which a second wave would share. */
static uint32_t waves(const struct kernel_config *c)
{
    enum { WAVES = 5 };
    return c->request.transform == ABI_SOFTMAX ? WAVES : 0;
}

static void launch(const struct target *t, const struct kernel_config *c, enum family_pass pass,
                   struct launch_record *ret)
{
    const struct cuda_blocks b = {
        block_threads(t, c),  forward_bytes(t, c), backward_bytes(t, c),
        backward_bytes(t, c), splits(c),           waves(c)};
    cuda_launch(&b, &c->request, pass, ret);
    ret->partial_row = splits(c) ? partial_row(c) : 0;
}

/* Steps of the loop for delta's estimate that are unrolled at once: on sm_80 dQ with shared rows spills with 4. */
static uint32_t outputs_unrolled(const struct target *t, const struct kernel_config *c)
{
    return c->shared_rows && !strcmp(t->name, "sm_80") ? 2 : 4;
}

static void numbers(const struct target *t, const struct kernel_config *c, struct text *out)
{
    const struct tiled_blocks b = tiled_blocks(t, c);
    text_add(out,
             "enum {\n    FORWARD_SHARED = %" PRIu32 ",\n    BACKWARD_SHARED = %" PRIu32
             ",\n    BIAS_SHARED = %" PRIu32 ",\n    FORWARD_BLOCKS = %" PRIu32
             ",\n    QUERY_BLOCKS = %" PRIu32 ",\n    KEY_BLOCKS = %" PRIu32
             ",\n    BIAS_BLOCKS = %" PRIu32 ",\n    OUTPUTS_UNROLLED = %" PRIu32
             ",\n    SHARED_ROWS = %d,\n    ROW_PASS = %d,\n    CUT_ROWS = %d,\n};\n",
             forward_bytes(t, c), backward_bytes(t, c), backward_bytes(t, c), b.forward,
             b.query, b.key, b.bias, outputs_unrolled(t, c), c->shared_rows,
             tiled_has_row_pass(c), c->cut_rows);
}

extern const struct kernel_family family_cuda_tiled;
const struct kernel_family family_cuda_tiled = {
    .name = "cuda_tiled",
    .takes = "bf16 and f16 on CUDA targets",
    .matrix = true,
    .applies = applies,
    .can = can,
    .rates = rates,
    .in_flight = in_flight,
    .shape = shape,
    .launch = launch,
    .numbers = numbers,
    .common_numbers = cuda_numbers,
    .bias_launches = 3,
    .shared = "cuda/",
    .folder = "cuda/tiled/",
    .backward_unit = {"cuda/tiled/keys.cu", "cuda/tiled/queries.cu"},
    .forward_unit = "cuda/tiled/forward.cu",
    .bias_unit = "cuda/tiled/bias.cu",
};
