/* SPDX-License-Identifier: Apache-2.0 */
/* Groups and steps decoded and held against the mask: each active entry of an item's own rows is visited once and no other
   one, each item is in one group, and each layer's list has each group of each head once. Rows that an item does not own
   may be visited: nobody writes them. */
#include "gen/plan/check/checker.h"
#include "gen/steps/steps.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

struct step_checker {
    struct checker c; /* bits: of one item */
    const struct plan_steps *t;
    const struct step_shape *shape;
    u64 *expected;  /* [words] a row of the mask */
    bool *in_group; /* [items] */
};

static int fail(struct step_checker *s, const char *what, uint32_t row, uint32_t column)
{
    return checker_fail(&s->c, what, row, column);
}

/* Column `column` of row r; false where it is outside of the mask or visited before. */
static bool see(struct step_checker *s, u32 r, u32 column)
{
    if (column >= s->c.plan->n)
        return false;
    u64 *at = &s->c.bits[r * s->c.words + column / 64];
    const u64 bit = (u64)1 << column % 64;
    const bool fresh = !(*at & bit);
    *at |= bit;
    return fresh;
}

/* The columns of a slot that `word` has on, in row r. */
static bool see_word(struct step_checker *s, u32 r, u32 column, u32 word)
{
    const u32 *columns = s->c.pass->columns;
    for (; word; word &= word - 1) {
        const u32 bit = (u32)__builtin_ctz(word);
        const u64 place = (u64)(column & ~ABI_GATHERED) + bit;
        if (!(column & ABI_GATHERED)
                ? !see(s, r, (u32)place)
                : place >= s->c.pass->n_columns || !see(s, r, columns[place]))
            return false;
    }
    return true;
}

/* Marks the part that row block k takes in a slot of the step. Columns of the slot begin `past` columns further. */
static bool see_slot(struct step_checker *s, const struct abi_item *item,
                     const struct abi_step *step, u32 k, u32 slot, u32 past)
{
    const u32 has = step->pattern[k][slot], live = step->live[slot];
    const struct plan_pass *t = s->c.pass;
    if (has >= ABI_SLOT_PATTERN && has - ABI_SLOT_PATTERN >= t->n_patterns)
        return false;
    for (u32 r = 0; r < item->rows && has != ABI_SLOT_EMPTY; r++) {
        const u32 word =
            has == ABI_SLOT_FULL ? live : pass_pattern(t, has - ABI_SLOT_PATTERN + 1)[r];
        if (item_owns(item, r) &&
            (word & ~live || !see_word(s, r, step->column[slot] + past, word)))
            return false;
    }
    return true;
}

static bool see_step(struct step_checker *s, const struct abi_item *item,
                     const struct abi_step *step, u32 k)
{
    const u32 slots = s->shape->slots;
    bool plain = step->run;
    for (u32 slot = 0; slot < slots; slot++) {
        plain &= step->live[slot] == ~(u32)0 && step->pattern[k][slot] < ABI_SLOT_PATTERN;
        if (step->run && (step->column[slot] & ABI_GATHERED ||
                          step->column[slot] != step->column[0] + ABI_TILE_COLS * slot))
            return false;
    }
    if (!step->times || (step->times > 1 && !plain) ||
        (u64)step->times * slots * ABI_TILE_COLS > (u64)s->c.plan->n + slots * ABI_TILE_COLS)
        return false;
    for (u32 i = 0; i < step->times; i++)
        for (u32 slot = 0; slot < slots; slot++)
            if (!see_slot(s, item, step, k, slot, i * slots * ABI_TILE_COLS))
                return false;
    return true;
}

static void expect(struct step_checker *s, u32 begin, u32 end)
{
    for (u32 col = begin; col < end; col++)
        s->expected[col / 64] |= (u64)1 << col % 64;
}

/* The columns of a row: those of the mask; of a part of a global row its ranges, which check_pieces() has passed. */
static void expect_row(struct step_checker *s, const struct abi_item *item, u32 row)
{
    const struct plan_pass *t = s->c.pass;
    memset(s->expected, 0, s->c.words * sizeof *s->expected);
    if (!item->split)
        for (uint64_t k = s->c.mask->row[row]; k < s->c.mask->row[row + 1]; k++)
            expect(s, s->c.mask->run[k].begin, s->c.mask->run[k].end);
    for (u32 k = item->piece; item->split && k < item->piece + item->pieces; k++)
        for (u32 i = t->pieces[k].first; i < t->pieces[k].first + t->pieces[k].count; i++)
            expect(s, t->ranges[i].begin, t->ranges[i].end);
}

static int check_rows(struct step_checker *s, const struct abi_item *item)
{
    const size_t bytes = s->c.words * sizeof *s->expected;
    for (u32 r = 0; r < item->rows; r++) {
        const u32 row = item->row0 + r;
        expect_row(s, item, row);
        if (item_owns(item, r) && memcmp(s->expected, s->c.bits + r * s->c.words, bytes))
            return fail(s, "steps that are not the mask", row, 0);
    }
    return 0;
}

