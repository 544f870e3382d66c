/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of a plan that came from a file: after these checks no walk over the tables can leave them
   or the mask's rows and columns, whatever was written there. Whether the plan is the mask is
   another question, which plan_check and `maskc verify` answer. */
#include "masks/base/memory.h"
#include "runtime/artifact/tables.h"
#include <stdlib.h>
#include <string.h>

struct check {
    const struct plan_pass *p;
    const struct mask *m;
    uint32_t block_rows;
    const char *where;
    struct error *e;
};

static int refuse(const struct check *c, const char *what, uint64_t index)
{
    return error_set(c->e, ERROR_INPUT, "%s: entry %llu of %s", c->where,
                     (unsigned long long)index, what);
}

static bool inside(uint64_t first, uint64_t count, uint64_t size)
{
    return first <= size && count <= size - first;
}

static int check_ranges(const struct check *c)
{
    for (uint64_t k = 0; k < c->p->n_ranges; k++) {
        struct abi_range r = c->p->ranges[k];
        if (r.begin >= r.end || r.end > c->m->n)
            return refuse(c, "ranges leaves the mask", k);
    }
    return 0;
}

/* Bits of columns past the mask must be off in all rows. */
static bool tail_is_off(const struct check *c, struct abi_tile t)
{
    if (t.col0 + ABI_TILE_COLS <= c->m->n)
        return true;
    if (t.pattern == 0)
        return false;
    const u32 *word = c->p->patterns + (size_t)(t.pattern - 1) * c->block_rows;
    u32 beyond = ~UINT32_C(0) << (c->m->n - t.col0);
    for (uint32_t r = 0; r < c->block_rows; r++)
        if (word[r] & beyond)
            return false;
    return true;
}

static int check_tiles(const struct check *c)
{
    for (uint64_t k = 0; k < c->p->n_tiles; k++) {
        struct abi_tile t = c->p->tiles[k];
        if (t.col0 >= c->m->n || t.col0 % ABI_TILE_COLS)
            return refuse(c, "tiles leaves the mask", k);
        if (t.pattern > c->p->n_patterns)
            return refuse(c, "tiles names a pattern that is not there", k);
        if (!tail_is_off(c, t))
            return refuse(c, "tiles is on beyond the mask", k);
    }
    return 0;
}

static int check_lines(const struct check *c)
{
    for (uint64_t k = 0; k < c->p->n_lines; k++) {
        struct abi_line l = c->p->lines[k];
        if (l.step > 1 || l.row_begin >= l.row_end || l.row_end > c->block_rows)
            return refuse(c, "lines has no proper rows", k);
        int64_t first = (int64_t)l.col0 + (int64_t)l.step * l.row_begin;
        int64_t last = (int64_t)l.col0 + (int64_t)l.step * (l.row_end - 1);
        if (first < 0 || last >= c->m->n)
            return refuse(c, "lines leaves the mask", k);
    }
    return 0;
}

/* Columns ascend, so that those below a length come first. */
static int check_gather(const struct check *c, uint64_t k)
{
    struct abi_gather g = c->p->gathers[k];
    if (g.count < 1 || g.count > ABI_TILE_COLS || !inside(g.first, g.count, c->p->n_columns))
        return refuse(c, "gathers leaves the columns", k);
    if (g.pattern > c->p->n_patterns)
        return refuse(c, "gathers names a pattern that is not there", k);
    const u32 *column = c->p->columns + g.first;
    for (uint32_t i = 0; i < g.count; i++)
        if (column[i] >= c->m->n || (i && column[i] <= column[i - 1]))
            return refuse(c, "gathers has no ascending columns of the mask", k);
    u32 beyond = g.pattern && g.count < ABI_TILE_COLS ? ~UINT32_C(0) << g.count : 0;
    for (uint32_t r = 0; beyond && r < c->block_rows; r++)
        if (c->p->patterns[(size_t)(g.pattern - 1) * c->block_rows + r] & beyond)
            return refuse(c, "gathers is on beyond its columns", k);
    return 0;
}

static int check_gathers(const struct check *c)
{
    for (uint64_t k = 0; k < c->p->n_gathers; k++)
        if (check_gather(c, k) < 0)
            return -1;
    return 0;
}

