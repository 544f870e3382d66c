/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the visits of an item's pieces into a bitmap of its rows, and finds entries visited twice, visits outside of
   the item or the mask, and wrong column counts. */
#include "gen/plan/check/checker.h"

static bool see_bits(struct checker *c, uint32_t r, uint64_t word, u64 bits, uint32_t col0)
{
    if (c->only != UINT32_MAX && r != c->only)
        return true;
    uint32_t row = c->decoding->row0 + c->decoding->step * r;
    r = c->only == UINT32_MAX ? r : c->as;
    u64 *at = &c->bits[r * c->words + word];
    if (*at & bits) {
        checker_fail(c, "visited twice", row, col0);
        return false;
    }
    *at |= bits;
    c->visited[r] += (uint32_t)__builtin_popcountll(bits);
    return true;
}

static bool may_see(struct checker *c, uint32_t r, uint32_t begin, uint32_t end)
{
    const struct abi_item *item = c->decoding;
    if (r < item->rows && item_owns(item, r) && begin < end && end <= c->plan->n)
        return true;
    checker_fail(c, "visited outside of the item or the mask", item->row0 + item->step * r,
                 begin);
    return false;
}

static bool see_range(void *context, uint32_t r, uint32_t begin, uint32_t end)
{
    struct checker *c = context;
    if (!may_see(c, r, begin, end))
        return false;
    for (uint32_t col = begin; col < end;) {
        uint32_t stop = (col / 64 + 1) * 64 < end ? (col / 64 + 1) * 64 : end;
        u64 bits = stop - col == 64 ? ~(u64)0 : (((u64)1 << (stop - col)) - 1) << (col % 64);
        if (!see_bits(c, r, col / 64, bits, col))
            return false;
        col = stop;
    }
    return true;
}

static bool see_word(void *context, uint32_t r, uint32_t col0, u32 word)
{
    struct checker *c = context;
    if (!may_see(c, r, col0, col0 + 32 - (uint32_t)__builtin_clz(word)))
        return false;
    return see_bits(c, r, col0 / 64, (u64)word << (col0 % 64), col0);
}

static bool see_line(void *context, const struct abi_line *line)
{
    struct checker *c = context;
    const struct abi_item *item = c->decoding;
    for (uint32_t r = line->row_begin; r < line->row_end; r++) {
        int64_t column = (int64_t)line->col0 + (int64_t)line->step * r;
        if (column < 0 || column >= c->plan->n || !item_owns(item, r)) {
            checker_fail(c, "visited outside of the item or the mask", item->row0 + r, 0);
            return false;
        }
        uint32_t col = (uint32_t)column;
        if (!see_bits(c, r, col / 64, (u64)1 << (col % 64), col))
            return false;
    }
    return true;
}

int check_pieces(struct checker *c, const struct abi_item *item)
{
    const struct plan_pass *t = c->pass;
    struct visitor v = {see_range, see_word, see_line, c};
    uint64_t cols = 0;
    c->decoding = item;
    c->only = UINT32_MAX;
    if (item->piece > t->n_pieces || item->pieces > t->n_pieces - item->piece)
        return checker_fail(c, "pieces outside of their table", item->row0, 0);
    for (u32 k = item->piece; k < item->piece + item->pieces; k++) {
        const struct abi_piece *piece = &t->pieces[k];
        const struct lowering *l = piece->kind < ABI_KINDS ? lowering_of(piece->kind) : NULL;
        if (!l)
            return checker_fail(c, "unknown kind of piece", item->row0, 0);
        c->uses |= (u32)1 << piece->kind;
        if (!l->fits_item(c->plan->can, item))
            return checker_fail(c, "the kind of a piece and the item's rows do not go together",
                                item->row0, 0);
        if (c->e)
            c->e->kind = ERROR_NONE;
        if (!l->decode(t, c->plan->block_rows, item, piece, &v)) {
            if (!c->e || c->e->kind == ERROR_NONE)
                checker_fail(c, "a table's row is out of range", item->row0, 0);
            return -1;
        }
        if (piece->cols != l->columns(t, piece))
            return checker_fail(c, "a piece's columns do not add up", item->row0, 0);
        cols += piece->cols;
    }
    c->max_cols = item->cols > c->max_cols ? item->cols : c->max_cols;
    if (cols != item->cols)
        return checker_fail(c, "the item's columns do not add up", item->row0, 0);
    return 0;
}

int check_split(struct checker *c, const struct abi_item *from, uint32_t r, uint32_t row)
{
    struct visitor v = {see_range, see_word, see_line, c};
    c->decoding = from;
    c->only = (row - from->row0) / from->step;
    c->as = r;
    for (u32 k = from->piece; k < from->piece + from->pieces; k++) {
        const struct abi_piece *piece = &c->pass->pieces[k];
        if (!lowering_of(piece->kind)->decode(c->pass, c->plan->block_rows, from, piece, &v))
            return -1;
    }
    return 0;
}
