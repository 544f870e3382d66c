/* SPDX-License-Identifier: Apache-2.0 */
/* The plan's binary tables, decoded and held against the mask. An item's entries are set in a
   bitmap of its rows, where a second visit shows at once; then each owned row must have all of the
   mask's runs and as many entries as the mask. A row that a partial item began is decoded from there
   as well. Memory is strip_rows x n bits; time follows runs. */
#include "gen/lowering/lowering.h"
#include "gen/plan/internal.h"
#include "gen/plan/plan.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

struct checker {
    const struct plan *plan;
    const struct plan_pass *pass;
    const struct pattern *mask; /* in the direction of the pass */
    const char *direction;
    uint32_t which, item;
    const struct abi_item
        *decoding;     /* the item, or the partial one that began its row `as`: ... */
    uint32_t only, as; /* ... then its row `only` is of interest, else UINT32_MAX */
    uint64_t words;    /* of a row of the bitmap */
    u64 *bits;         /* [strip_rows][words] */
    uint32_t visited[ABI_MAX_STRIP];
    uint32_t uses, max_cols; /* as found */
    bool *owned;             /* [n] */
    uint32_t *began;         /* [n] 1 + the partial item that has the row, or 0 */
    uint32_t *seat; /* [pass->seats] 1 + the part that sits there, until it is joined */
    struct error *e;
};

static int fail(struct checker *c, const char *what, uint32_t row, uint32_t column)
{
    return error_set(c->e, ERROR_FALSE,
                     "plan, %s, mask %u, item %u: %s at row %u, column %u of the pass",
                     c->direction, c->which, c->item, what, row, column);
}

static bool see_bits(struct checker *c, uint32_t r, uint64_t word, u64 bits, uint32_t col0)
{
    if (c->only != UINT32_MAX && r != c->only)
        return true;
    uint32_t row = c->decoding->row0 + c->decoding->step * r;
    r = c->only == UINT32_MAX ? r : c->as;
    u64 *at = &c->bits[r * c->words + word];
    if (*at & bits) {
        fail(c, "visited twice", row, col0);
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
    fail(c, "visited outside of the item or the mask", item->row0 + item->step * r, begin);
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
            fail(c, "visited outside of the item or the mask", item->row0 + r, 0);
            return false;
        }
        uint32_t col = (uint32_t)column;
        if (!see_bits(c, r, col / 64, (u64)1 << (col % 64), col))
            return false;
    }
    return true;
}

/* Strides have pieces of their own, and so has the row pass. */
static bool fits_item(const struct plan *p, const struct abi_item *item,
                      const struct abi_piece *piece)
{
    if (p->tiles_only)
        return piece->kind == ABI_TILES;
    if (item->step > 1 || piece->kind == ABI_RESIDUE)
        return item->step > 1 && piece->kind == ABI_RESIDUE;
    return (item->rows == 1) == (piece->kind == ABI_ROWS);
}

static int check_pieces(struct checker *c, const struct abi_item *item)
{
    const struct plan_pass *t = c->pass;
    struct visitor v = {see_range, see_word, see_line, c};
    uint64_t cols = 0;
    c->decoding = item;
    c->only = UINT32_MAX;
    if (item->piece > t->n_pieces || item->pieces > t->n_pieces - item->piece)
        return fail(c, "pieces outside of their table", item->row0, 0);
    for (u32 k = item->piece; k < item->piece + item->pieces; k++) {
        const struct abi_piece *piece = &t->pieces[k];
        const struct lowering *l = piece->kind < ABI_KINDS ? lowering_of(piece->kind) : NULL;
        if (!l)
            return fail(c, "unknown kind of piece", item->row0, 0);
        c->uses |= (u32)1 << piece->kind;
        if (!fits_item(c->plan, item, piece))
            return fail(c, "the kind of a piece and the item's rows do not go together",
                        item->row0, 0);
        if (c->e)
            c->e->kind = ERROR_NONE;
        if (!l->decode(t, c->plan->strip_rows, item, piece, &v)) {
            if (!c->e || c->e->kind == ERROR_NONE)
                fail(c, "a table's row is out of range", item->row0, 0);
            return -1;
        }
        if (piece->cols != l->columns(t, piece))
            return fail(c, "a piece's columns do not add up", item->row0, 0);
        cols += piece->cols;
    }
    c->max_cols = item->cols > c->max_cols ? item->cols : c->max_cols;
    if (cols != item->cols)
        return fail(c, "the item's columns do not add up", item->row0, 0);
    return 0;
}

