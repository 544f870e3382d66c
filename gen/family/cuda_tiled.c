/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of halves, each followed by 16 bytes; columns 32 at a time, two operands each. */
#include "gen/family/cuda_tiled.h"
#include "gen/family/cuda_resident.h"
#include <stddef.h>
#include <string.h>

enum { COLUMNS = 32, ROW_PAD = 8, HALF = 2 };

static uint32_t steps(const struct kernel_config *c)
{
    return (c->request.head_dim + 15) / 16;
}

static uint32_t rows_bytes(const struct kernel_config *c, uint32_t rows)
{
    return HALF * rows * (16 * steps(c) + ROW_PAD);
}

uint32_t tiled_forward_bytes(const struct target *t, const struct kernel_config *c)
{
    return rows_bytes(c, target_block_rows(t, c) + 2 * 2 * COLUMNS);
}

uint32_t tiled_backward_bytes(const struct target *t, const struct kernel_config *c)
{
    uint32_t buffers = steps(c) <= 8 ? 2 : 1;
    return rows_bytes(c, 2 * target_block_rows(t, c) + buffers * 2 * COLUMNS);
}

uint32_t tiled_bias_bytes(const struct target *t, const struct kernel_config *c)
{
    uint32_t groups = steps(c) <= 8 ? 2 : 1;
    return rows_bytes(c, 2 * target_block_rows(t, c) + groups * 2 * COLUMNS);
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

static void cap_all(struct tiled_blocks *b, const struct target *t,
                    const struct kernel_config *c)
{
    for (size_t k = 0; k < sizeof few / sizeof *few; k++) {
        const struct few *w = &few[k];
        if ((w->dropout && !c->request.dropout) || (w->bias && !c->request.bias) ||
            strcmp(w->target, t->name) || w->steps != steps(c) ||
            w->transform != c->request.transform)
            continue;
        cap(&b->forward, w->most.forward);
        cap(&b->query, w->most.query);
        cap(&b->key, w->most.key);
        cap(&b->bias, w->most.bias);
    }
}

struct tiled_blocks tiled_blocks(const struct target *t, const struct kernel_config *c)
{
    const uint32_t s = steps(c), times = c->tall ? 2 : 1;
    /* all else takes a few registers more */
    const bool plain =
        c->request.transform == ABI_SOFTMAX && !c->request.dropout && !c->request.bias;
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

bool tiled_takes_tall(const struct target *t, const struct kernel_request *r)
{
    const struct kernel_config low = {.request = *r}, tall = {.request = *r, .tall = true};
    const struct tiled_blocks b = tiled_blocks(t, &low);
    if (t->kind != TARGET_CUDA || !target_matrix(t, r) || r->bias ||
        resident_forward(t, r, NULL) || b.forward % 2)
        return false;
    if (r->backward && (b.query % 2 || b.key % 2 || resident_backward(t, r, NULL) ||
                        tiled_backward_bytes(t, &tall) > t->shared_bytes))
        return false;
    return tiled_forward_bytes(t, &tall) <= t->shared_bytes;
}

bool tiled_has_row_pass(const struct kernel_config *c)
{
    return c->global_rows || steps(c) < 8;
}

bool tiled_leaves_sums(const struct target *t, const struct kernel_config *c)
{
    return target_matrix(t, &c->request) && (c->shared_rows || c->cut_rows);
}

uint64_t tiled_partial_row(const struct target *t, const struct kernel_config *c)
{
    return tiled_leaves_sums(t, c)
               ? sizeof(float) * ((1 + c->request.backward) * 16 * (uint64_t)steps(c) + 8)
               : 0;
}
