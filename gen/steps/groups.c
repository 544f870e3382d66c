/* SPDX-License-Identifier: Apache-2.0 */
/* Makes slots of the union of the columns that the row blocks of a group visit. Row blocks share the live columns of a slot;
   one that sees fewer of them has a pattern there. */
#include "gen/steps/internal.h"
#include "masks/base/memory.h"
#include <string.h>

/* Adds a pattern in which each of the item's own rows has these columns. */
static u32 uniform_pattern(struct step_builder *b, const struct abi_item *item, u32 live)
{
    u32 word[STEP_ROWS] = {0};
    for (u32 r = 0; r < item->rows; r++)
        word[r] = item->own[r / 32] >> (r % 32) & 1 ? live : 0;
    return pattern_intern(b->source->pass, &b->index, word, STEP_ROWS);
}

/* The slot of a tile from the lists of all row blocks; their places in `at` move past it. */
static struct slot merge_tile(struct step_builder *b, const struct abi_group *g, u32 tile,
                              uint64_t *at)
{
    const struct visited_tile *found[ABI_GROUP_BLOCKS] = {NULL};
    struct slot s = {.column = tile * ABI_TILE_COLS};
    for (u32 k = 0; k < ABI_GROUP_BLOCKS; k++) {
        const struct visited *v = &b->visited[k];
        if (at[k] >= v->n_tiles || v->tiles[at[k]].tile != tile)
            continue;
        found[k] = &v->tiles[at[k]++];
        s.live |= found[k]->live;
        s.members |= (u32)1 << k;
    }
    for (u32 k = 0; k < ABI_GROUP_BLOCKS; k++) {
        if (!found[k])
            continue;
        u32 pattern = found[k]->pattern;
        if (!pattern && found[k]->live != s.live)
            pattern = uniform_pattern(b, &b->source->pass->items[g->item[k]], found[k]->live);
        s.has[k] = pattern ? ABI_SLOT_PATTERN + pattern - 1 : ABI_SLOT_FULL;
    }
    return s;
}

/* First tile that is still in the list of some row block, or UINT32_MAX. */
static u32 next_tile(const struct step_builder *b, const uint64_t *at)
{
    u32 first = UINT32_MAX;
    for (u32 k = 0; k < ABI_GROUP_BLOCKS; k++)
        if (at[k] < b->visited[k].n_tiles && b->visited[k].tiles[at[k]].tile < first)
            first = b->visited[k].tiles[at[k]].tile;
    return first;
}

static void add_slot(struct slot_list *list, struct slot s)
{
    *MEMORY_PUSH(list->slot, list->count, list->capacity) = s;
}

/* Slot from `first` on with the same gathered columns that row block k does not use yet; or null. */
static struct slot *find_gather(const struct step_builder *b, uint64_t first, u32 k,
                                const struct abi_gather *g, u32 live)
{
    const u32 *columns = b->source->pass->columns;
    for (uint64_t i = first; i < b->slots.count; i++) {
        struct slot *s = &b->slots.slot[i];
        if (s->live == live && !(s->members >> k & 1) &&
            !memcmp(columns + (s->column & ~ABI_GATHERED), columns + g->first,
                    g->count * sizeof *columns))
            return s;
    }
    return NULL;
}

static void add_gather(struct step_builder *b, uint64_t first, u32 k,
                       const struct abi_gather *g)
{
    const u32 live = ~(u32)0 >> (ABI_TILE_COLS - g->count);
    struct slot *s = find_gather(b, first, k, g, live);
    if (!s) {
        add_slot(&b->slots, (struct slot){.column = ABI_GATHERED + g->first, .live = live});
        s = &b->slots.slot[b->slots.count - 1];
    }
    s->members |= (u32)1 << k;
    s->has[k] = g->pattern ? ABI_SLOT_PATTERN + g->pattern - 1 : ABI_SLOT_FULL;
}

void group_slots(struct step_builder *b, const struct abi_group *g)
{
    uint64_t at[ABI_GROUP_BLOCKS] = {0};
    for (u32 k = 0; k < ABI_GROUP_BLOCKS; k++) {
        b->visited[k].n_tiles = b->visited[k].n_gathers = 0;
        if (g->item[k] != ABI_NO_ITEM)
            visited_fill(b, &b->source->pass->items[g->item[k]], &b->visited[k]);
    }
    b->slots.count = 0;
    for (u32 tile; (tile = next_tile(b, at)) != UINT32_MAX;)
        add_slot(&b->slots, merge_tile(b, g, tile, at));
    const uint64_t first = b->slots.count;
    for (u32 k = 0; k < ABI_GROUP_BLOCKS; k++)
        for (uint64_t i = 0; i < b->visited[k].n_gathers; i++)
            add_gather(b, first, k, &b->source->pass->gathers[b->visited[k].gathers[i]]);
}
