/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of the steps of a pass: after these checks a kernel that walks groups and steps stays inside of the tables and of
   the mask's rows and columns. Whether the steps are the mask is for plan_check. */
#include "masks/base/memory.h"
#include "runtime/artifact/check.h"
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64 /* of a row block */ };

/* The tables of a pass beside its steps: `c` has the items. */
struct step_check {
    struct check c;
    const struct plan_steps *t;
};

/* ---- steps ---- */

/* The live columns of a slot are columns of the mask. An empty slot may lie past it, by less than a step. */
static bool column_fits(const struct step_check *s, u32 column, u32 live)
{
    const uint64_t n = s->c.m->n, past = n + (ABI_STEP_SLOTS + 1) * ABI_TILE_COLS;
    if (!(column & ABI_GATHERED))
        return column % ABI_TILE_COLS == 0 &&
               (live ? (uint64_t)column + ABI_TILE_COLS - (u32)__builtin_clz(live) <= n
                     : column <= past);
    const uint64_t first = column & ~ABI_GATHERED;
    for (u32 k = 0; k < ABI_TILE_COLS && live >> k; k++)
        if (first + k >= s->c.p->n_columns || s->c.p->columns[first + k] >= n)
            return false;
    return live;
}

/* True if a row block may have this in a slot: nothing, all live columns, or a pattern of some of them. */
static bool has_fits(const struct step_check *s, u32 has, u32 live)
{
    if (has < ABI_SLOT_PATTERN)
        return has == ABI_SLOT_EMPTY || live;
    if (has - ABI_SLOT_PATTERN >= s->c.p->n_patterns)
        return false;
    const u32 *word = s->c.p->patterns + (size_t)(has - ABI_SLOT_PATTERN) * ROWS;
    for (u32 r = 0; r < ROWS; r++)
        if (word[r] & ~live)
            return false;
    return true;
}

static bool slot_fits(const struct step_check *s, const struct abi_step *step, u32 k)
{
    if (!column_fits(s, step->column[k], step->live[k]))
        return false;
    for (u32 i = 0; i < ABI_GROUP_BLOCKS; i++)
        if (i < s->t->warpgroups ? !has_fits(s, step->pattern[i][k], step->live[k])
                                 : step->pattern[i][k] != ABI_SLOT_EMPTY)
            return false;
    return true;
}

static bool is_unused(const struct abi_step *step, u32 k)
{
    for (u32 i = 0; i < ABI_GROUP_BLOCKS; i++)
        if (step->pattern[i][k] != ABI_SLOT_EMPTY)
            return false;
    return !step->column[k] && !step->live[k];
}

/* A repeated step is a run, all of whose columns count, without patterns; its last repetition ends inside of the mask. */
static bool times_fit(const struct step_check *s, const struct abi_step *step)
{
    const uint64_t columns = (uint64_t)step->times * s->t->slots * ABI_TILE_COLS;
    if (step->times == 1)
        return true;
    for (u32 k = 0; k < s->t->slots; k++) {
        for (u32 i = 0; i < s->t->warpgroups; i++)
            if (step->pattern[i][k] >= ABI_SLOT_PATTERN)
                return false;
        if (step->live[k] != ~(u32)0)
            return false;
    }
    return step->times && step->run && step->column[0] + columns <= s->c.m->n;
}

static bool run_fits(const struct step_check *s, const struct abi_step *step)
{
    for (u32 k = 0; k < s->t->slots && step->run; k++)
        if (step->column[k] & ABI_GATHERED ||
            step->column[k] != step->column[0] + ABI_TILE_COLS * k)
            return false;
    return step->run <= 1;
}

static int check_steps(const struct step_check *s)
{
    for (uint64_t i = 0; i < s->t->n_steps; i++) {
        const struct abi_step *step = &s->t->steps[i];
        for (u32 k = 0; k < ABI_STEP_SLOTS; k++)
            if (k < s->t->slots ? !slot_fits(s, step, k) : !is_unused(step, k))
                return check_refuse(&s->c, "steps has a slot that leaves its tables", i);
        if (!run_fits(s, step))
            return check_refuse(&s->c, "steps is no run", i);
        if (!times_fit(s, step))
            return check_refuse(&s->c, "steps cannot be repeated", i);
    }
    return 0;
}

/* ---- groups ---- */

static bool takes_part(const struct abi_step *step, u32 row_block)
{
    u32 any = 0;
    for (u32 k = 0; k < ABI_STEP_SLOTS; k++)
        any |= step->pattern[row_block][k];
    return any != ABI_SLOT_EMPTY;
}

static bool in_turn_fits(const struct step_check *s, const struct abi_group *g)
{
    for (u32 i = 0; i < s->t->warpgroups && g->in_turn; i++) {
        for (u32 k = g->step; k < g->step + g->steps; k++)
            if (!takes_part(&s->t->steps[k], i))
                return false;
    }
    return g->in_turn <= 1;
}

