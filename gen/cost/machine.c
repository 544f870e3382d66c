/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/cost/machine.h"
#include <string.h>

const char *const rate_names[RATES] = {
    [RATE_TILE_FLOP] = "tile_flop",
    [RATE_TILE_ENTRY] = "tile_entry",
    [RATE_TILE_MASK] = "tile_mask",
    [RATE_GATHER] = "gather",
    [RATE_LINE_ENTRY] = "line_entry",
    [RATE_LINE_FLOP] = "line_flop",
    [RATE_LINE] = "line",
    [RATE_LINE_ROW] = "line_row",
    [RATE_ROW_ENTRY] = "row_entry",
    [RATE_ROW_FLOP] = "row_flop",
    [RATE_ROW_ITEM] = "row_item",
    [RATE_ROW_RANGE] = "row_range",
    [RATE_FAR] = "far",
    [RATE_ITEM] = "item",
    [RATE_ITEM_ELEMENT] = "item_element",
    [RATE_PACK] = "pack",
    [RATE_STREAM] = "stream",
    [RATE_TILE_FAR] = "tile_far",
    [RATE_MIXED] = "mixed",
    [RATE_MIXED_ROW] = "mixed_row",
    [RATE_BIAS] = "soft",
    [RATE_BIAS_FLOP] = "soft_flop",
    [RATE_EXPOSED] = "exposed",
    [RATE_LOOP] = "loop",
    [RATE_PARTIAL] = "partial",
};

const char *const pass_names[PASSES] = {"forward", "dq", "dkv"};

const struct machine *machine_find(const char *name, struct error *e)
{
    char known[256] = "";
    for (const struct machine *m = machines; m->name; m++) {
        if (!strcmp(m->name, name))
            return m;
        if (*known)
            strncat(known, ", ", sizeof known - strlen(known) - 1);
        strncat(known, m->name, sizeof known - strlen(known) - 1);
    }
    error_set(e, ERROR_INPUT, "unknown machine '%.64s'; known are %s", name, known);
    return NULL;
}