static int check_item(struct step_checker *s, const struct abi_group *g, u32 k)
{
    const struct abi_item *item = &s->c.pass->items[s->c.item];
    if (k >= s->shape->warpgroups || s->in_group[s->c.item] || item->step != 1 ||
        (item->split && item->rows != 1) || item_merges(item))
        return fail(s, "an item in a group that cannot have it", item->row0, k);
    if (item->rows == 1 && group_row_blocks(g) != 1)
        return fail(s, "a row that is not alone in its group", item->row0, k);
    s->in_group[s->c.item] = true;
    memset(s->c.bits, 0, s->c.words * s->c.plan->block_rows * sizeof *s->c.bits);
    for (u32 i = g->step; i < g->step + g->steps; i++) {
        const struct abi_step *step = &s->t->steps[i];
        if (!see_step(s, item, step, k))
            return fail(s, "a step that visits twice or outside of the mask", item->row0,
                        step->column[0]);
        if (g->in_turn && !step_has(step, k))
            return fail(s, "turns of a row block without a part", item->row0, step->column[0]);
    }
    return check_rows(s, item);
}

static int check_group(struct step_checker *s, const struct abi_group *g)
{
    const struct plan_pass *t = s->c.pass;
    s->c.item = 0;
    if (g->step > s->t->n_steps || g->steps > s->t->n_steps - g->step || !g->cost ||
        g->in_turn > 1 || !group_row_blocks(g) ||
        (g->in_turn && group_row_blocks(g) < s->shape->warpgroups))
        return fail(s, "a group outside of its tables", 0, 0);
    for (u32 k = 0; k < ABI_GROUP_BLOCKS; k++) {
        s->c.item = g->item[k];
        if (g->item[k] == ABI_NO_ITEM)
            continue;
        if (g->item[k] < t->item_first[s->c.which] ||
            g->item[k] >= t->item_first[s->c.which + 1])
            return fail(s, "an item of another mask in a group", 0, k);
        if (check_item(s, g, k))
            return -1;
    }
    return 0;
}

static int check_mask(struct step_checker *s)
{
    const u32 first = s->t->group_first[s->c.which], end = s->t->group_first[s->c.which + 1];
    if (first > end || end > s->t->n_groups)
        return fail(s, "groups outside of their table", 0, 0);
    for (u32 k = first; k < end; k++)
        if (check_group(s, &s->t->groups[k]))
            return -1;
    const struct plan_pass *t = s->c.pass;
    for (s->c.item = t->item_first[s->c.which]; s->c.item < t->item_first[s->c.which + 1];
         s->c.item++)
        if (s->in_group[s->c.item] == item_merges(&t->items[s->c.item]))
            return fail(s, "an item in no group", t->items[s->c.item].row0, 0);
    return 0;
}

/* The layer's list has each group of each head once. */
static int check_layer(struct step_checker *s, uint32_t layer, uint8_t *seen)
{
    const struct plan *p = s->c.plan;
    const uint32_t *at = p->at + (size_t)layer * p->heads;
    const uint64_t first = s->t->layer_work[layer][0], count = s->t->layer_work[layer][1];
    uint64_t expected = 0;
    for (uint32_t h = 0; h < p->heads; h++)
        expected += s->t->group_first[at[h] + 1] - s->t->group_first[at[h]];
    if (first > s->t->n_work || count > s->t->n_work - first || count != expected)
        return fail(s, "a work list of another length than its groups", layer, 0);
    memset(seen, 0, s->t->n_groups * p->heads);
    for (uint64_t k = first; k < first + count; k++) {
        const struct abi_work w = s->t->work[k];
        if (w.head >= p->heads || w.item < s->t->group_first[at[w.head]] ||
            w.item >= s->t->group_first[at[w.head] + 1] ||
            seen[w.head * s->t->n_groups + w.item]++)
            return fail(s, "work that is not a group of its head, or done twice", w.head,
                        w.item);
    }
    return 0;
}

static int check_layers(struct step_checker *s)
{
    uint8_t *seen = memory_new(s->t->n_groups * s->c.plan->heads, 1);
    int failed = 0;
    for (uint32_t l = 0; l < s->c.plan->layers && !failed; l++)
        failed = check_layer(s, l, seen);
    free(seen);
    return failed;
}

static int check_masks(struct step_checker *s, const struct mask *m, bool transposed)
{
    int failed = 0;
    for (s->c.which = 0; s->c.which < s->c.plan->n_masks && !failed; s->c.which++) {
        struct pattern *transpose =
            transposed ? pattern_transpose(m->pattern[s->c.which], s->c.e) : NULL;
        s->c.mask = transposed ? transpose : m->pattern[s->c.which];
        failed = s->c.mask ? check_mask(s) : -1;
        pattern_destroy(transpose);
    }
    return failed ? failed : check_layers(s);
}

int check_steps(const struct plan *p, enum machine_pass pass, const struct mask *m,
                struct error *e)
{
    const struct step_shape *shape[STEP_SHAPES_MOST];
    const bool transposed = pass == PASS_DKV;
    const uint32_t count = family_step_shapes(p->target, &p->config, pass, shape);
    struct step_checker s = {.c = {.plan = p, .e = e}, .t = &p->steps[pass]};
    if (!count)
        return 0;
    s.c.direction = pass_names[pass];
    s.c.pass = transposed ? &p->transposed : &p->forward;
    s.c.words = (p->n + 63) / 64;
    s.shape = shape[p->config.step_shape[pass]];
    if (s.shape->warpgroups != s.t->warpgroups || s.shape->slots != s.t->slots)
        return fail(&s, "steps of another shape", 0, 0);
    s.c.bits = memory_new(s.c.words * p->block_rows, sizeof *s.c.bits);
    s.expected = memory_new(s.c.words, sizeof *s.expected);
    s.in_group = memory_new(s.c.pass->n_items, sizeof *s.in_group);
    const int failed = check_masks(&s, m, transposed);
    free(s.c.bits);
    free(s.expected);
    free(s.in_group);
    return failed;
}
