/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of gen/steps. */
#pragma once
#include "gen/steps/steps.h"
#include "gen/tables/pattern_index.h"

enum { STEP_ROWS = 64 /* of a row block */ };

/* Columns of a 32-column tile that an item visits. */
struct visited_tile {
    u32 tile;
    u32 live;    /* columns that some row of the item sees */
    u32 pattern; /* 0: all its rows see exactly these; else 1 + index */
};

/* Visits of an item: tiles ascending, each once, and gathers of the pass. */
struct visited {
    struct visited_tile *tiles;
    u32 *gathers; /* indices */
    uint64_t n_tiles, n_gathers, tiles_capacity, gathers_capacity;
};

/* Columns that a step may have in a slot, and what the row blocks of a group have there. */
struct slot {
    u32 column, live; /* as in struct abi_step */
    u32 has[ABI_GROUP_BLOCKS];
    u32 members; /* bit k: row block k has something there */
};

struct slot_list {
    struct slot *slot;
    uint64_t count, capacity;
};

/* Scratch while the steps of a pass are built. */
struct step_builder {
    const struct step_source *source;
    const struct step_shape *shape;
    struct pattern_index index;
    uint32_t tiles; /* of a row of the mask */
    u32 *words;     /* [tiles][STEP_ROWS], zeros between items */
    uint8_t *state; /* [tiles] enum tile_state, zeros between items */
    u32 *touched;   /* [tiles] */
    uint32_t n_touched;
    struct visited visited[ABI_GROUP_BLOCKS];
    struct slot_list slots, loose;            /* of a group */
    double step_price[1 << ABI_GROUP_BLOCKS]; /* of a step that these row blocks have */
    double *price;                            /* [tiles + 1], of pack.c */
    uint8_t *taken;                           /* [tiles + 1] */
};

/* Fills `ret` with the item's visits (visited.c). */
void visited_fill(struct step_builder *b, const struct abi_item *item, struct visited *ret);
/* All that the items of the group visit, as slots: tiles ascending, then gathers (groups.c). */
void group_slots(struct step_builder *b, const struct abi_group *g);
/* Prepares pack_steps() for the shape. */
void pack_begin(struct step_builder *b);
/* The slots of b as steps of the group (pack.c). */
void pack_steps(struct step_builder *b, struct abi_group *g, struct plan_steps *t);
/* The work lists of all layers (work.c). */
void steps_work(const struct step_source *s, struct plan_steps *t);