/* The bits of `row` that lie in begin .. end - 1 must all be on; they are cleared. */
static uint32_t first_off(u64 *row, uint32_t begin, uint32_t end)
{
    for (uint32_t col = begin; col < end;) {
        uint32_t stop = (col / 64 + 1) * 64 < end ? (col / 64 + 1) * 64 : end;
        u64 bits = stop - col == 64 ? ~(u64)0 : (((u64)1 << (stop - col)) - 1) << (col % 64);
        u64 missing = bits & ~row[col / 64];
        if (missing)
            return col / 64 * 64 + (uint32_t)__builtin_ctzll(missing);
        row[col / 64] &= ~bits;
        col = stop;
    }
    return end;
}

/* Where the count is too high: the first entry left after the mask's were cleared. */
static uint32_t first_on(const struct checker *c, const u64 *row)
{
    uint64_t w = 0;
    while (w + 1 < c->words && !row[w])
        w++;
    return (uint32_t)(w * 64 + (row[w] ? (uint32_t)__builtin_ctzll(row[w]) : 0));
}

/* Adds what a partial item visited of a row to what row r of an item did. */
static int add_begun(struct checker *c, const struct abi_item *from, uint32_t r, uint32_t row)
{
    struct visitor v = {see_range, see_word, see_line, c};
    c->decoding = from;
    c->only = (row - from->row0) / from->step;
    c->as = r;
    for (u32 k = from->piece; k < from->piece + from->pieces; k++) {
        const struct abi_piece *piece = &c->pass->pieces[k];
        if (!lowering_of(piece->kind)->decode(c->pass, c->plan->strip_rows, from, piece, &v))
            return -1;
    }
    return 0;
}

/* All parts of a row. */
static int join_row(struct checker *c, const struct abi_item *item, uint32_t row)
{
    if (item->rows != 1 || item->step != 1 || !item->resume[0] || item->pieces ||
        item->seat > c->pass->seats || item->seats > c->pass->seats - item->seat)
        return fail(c, "parts joined by what is not a row alone", row, 0);
    for (uint32_t k = item->seat; k < item->seat + item->seats; k++) {
        const struct abi_item *part = c->seat[k] ? &c->pass->items[c->seat[k] - 1] : NULL;
        if (!part || part->row0 != row)
            return fail(c, "a seat without a part of the row", row, k);
        if (add_begun(c, part, 0, row))
            return -1;
        c->seat[k] = 0;
    }
    return 0;
}

/* Adds what partial items visited of a row, where they did. */
static int resume_row(struct checker *c, const struct abi_item *item, uint32_t r, uint32_t row)
{
    bool resumes = item->resume[r / 32] >> (r % 32) & 1;
    if ((resumes && !item->seats) != (c->began[row] != 0))
        return fail(c, "a row that is not resumed where it was begun", row, 0);
    if (item->seats)
        return join_row(c, item, row);
    return resumes ? add_begun(c, &c->pass->items[c->began[row] - 1], r, row) : 0;
}

static int check_row(struct checker *c, const struct abi_item *item, uint32_t r)
{
    uint32_t row = item->row0 + item->step * r;
    u64 *bits = c->bits + r * c->words;
    if (c->owned[row])
        return fail(c, "a row that another item owns too", row, 0);
    if (resume_row(c, item, r, row))
        return -1;
    c->owned[row] = true;
    uint64_t active = 0;
    for (uint64_t k = c->mask->row[row]; k < c->mask->row[row + 1]; k++) {
        struct run run = c->mask->run[k];
        uint32_t off = first_off(bits, run.begin, run.end);
        if (off < run.end)
            return fail(c, "an active entry is not visited", row, off);
        active += run.end - run.begin;
    }
    if (c->visited[r] != active)
        return fail(c, "an inactive entry is visited", row, first_on(c, bits));
    return 0;
}

static bool rows_fit(const struct checker *c, const struct abi_item *item)
{
    uint32_t limit = c->plan->strip_rows, n = c->plan->n;
    if (item->rows < 1 || item->rows > limit || item->row0 >= n || item->step < 1 ||
        (uint64_t)item->step * (item->rows - 1) >= n - item->row0)
        return false;
    return item->rows == 1 || item->step > 1 || item->row0 % limit == 0;
}

/* A part is of a row alone. */
static bool seats_fit(const struct plan_pass *t, const struct abi_item *item)
{
    if (!item->seats)
        return !item->seat;
    return item->rows == 1 && item->step == 1 && item->seat < t->seats &&
           (!item->partial || item->seats == 1);
}

