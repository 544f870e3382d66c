/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/steps/internal.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

uint32_t group_row_blocks(const struct abi_group *g)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < ABI_GROUP_BLOCKS; k++)
        count += g->item[k] != ABI_NO_ITEM;
    return count;
}

static void add_group(struct step_builder *b, struct abi_group g, struct plan_steps *t)
{
    if (!group_row_blocks(&g))
        return;
    group_slots(b, &g);
    pack_steps(b, &g, t);
    *MEMORY_PUSH(t->groups, t->n_groups, t->groups_capacity) = g;
}

static struct abi_group no_items(void)
{
    struct abi_group g = {.steps = 0};
    for (uint32_t k = 0; k < ABI_GROUP_BLOCKS; k++)
        g.item[k] = ABI_NO_ITEM;
    return g;
}

/* Row blocks that lie side by side, as many as there are warpgroups; then each global row, or part of one, by itself. Items
   that merge parts are in no group: a launch after does them. */
static void add_mask(struct step_builder *b, u32 first, u32 end, struct plan_steps *t)
{
    const struct abi_item *items = b->source->pass->items;
    const u32 height = b->shape->warpgroups * STEP_ROWS;
    struct abi_group g = no_items();
    u32 current = 0;
    for (u32 i = first; i < end; i++) {
        if (items[i].rows == 1)
            continue;
        if (items[i].row0 / height != current) {
            add_group(b, g, t);
            g = no_items();
        }
        current = items[i].row0 / height;
        g.item[items[i].row0 % height / STEP_ROWS] = i;
    }
    add_group(b, g, t);
    for (u32 i = first; i < end; i++)
        if (items[i].rows == 1 && !item_merges(&items[i])) {
            g = no_items();
            g.item[0] = i;
            add_group(b, g, t);
        }
}

static struct step_builder begin(const struct step_source *s, const struct step_shape *shape)
{
    struct step_builder b = {.source = s, .shape = shape};
    b.tiles = (s->n + ABI_TILE_COLS - 1) / ABI_TILE_COLS;
    b.words = memory_new((size_t)b.tiles * STEP_ROWS, sizeof *b.words);
    b.state = memory_new(b.tiles, sizeof *b.state);
    b.touched = memory_new(b.tiles, sizeof *b.touched);
    b.price = memory_new((size_t)b.tiles + 1, sizeof *b.price);
    b.taken = memory_new((size_t)b.tiles + 1, sizeof *b.taken);
    return b;
}

static void finish(struct step_builder *b)
{
    for (uint32_t k = 0; k < ABI_GROUP_BLOCKS; k++) {
        free(b->visited[k].tiles);
        free(b->visited[k].gathers);
    }
    free(b->index.slot);
    free(b->words);
    free(b->state);
    free(b->touched);
    free(b->price);
    free(b->taken);
    free(b->slots.slot);
    free(b->loose.slot);
}

void steps_build(const struct step_source *s, const struct step_shape *shape,
                 struct plan_steps *ret)
{
    struct step_builder b = begin(s, shape);
    pack_begin(&b);
    ret->warpgroups = shape->warpgroups;
    ret->slots = shape->slots;
    ret->group_first = memory_new((size_t)s->n_masks + 1, sizeof *ret->group_first);
    for (uint32_t k = 0; k < s->n_masks; k++) {
        add_mask(&b, s->pass->item_first[k], s->pass->item_first[k + 1], ret);
        ret->group_first[k + 1] = (u32)ret->n_groups;
    }
    finish(&b);
    steps_work(s, ret);
}

void steps_finish(struct plan_steps *s)
{
    free(s->groups);
    free(s->steps);
    free(s->work);
    free(s->group_first);
    free(s->layer_work);
    *s = (struct plan_steps){0};
}
