/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of halves, each followed by 16 bytes; columns 32 at a time, two operands each. */
#include "gen/family/cuda_tiled.h"
#include "gen/family/cuda_resident.h"
#include <stddef.h>
#include <string.h>

enum { COLUMNS = 32, ROW_PAD = 8, HALF = 2 };

static uint32_t steps(const struct features *f)
{
    return (f->head_dim + 15) / 16;
}

static uint32_t rows_bytes(const struct features *f, uint32_t rows)
{
    return HALF * rows * (16 * steps(f) + ROW_PAD);
}

uint32_t tiled_forward_bytes(const struct target *t, const struct features *f)
{
    return rows_bytes(f, target_block_rows(t, f) + 2 * 2 * COLUMNS);
}

uint32_t tiled_backward_bytes(const struct target *t, const struct features *f)
{
    uint32_t buffers = steps(f) <= 8 ? 2 : 1;
    return rows_bytes(f, 2 * target_block_rows(t, f) + buffers * 2 * COLUMNS);
}

uint32_t tiled_bias_bytes(const struct target *t, const struct features *f)
{
    uint32_t groups = steps(f) <= 8 ? 2 : 1;
    return rows_bytes(f, 2 * target_block_rows(t, f) + groups * 2 * COLUMNS);
}

/* Chips where a kernel, or one with dropout, a bias, or both, takes more registers than the blocks below would leave:
   the most that fit, 0 for any number. */
static const struct few {
    const char *target;
    uint32_t steps;
    enum abi_transform transform;
    bool dropout, bias; /* what it takes */
    struct tiled_blocks most;
} few[] = {
    {"sm_80", 5, ABI_SOFTMAX, true, true, {.forward = 2}},
    {"sm_90a", 5, ABI_SOFTMAX, true, true, {.forward = 2}},
    {"sm_100a", 4, ABI_SOFTMAX, false, false, {.query = 2, .key = 2}},
    {"sm_100a", 5, ABI_SOFTMAX, true, false, {.forward = 2}},
    {"sm_100a", 5, ABI_SOFTMAX, false, true, {.forward = 2}},
    {"sm_120", 4, ABI_SOFTMAX, false, false, {.query = 2}},
    {"sm_100a", 3, ABI_SPARSEGEN, false, true, {.bias = 2}},
    {"sm_100a", 4, ABI_SPARSEGEN, false, true, {.bias = 2}},
    {"sm_120", 4, ABI_SPARSEGEN, false, true, {.bias = 2}},
    {"sm_120", 4, ABI_SOFTMAX, true, false, {.bias = 2}},
    {"sm_120", 4, ABI_SPARSEGEN, true, false, {.query = 2, .bias = 2}},
};

static void cap(uint32_t *blocks, uint32_t most)
{
    if (most && *blocks > most)
        *blocks = most;
}

static void cap_all(struct tiled_blocks *b, const struct target *t, const struct features *f)
{
    for (size_t k = 0; k < sizeof few / sizeof *few; k++) {
        const struct few *w = &few[k];
        if ((w->dropout && !f->dropout) || (w->bias && !f->bias) ||
            strcmp(w->target, t->name) || w->steps != steps(f) || w->transform != f->transform)
            continue;
        cap(&b->forward, w->most.forward);
        cap(&b->query, w->most.query);
        cap(&b->key, w->most.key);
        cap(&b->bias, w->most.bias);
    }
}

struct tiled_blocks tiled_blocks(const struct target *t, const struct features *f)
{
    const uint32_t s = steps(f), times = f->tall ? 2 : 1;
    /* all else takes a few registers more */
    const bool plain = f->transform == ABI_SOFTMAX && !f->dropout && !f->bias;
    /* four blocks leave 128 registers, which is enough but on the chip named */
    const bool four = !f->dropout && !f->bias && (s <= 2 || strcmp(t->name, "sm_100a"));
    struct tiled_blocks ret = {
        .forward = (s <= 4   ? 3 + four
                    : s <= 6 ? 3
                             : 2) /
                   times,
        .query = (s <= 2 || s == 4 || (s == 3 && !f->bias) ? 3 : 2) / times,
        .key = (s <= 2 || (s <= 4 && plain) ? 3 : 2) / times,
        .bias = s <= 4 ? 3 : 2,
    };
    cap_all(&ret, t, f);
    return ret;
}

bool tiled_takes_tall(const struct target *t, const struct features *f)
{
    struct features tall = *f, low = *f;
    low.tall = false;
    tall.tall = true;
    const struct tiled_blocks b = tiled_blocks(t, &low);
    if (t->kind != TARGET_CUDA || !target_matrix(t, f) || f->bias ||
        resident_forward(t, f, NULL) || b.forward % 2)
        return false;
    if (f->backward && (b.query % 2 || b.key % 2 || resident_backward(t, f, NULL) ||
                        tiled_backward_bytes(t, &tall) > t->shared_bytes))
        return false;
    return tiled_forward_bytes(t, &tall) <= t->shared_bytes;
}

bool tiled_has_row_pass(const struct features *f)
{
    return f->global_rows || steps(f) < 8;
}

bool tiled_leaves_sums(const struct target *t, const struct features *f)
{
    return target_matrix(t, f) && (f->shared_rows || f->cut_rows);
}

uint64_t tiled_partial_row(const struct target *t, const struct features *f)
{
    return tiled_leaves_sums(t, f)
               ? sizeof(float) * ((1 + f->backward) * 16 * (uint64_t)steps(f) + 8)
               : 0;
}