/* A partial item's rows are marked; what it visits counts where the row is resumed. */
static int begin_row(struct checker *c, const struct abi_item *item, uint32_t r)
{
    uint32_t row = item->row0 + item->step * r;
    uint32_t *mark = item->seats ? &c->seat[item->seat] : &c->began[row];
    if (*mark)
        return fail(c, "a row that another item begins too", row, 0);
    if (item->resume[r / 32] >> (r % 32) & 1)
        return fail(c, "a partial item that resumes", row, 0);
    *mark = c->item + 1;
    memset(c->bits + r * c->words, 0, c->words * sizeof *c->bits);
    return 0;
}

static int check_item(struct checker *c, const struct abi_item *item)
{
    if (!rows_fit(c, item))
        return fail(c, "rows outside of the mask or of the strip's grid", item->row0, 0);
    if (!seats_fit(c->pass, item))
        return fail(c, "seats that are not there", item->row0, 0);
    memset(c->visited, 0, sizeof c->visited);
    if (check_pieces(c, item))
        return -1;
    c->uses |= item->partial ? (u32)ABI_PARTIAL : 0;
    for (uint32_t r = 0; r < ABI_MAX_STRIP; r++) {
        if (!item_owns(item, r)) {
            if (item->resume[r / 32] >> (r % 32) & 1)
                return fail(c, "a row that is resumed and not owned", item->row0 + r, 0);
            continue;
        }
        if (r >= item->rows)
            return fail(c, "an owned row beyond the item's", item->row0 + r, 0);
        if (item->partial ? begin_row(c, item, r) : check_row(c, item, r))
            return -1;
    }
    return item->cost ? 0 : fail(c, "a cost of 0", item->row0, 0);
}

/* All items of the mask that are partial, or all that are not. */
static int check_items(struct checker *c, u32 first, u32 end, bool partial)
{
    for (c->item = first; c->item < end; c->item++) {
        const struct abi_item *item = &c->pass->items[c->item];
        if (item->partial > 1)
            return fail(c, "neither partial nor whole", item->row0, 0);
        if (item->partial == partial && check_item(c, item))
            return -1;
    }
    return 0;
}

static int check_mask(struct checker *c)
{
    const struct plan_pass *t = c->pass;
    u32 first = t->item_first[c->which], end = t->item_first[c->which + 1];
    memset(c->owned, 0, c->plan->n * sizeof *c->owned);
    memset(c->began, 0, c->plan->n * sizeof *c->began);
    memset(c->seat, 0, t->seats * sizeof *c->seat);
    c->item = first;
    if (first > end || end > t->n_items)
        return fail(c, "items outside of their table", 0, 0);
    if (check_items(c, first, end, true) || check_items(c, first, end, false))
        return -1;
    for (uint32_t row = 0; row < c->plan->n; row++)
        if (!c->owned[row])
            return fail(c, "a row that no item owns", row, 0);
    for (uint32_t k = 0; k < t->seats; k++)
        if (c->seat[k])
            return fail(c, "a part that is not joined", t->items[c->seat[k] - 1].row0, k);
    return 0;
}

/* See enum work_order. */
static bool in_order(const struct plan_pass *t, uint64_t k, u32 largest, enum work_order order)
{
    struct abi_work a = t->work[k - 1], b = t->work[k];
    const struct abi_item *x = &t->items[a.item], *y = &t->items[b.item];
    if (order == WORK_BY_HEAD && a.head != b.head)
        return a.head < b.head;
    if (order == WORK_BY_HEAD && x->partial != y->partial)
        return x->partial;
    if (order == WORK_LATE && item_resumes(x) != item_resumes(y))
        return item_resumes(y);
    u32 before = work_class(x->cost, largest);
    u32 here = work_class(y->cost, largest);
    if (before != here)
        return before > here;
    return a.head < b.head || (a.head == b.head && a.item < b.item);
}