/* Score columns of a piece, counted from its entries. */
static uint64_t count_columns(const struct plan_pass *p, struct abi_piece piece)
{
    uint64_t sum =
        piece.kind == ABI_TILES ? (uint64_t)ABI_TILE_COLS * piece.count : piece.count;
    if (piece.kind == ABI_BLOCKS || piece.kind == ABI_ROWS) {
        sum = 0;
        for (uint32_t k = 0; k < piece.count; k++)
            sum += p->ranges[piece.first + k].end - p->ranges[piece.first + k].begin;
    }
    if (piece.kind == ABI_COLUMNS || piece.kind == ABI_RESIDUE) {
        sum = 0;
        for (uint32_t k = 0; k < piece.count; k++)
            sum += p->gathers[piece.first + k].count;
    }
    return sum;
}

static int check_pieces(const struct check *c)
{
    const uint64_t size[ABI_KINDS] = {
        [ABI_BLOCKS] = c->p->n_ranges,   [ABI_TILES] = c->p->n_tiles,
        [ABI_DIAGONAL] = c->p->n_lines,  [ABI_ROWS] = c->p->n_ranges,
        [ABI_COLUMNS] = c->p->n_gathers, [ABI_RESIDUE] = c->p->n_gathers,
    };
    for (uint64_t k = 0; k < c->p->n_pieces; k++) {
        struct abi_piece piece = c->p->pieces[k];
        if (piece.kind >= ABI_KINDS)
            return refuse(c, "pieces is of an unknown kind", k);
        if (!inside(piece.first, piece.count, size[piece.kind]))
            return refuse(c, "pieces leaves its table", k);
        if (count_columns(c->p, piece) != piece.cols)
            return refuse(c, "pieces counts its columns wrongly", k);
    }
    return 0;
}

static bool fits_rows(const struct plan_pass *p, struct abi_piece piece,
                      const struct abi_item *item)
{
    uint32_t rows = item->rows;
    if (item->step > 1 && piece.kind == ABI_BLOCKS)
        return !item->split && !item_merges(item);
    if (item->step > 1 || piece.kind == ABI_RESIDUE)
        return item->step > 1 && piece.kind == ABI_RESIDUE;
    if (piece.kind == ABI_ROWS)
        return rows == 1;
    if (piece.kind != ABI_DIAGONAL)
        return true;
    for (uint32_t k = 0; k < piece.count; k++)
        if (p->lines[piece.first + k].row_end > rows)
            return false;
    return true;
}

static bool own_is_inside(struct abi_item item)
{
    for (uint32_t r = item.rows; r < ABI_MAX_BLOCK_ROWS; r++)
        if (item.own[r / 32] >> (r % 32) & 1)
            return false;
    for (uint32_t w = 0; w < ABI_MAX_BLOCK_ROWS / 32; w++)
        if (item.merge[w] & (item.split ? ~(u32)0 : ~item.own[w]))
            return false;
    return true;
}

/* Parts of a row alone have one partial slot each, what joins them has no pieces. */
static bool partial_slots_fit(const struct check *c, const struct abi_item *item)
{
    if (!item->partial_slots)
        return !item->partial_slot;
    return item->rows == 1 && item->step == 1 && item->own[0] == 1 &&
           inside(item->partial_slot, item->partial_slots, c->p->partial_slots) &&
           (item->split ? item->partial_slots == 1 : item->merge[0] == 1 && !item->pieces);
}

static int check_item(const struct check *c, uint64_t k, uint32_t *uses)
{
    struct abi_item item = c->p->items[k];
    uint64_t cols = 0;
    if (item.rows == 0 || item.rows > c->block_rows || item.row0 >= c->m->n || item.step == 0 ||
        (uint64_t)item.step * (item.rows - 1) >= c->m->n - item.row0 || item.split > 1)
        return refuse(c, "items leaves the mask", k);
    if (!own_is_inside(item))
        return refuse(c, "items owns rows that it does not have", k);
    if (!inside(item.piece, item.pieces, c->p->n_pieces))
        return refuse(c, "items leaves the pieces", k);
    for (uint32_t i = item.piece; i < item.piece + item.pieces; i++) {
        if (!fits_rows(c->p, c->p->pieces[i], &item))
            return refuse(c, "items has a piece for other rows", k);
        cols += c->p->pieces[i].cols;
        *uses |= 1u << c->p->pieces[i].kind;
    }
    *uses |= item.split ? (u32)ABI_SPLIT : 0;
    if (!partial_slots_fit(c, &item))
        return refuse(c, "items has no such seats", k);
    if (cols != item.cols || item.cost == 0)
        return refuse(c, "items has wrong sums", k);
    return 0;
}