/* Marks the item of row block k. A row block is one of the grid of 64 rows; a row alone is its group's only item. */
static bool take_item(const struct step_check *s, const struct abi_group *g, u32 k,
                      uint32_t which, uint8_t *seen)
{
    const struct plan_pass *p = s->c.p;
    const u32 i = g->item[k];
    if (i < p->item_first[which] || i >= p->item_first[which + 1] || k >= s->t->warpgroups ||
        seen[i]++)
        return false;
    const struct abi_item *item = &p->items[i];
    for (u32 other = 0; other < ABI_GROUP_BLOCKS && item->rows == 1; other++)
        if (other != k && g->item[other] != ABI_NO_ITEM)
            return false;
    return item->step == 1 && !item_merges(item) && item->rows <= ROWS &&
           (item->rows == 1 || (item->row0 % ROWS == 0 && !item->split));
}

static int check_group(const struct step_check *s, uint64_t at, uint32_t which, uint8_t *seen)
{
    const struct abi_group *g = &s->t->groups[at];
    u32 items = 0;
    if (!check_inside(g->step, g->steps, s->t->n_steps))
        return check_refuse(&s->c, "groups leaves the steps", at);
    for (u32 k = 0; k < ABI_GROUP_BLOCKS; k++) {
        if (g->item[k] == ABI_NO_ITEM)
            continue;
        items++;
        if (!take_item(s, g, k, which, seen))
            return check_refuse(&s->c, "groups names an item that is not its own", at);
    }
    if (!items || !g->cost)
        return check_refuse(&s->c, "groups is empty", at);
    return in_turn_fits(s, g) ? 0 : check_refuse(&s->c, "groups cannot take turns", at);
}

static int check_groups(const struct step_check *s)
{
    const uint32_t *first = s->t->group_first;
    const uint32_t masks = s->c.m->n_patterns;
    uint8_t *seen = memory_new(s->c.p->n_items, 1);
    int r = first[0] == 0 && first[masks] == s->t->n_groups
                ? 0
                : check_refuse(&s->c, "group_first does not fit the groups", 0);
    for (uint32_t which = 0; which < masks && r == 0; which++) {
        if (first[which] > first[which + 1] || first[which + 1] > s->t->n_groups)
            r = check_refuse(&s->c, "group_first does not ascend", which);
        for (uint64_t k = first[which]; r == 0 && k < first[which + 1]; k++)
            r = check_group(s, k, which, seen);
    }
    for (uint64_t k = 0; k < s->c.p->n_items && r == 0; k++)
        if (!seen[k] && !item_merges(&s->c.p->items[k]))
            r = check_refuse(&s->c, "items is in no group", k);
    free(seen);
    return r;
}

/* ---- work ---- */

static int check_layer(const struct step_check *s, uint32_t layer, uint64_t *base,
                       uint8_t *seen)
{
    const uint64_t *part = s->t->layer_work[layer];
    const uint32_t *at = s->c.m->at + (size_t)layer * s->c.m->heads, *first = s->t->group_first;
    for (uint32_t h = 0; h < s->c.m->heads; h++)
        base[h + 1] = base[h] + first[at[h] + 1] - first[at[h]];
    if (!check_inside(part[0], part[1], s->t->n_work) || part[1] != base[s->c.m->heads])
        return check_refuse(&s->c, "layer_work does not fit the work", layer);
    memset(seen, 0, part[1]);
    for (uint64_t k = part[0]; k < part[0] + part[1]; k++) {
        const struct abi_work w = s->t->work[k];
        if (w.head >= s->c.m->heads || w.item < first[at[w.head]] ||
            w.item >= first[at[w.head] + 1])
            return check_refuse(&s->c, "work names a group of another mask", k);
        if (seen[base[w.head] + w.item - first[at[w.head]]]++)
            return check_refuse(&s->c, "work repeats a group", k);
    }
    return 0;
}

static int check_work(const struct step_check *s)
{
    if (s->t->n_work > UINT32_MAX)
        return error_set(s->c.e, ERROR_INPUT, "%s: too much work", s->c.where);
    uint64_t *base = memory_new((size_t)s->c.m->heads + 1, sizeof *base);
    uint8_t *seen = memory_new(s->t->n_work, 1);
    int r = 0;
    for (uint32_t l = 0; l < s->c.m->layers && r == 0; l++)
        r = check_layer(s, l, base, seen);
    free(base);
    free(seen);
    return r;
}

int steps_check(const struct plan_steps *t, const struct plan_pass *p, const struct mask *m,
                const char *where, struct error *e)
{
    const struct step_check s = {{p, m, m->n, ROWS, where, e}, t};
    return check_steps(&s) < 0 || check_groups(&s) < 0 || check_work(&s) < 0 ? -1 : 0;
}
