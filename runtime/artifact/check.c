/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of a plan that came from a file: after these checks no walk over the tables can leave them
   or the mask's rows and columns, whatever was written there. Whether the plan is the mask is
   another question, which plan_check and `maskc verify` answer. */
#include "runtime/artifact/check.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

int check_refuse(const struct check *c, const char *what, uint64_t index)
{
    return error_set(c->e, ERROR_INPUT, "%s: entry %llu of %s", c->where,
                     (unsigned long long)index, what);
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

/* A part of a global row has one partial slot. The item that merges the parts has no pieces. */
static bool partial_slots_fit(const struct check *c, const struct abi_item *item)
{
    if (!item->partial_slots)
        return !item->partial_slot;
    return item->rows == 1 && item->step == 1 && item->own[0] == 1 &&
           check_inside(item->partial_slot, item->partial_slots, c->p->partial_slots) &&
           (item->split ? item->partial_slots == 1 : item->merge[0] == 1 && !item->pieces);
}

static int check_item(const struct check *c, uint64_t k, uint32_t *uses)
{
    struct abi_item item = c->p->items[k];
    uint64_t cols = 0;
    if (item.rows == 0 || item.rows > c->block_rows || item.row0 >= c->m->n || item.step == 0 ||
        (uint64_t)item.step * (item.rows - 1) >= c->m->n - item.row0 || item.split > 1)
        return check_refuse(c, "items leaves the mask", k);
    if (!own_is_inside(item))
        return check_refuse(c, "items owns rows that it does not have", k);
    if (!check_inside(item.piece, item.pieces, c->p->n_pieces))
        return check_refuse(c, "items leaves the pieces", k);
    for (uint32_t i = item.piece; i < item.piece + item.pieces; i++) {
        struct abi_piece piece = c->p->pieces[i];
        if (!check_kinds[piece.kind].fits_item(c->p, piece, &item))
            return check_refuse(c, "items has a piece for other rows", k);
        cols += piece.cols;
        *uses |= 1u << piece.kind;
    }
    *uses |= item.split ? (u32)ABI_SPLIT : 0;
    if (!partial_slots_fit(c, &item))
        return check_refuse(c, "items has no such seats", k);
    if (cols != item.cols || item.cost == 0)
        return check_refuse(c, "items has wrong sums", k);
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

/* Number of items that write one row of the mask: whole, partial and merging ones, counted up to 2; and those with
   partial slots, before and after merging. */
struct owners {
    uint8_t whole, partial, merges;
    uint32_t parts, merged;
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
        o->merged += item->split ? 0 : item->partial_slots;
        if (item->split && item->partial_slots)
            continue;
        count_once(item->split ? &o->partial : &o->whole);
        if (item->merge[r / 32] >> (r % 32) & 1 && !item->partial_slots)
            count_once(&o->merges);
    }
}

static bool is_owned(const struct owners *o)
{
    return o->whole == 1 && o->partial <= 1 && o->partial == o->merges &&
           o->parts == o->merged && !(o->parts && o->partial);
}

static bool is_unused(const struct owners *o)
{
    return !o->whole && !o->partial && !o->merges && !o->parts && !o->merged;
}

/* Each row has one owner, so that each output is written once. Beside it a row may have one split item, which
   the owner merges, or any number of parts in partial slots, all of which are merged. Rows from c->rows on are neither
   queries nor keys, and need none. */
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
            if (!is_owned(&row[i]) && (i < c->rows || !is_unused(&row[i])))
                r = check_refuse(c, "the mask's rows does not have one owner", i);
    }
    free(row);
    return r;
}

static int check_item_first(const struct check *c)
{
    const uint32_t *first = c->p->item_first;
    for (uint32_t m = 0; m < c->m->n_patterns; m++)
        if (first[m] > first[m + 1] || first[m + 1] > c->p->n_items)
            return check_refuse(c, "item_first is out of order", m);
    if (first[0] != 0 || first[c->m->n_patterns] != c->p->n_items)
        return check_refuse(c, "item_first is out of order", 0);
    return 0;
}

int pass_check_kernels(const struct plan_pass *p, const struct item_kernels *kernels,
                       const char *where, struct error *e)
{
    for (uint64_t k = 0; k < p->n_items; k++)
        if (!item_kernel_fits(kernels, p->items[k].kernel, p, &p->items[k]))
            return error_set(e, ERROR_INPUT, "%s: entry %llu of items names a wrong kernel",
                             where, (unsigned long long)k);
    return 0;
}

int pass_check(const struct plan_pass *p, const struct mask *m, uint32_t rows,
               uint32_t block_rows, const char *where, struct error *e)
{
    static int (*const steps[])(const struct check *) = {
        check_tables, check_items, check_item_first, check_owners, check_schedule,
    };
    const struct check c = {p, m, rows, block_rows, where, e};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        if (steps[k](&c) < 0)
            return -1;
    return 0;
}