static int check_items(const struct check *c)
{
    uint32_t uses = 0, max_cols = 0, partial_slots = 0;
    for (uint64_t k = 0; k < c->p->n_items; k++) {
        if (check_item(c, k, &uses) < 0)
            return -1;
        if (c->p->items[k].partial_slot + c->p->items[k].partial_slots > partial_slots)
            partial_slots = c->p->items[k].partial_slot + c->p->items[k].partial_slots;
        if (c->p->items[k].cols > max_cols)
            max_cols = c->p->items[k].cols;
    }
    if (uses != c->p->uses || max_cols != c->p->max_cols ||
        partial_slots != c->p->partial_slots)
        return error_set(c->e, ERROR_INPUT, "%s: the sums over all items are wrong", c->where);
    return 0;
}

/* What the items of a mask do to one of its rows; `parts` are those with a partial_slot. 2 stands for more. */
struct owners {
    uint8_t whole, partial, resumes;
    uint32_t parts, joined;
};

static void count_once(uint8_t *count)
{
    *count += *count < 2;
}

static void count_rows(const struct abi_item *item, struct owners *row)
{
    for (uint32_t r = 0; r < item->rows; r++) {
        struct owners *o = &row[item->row0 + item->step * r];
        if (!(item->own[r / 32] >> (r % 32) & 1))
            continue;
        o->parts += item->split ? item->partial_slots : 0;
        o->joined += item->split ? 0 : item->partial_slots;
        if (item->split && item->partial_slots)
            continue;
        count_once(item->split ? &o->partial : &o->whole);
        if (item->merge[r / 32] >> (r % 32) & 1 && !item->partial_slots)
            count_once(&o->resumes);
    }
}

static bool is_owned(const struct owners *o)
{
    return o->whole == 1 && o->partial <= 1 && o->partial == o->resumes &&
           o->parts == o->joined && !(o->parts && o->partial);
}

/* Each row of the mask has one owner, so that each output is written once, and one more at most that
   is partial, whose results are taken up; or as many as have partial slots that are joined. */
static int check_owners(const struct check *c)
{
    const uint32_t *first = c->p->item_first;
    struct owners *row = memory_new(c->m->n, sizeof *row);
    int r = 0;
    for (uint32_t m = 0; m < c->m->n_patterns && r == 0; m++) {
        memset(row, 0, c->m->n * sizeof *row);
        for (uint64_t k = first[m]; k < first[m + 1]; k++)
            count_rows(&c->p->items[k], row);
        for (uint32_t i = 0; i < c->m->n && r == 0; i++)
            if (!is_owned(&row[i]))
                r = refuse(c, "the mask's rows does not have one owner", i);
    }
    free(row);
    return r;
}

static int check_item_first(const struct check *c)
{
    const uint32_t *first = c->p->item_first;
    for (uint32_t m = 0; m < c->m->n_patterns; m++)
        if (first[m] > first[m + 1] || first[m + 1] > c->p->n_items)
            return refuse(c, "item_first is out of order", m);
    if (first[0] != 0 || first[c->m->n_patterns] != c->p->n_items)
        return refuse(c, "item_first is out of order", 0);
    return 0;
}

/* A layer's work names each item of each of its heads exactly once. base[h] counts the items of the
   heads before h, so that (head, item) becomes a place in `seen`. */
