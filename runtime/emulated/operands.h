/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of products in shared memory: descriptors, decoded from their bits, and the words that a product reads. */
#pragma once
#include "bulk_copies.h"

#define FIELD 0x3fffull /* of a descriptor, in units of 16 bytes */

/* Only descriptors as matrix_descriptor() of templates/cuda/hopper/wgmma.h makes them are known. */
static const char *check_descriptor(uint64_t d)
{
    if (d >> 62 != 1)
        return "gives a product a descriptor without the swizzle of 128 bytes,";
    if (d & ~(FIELD | FIELD << 16 | FIELD << 32 | 3ull << 62))
        return "gives a product a descriptor with unknown bits,";
    return (d & FIELD) << 4 & 0x380
               ? "gives a product an operand that is not aligned to 1024 bytes,"
               : NULL;
}

/* Byte of row (or column) x and element k, under the swizzle. */
static uint32_t operand_place(uint64_t d, uint32_t x, uint32_t k, bool transposed)
{
    const uint32_t at = (uint32_t)(d & FIELD) << 4, leading = (uint32_t)(d >> 16 & FIELD) << 4,
                   stride = (uint32_t)(d >> 32 & FIELD) << 4;
    const uint32_t linear =
        transposed ? at + x / 64 * leading + k / 8 * stride + k % 8 * 128 + x % 64 * 2
                   : at + x / 8 * stride + x % 8 * 128 + k * 2;
    return linear ^ ((linear >> 7 & 7) << 4);
}

/* Calls f for each 16 bytes of an operand of `rows` rows and 16 elements of k, until one complains. f's row: k if transposed. */
typedef const char *piece_fn(uint32_t at, void *context, uint32_t row);

static const char *each_piece(uint64_t d, uint32_t rows, bool transposed, piece_fn *f,
                              void *context)
{
    const uint32_t outer = transposed ? 16 : rows, inner = transposed ? rows : 16;
    for (uint32_t i = 0; i < outer; i++)
        for (uint32_t j = 0; j < inner; j += 8) {
            const char *wrong =
                f(transposed ? operand_place(d, j, i, true) : operand_place(d, i, j, false),
                  context, i);
            if (wrong)
                return wrong;
        }
    return NULL;
}

/* Reads of 16 bytes by a product: row i of the first operand by its own warp, the second operand by all. */
struct piece_begin {
    const int32_t *warp[4], *all; /* clocks */
    bool second;
    uint32_t at; /* of a complaint */
};

static const char *begin_piece(uint32_t at, void *context, uint32_t row)
{
    struct piece_begin *b = context;
    const char *wrong = check_place(at, 16, 16);
    b->at = at;
    return wrong ? wrong : begin_async_read(at, 16, b->second ? b->all : b->warp[row / 16]);
}

static const char *end_piece(uint32_t at, void *context, uint32_t row)
{
    (void)row;
    end_async_read(at, 16, context);
    return NULL;
}

/* False with a complaint: an operand may not be read yet. */
static bool begin_operands(uint32_t first, const struct emulation_product *p, struct place at)
{
    const struct hopper *h = the_block->hopper;
    int32_t all[MAX_CLOCK];
    struct piece_begin b = {.all = all};
    for (uint32_t w = 0; w < 4; w++)
        b.warp[w] = clock_of(h, first + WARP * w);
    memcpy(all, b.warp[0], h->length * sizeof *all);
    for (uint32_t w = 1; w < 4; w++)
        clock_meet(all, b.warp[w], h->length);
    const char *wrong = p->a ? NULL : each_piece(p->a_at, 64, false, begin_piece, &b);
    b.second = true;
    wrong = wrong ? wrong : each_piece(p->b_at, p->n, p->transposed, begin_piece, &b);
    if (wrong)
        complain(wrong, b.at, at);
    return !wrong;
}

static void end_operands(uint32_t first, const struct emulation_product *p)
{
    struct reading r = {.count = 4};
    for (uint32_t w = 0; w < 4; w++) {
        r.thread[w] = first + WARP * w;
        r.when[w] = note_read(r.thread[w]);
    }
    if (!p->a)
        each_piece(p->a_at, 64, false, end_piece, &r);
    each_piece(p->b_at, p->n, p->transposed, end_piece, &r);
}