/* Each layer's list holds every item of every head once, in order. */
static int check_layer(struct checker *c, uint32_t layer, uint8_t *seen)
{
    const struct plan_pass *t = c->pass;
    const uint32_t *at = c->plan->at + (size_t)layer * c->plan->heads;
    uint64_t first = t->layer_work[layer][0], count = t->layer_work[layer][1], expected = 0;
    uint64_t late = 0;
    if (first > t->n_work || count > t->n_work - first)
        return fail(c, "work outside of its table", layer, 0);
    for (uint32_t h = 0; h < c->plan->heads; h++)
        expected += t->item_first[at[h] + 1] - t->item_first[at[h]];
    if (count != expected)
        return fail(c, "a work list of another length than its items", layer, 0);
    memset(seen, 0, (t->n_items * c->plan->heads + 7) / 8);
    for (uint64_t k = first; k < first + count; k++) {
        struct abi_work w = t->work[k];
        if (w.head >= c->plan->heads || w.item < t->item_first[at[w.head]] ||
            w.item >= t->item_first[at[w.head] + 1])
            return fail(c, "work that is not the head's", w.head, w.item);
        uint64_t bit = w.head * t->n_items + w.item;
        if (seen[bit / 8] >> (bit % 8) & 1)
            return fail(c, "work that is done twice", w.head, w.item);
        seen[bit / 8] |= (uint8_t)(1 << (bit % 8));
    }
    u32 largest = work_largest(t, first, count);
    const enum work_order order = work_order(c->plan, t);
    for (uint64_t k = first; k < first + count; k++) {
        if (k > first && !in_order(t, k, largest, order))
            return fail(c, "work out of order", t->work[k].head, t->work[k].item);
        late += order == WORK_LATE && item_resumes(&t->items[t->work[k].item]);
    }
    return late == t->layer_work[layer][2] ? 0 : fail(c, "late work miscounted", layer, 0);
}

static bool checked_before(const struct plan_pass *t, uint32_t layer)
{
    for (uint32_t l = 0; l < layer; l++)
        if (!memcmp(t->layer_work[l], t->layer_work[layer], sizeof *t->layer_work))
            return true;
    return false;
}

/* A list shared by two layers fits both only where their heads agree. */
static int check_shared(struct checker *c, uint32_t layer)
{
    const struct plan *p = c->plan;
    for (uint32_t l = 0; l < layer; l++)
        if (!memcmp(c->pass->layer_work[l], c->pass->layer_work[layer],
                    sizeof *c->pass->layer_work) &&
            memcmp(p->at + (size_t)l * p->heads, p->at + (size_t)layer * p->heads,
                   p->heads * sizeof *p->at))
            return fail(c, "a work list shared by layers that differ", layer, l);
    return 0;
}

static int check_work(struct checker *c)
{
    uint8_t *seen = memory_new((c->pass->n_items * c->plan->heads + 7) / 8, 1);
    int failed = 0;
    for (uint32_t l = 0; l < c->plan->layers && !failed; l++)
        failed = checked_before(c->pass, l) ? check_shared(c, l) : check_layer(c, l, seen);
    free(seen);
    return failed;
}

static int check_pass(const struct plan *p, const struct plan_pass *t, const struct mask *m,
                      bool transposed, struct error *e)
{
    struct checker c = {.plan = p, .pass = t, .e = e};
    c.direction = transposed ? "transposed" : "forward";
    c.words = (p->n + 63) / 64;
    c.bits = memory_new(c.words * p->strip_rows, sizeof *c.bits);
    c.owned = memory_new(p->n, sizeof *c.owned);
    c.began = memory_new(p->n, sizeof *c.began);
    c.seat = memory_new(t->seats, sizeof *c.seat);
    int failed = 0;
    for (c.which = 0; c.which < p->n_masks && !failed; c.which++) {
        struct pattern *turned = transposed ? pattern_transpose(m->pattern[c.which], e) : NULL;
        c.mask = transposed ? turned : m->pattern[c.which];
        failed = c.mask ? check_mask(&c) : -1;
        pattern_destroy(turned);
    }
    if (!failed && (c.uses != t->uses || c.max_cols != t->max_cols))
        failed = fail(&c, "`uses` or `max_cols` do not say what the items need", 0, 0);
    if (!failed)
        failed = check_work(&c);
    free(c.bits);
    free(c.owned);
    free(c.began);
    free(c.seat);
    return failed;
}

int plan_check(const struct plan *p, const struct mask *m, struct error *e)
{
    if (p->n != m->n || p->heads != m->heads || p->layers != m->layers ||
        p->n_masks != m->n_patterns ||
        memcmp(p->at, m->at, (size_t)m->heads * m->layers * sizeof *m->at))
        return error_set(e, ERROR_FALSE, "the plan was made for another mask");
    if (check_pass(p, &p->forward, m, false, e))
        return -1;
    return p->features.backward ? check_pass(p, &p->transposed, m, true, e) : 0;
}