static int check_layer(const struct check *c, uint32_t layer, uint64_t *base, uint8_t *seen)
{
    const uint64_t *part = c->p->layer_work[layer];
    const uint32_t *at = c->m->at + (size_t)layer * c->m->heads;
    for (uint32_t h = 0; h < c->m->heads; h++)
        base[h + 1] = base[h] + c->p->item_first[at[h] + 1] - c->p->item_first[at[h]];
    if (!inside(part[0], part[1], c->p->n_work) || part[1] != base[c->m->heads])
        return refuse(c, "layer_work does not fit the work", layer);
    memset(seen, 0, part[1]);
    for (uint64_t k = part[0]; k < part[0] + part[1]; k++) {
        struct abi_work w = c->p->work[k];
        if (w.head >= c->m->heads || w.item < c->p->item_first[at[w.head]] ||
            w.item >= c->p->item_first[at[w.head] + 1])
            return refuse(c, "work names an item of another mask", k);
        uint64_t place = base[w.head] + w.item - c->p->item_first[at[w.head]];
        if (seen[place]++)
            return refuse(c, "work repeats an item", k);
    }
    return 0;
}

static int check_work(const struct check *c)
{
    if (c->p->n_work > UINT32_MAX)
        return error_set(c->e, ERROR_INPUT, "%s: too much work", c->where);
    uint64_t *base = memory_new((size_t)c->m->heads + 1, sizeof *base);
    uint8_t *seen = memory_new(c->p->n_work, 1);
    int r = 0;
    for (uint32_t l = 0; l < c->m->layers && r == 0; l++)
        r = check_layer(c, l, base, seen);
    free(base);
    free(seen);
    return r;
}

/* All of a head's, where they come first, as they must. */
static uint32_t count_partials(const struct check *c, struct abi_head h)
{
    uint32_t leading = 0, all = 0;
    for (uint32_t k = 0; k < h.items; k++) {
        all += c->p->items[h.item + k].split;
        leading += leading == k && c->p->items[h.item + k].split;
    }
    return leading == all ? all : UINT32_MAX;
}

/* Late works are all that resume, at the end. */
static int check_late(const struct check *c, const uint64_t *part)
{
    for (uint64_t k = 0; k < part[1]; k++)
        if (part[2] > part[1] ||
            (part[2] && item_merges(&c->p->items[c->p->work[part[0] + k].item]) !=
                            (k >= part[1] - part[2])))
            return refuse(c, "work is out of order", part[0] + k);
    return 0;
}

/* Else launches take a head at a time where there are partial items: of each head first those. */
static int check_order(const struct check *c)
{
    for (uint32_t l = 0; l < c->m->layers; l++)
        if (check_late(c, c->p->layer_work[l]) < 0)
            return -1;
    for (uint32_t l = 0; l < c->m->layers && c->p->uses & ABI_SPLIT; l++) {
        const uint64_t *part = c->p->layer_work[l];
        const struct abi_head *head = c->p->heads + (size_t)l * c->m->heads;
        uint64_t k = part[0];
        if (part[2])
            continue;
        for (uint32_t h = 0; h < c->m->heads; h++)
            for (uint32_t i = 0; i < head[h].items; i++, k++)
                if (c->p->work[k].head != h ||
                    c->p->items[c->p->work[k].item].split != (i < head[h].splits))
                    return refuse(c, "work is out of order", k);
    }
    return 0;
}

static int check_heads(const struct check *c)
{
    const uint32_t *first = c->p->item_first;
    uint64_t count = (uint64_t)c->m->layers * c->m->heads;
    for (uint64_t k = 0; k < count && c->p->n_heads == count; k++) {
        struct abi_head h = c->p->heads[k];
        uint32_t at = c->m->at[k];
        if (h.item != first[at] || h.items != first[at + 1] - first[at] ||
            h.splits != count_partials(c, h))
            return refuse(c, "heads names items of another mask", k);
    }
    return c->p->n_heads == count ? 0 : refuse(c, "heads does not list every head", count);
}

int pass_check(const struct plan_pass *p, const struct mask *m, uint32_t block_rows,
               const char *where, struct error *e)
{
    static int (*const steps[])(const struct check *) = {
        check_ranges,     check_tiles,  check_lines, check_gathers, check_pieces, check_items,
        check_item_first, check_owners, check_work,  check_heads,   check_order,
    };
    struct check c = {p, m, block_rows, where, e};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        if (steps[k](&c) < 0)
            return -1;
    return 0;
}
