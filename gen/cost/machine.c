/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of machines. The CPU rows are measured on one core of a Sapphire Rapids server with the
   templates of this tree; the CUDA rows are estimates from data sheets until a GPU was measured. */
#include "gen/cost/machine.h"
#include <string.h>

const struct machine machines[] = {
    {
        .name = "x86-avx512",
        .kind = TARGET_CPU,
        .flops = 150e9,
        .exps = 6.4e9,
        .bytes = 14e9,
        .tile_flop = 8.0e-12,
        .tile_entry = 0.35e-9,
        .tile_mask = 0.06e-9,
        .line_entry = 1.0e-9,
        .line_flop = 1.6e-11,
        .line = 12e-9,
        .line_row = 4e-9,
        .row_entry = 0.5e-9,
        .row_flop = 1.2e-11,
        .row_item = 120e-9,
        .row_range = 16e-9,
        .item = 900e-9,
        .pack_element = 0.3e-9,
        .launch = 2e-6,
        .backward_ratio = 3.8,
        .workers = 1,
    },
    {
        .name = "x86-avx2",
        .kind = TARGET_CPU,
        .flops = 93e9,
        .exps = 3.2e9,
        .bytes = 14e9,
        .tile_flop = 1.33e-11,
        .tile_entry = 0.6e-9,
        .tile_mask = 0.1e-9,
        .line_entry = 1.2e-9,
        .line_flop = 2.0e-11,
        .line = 18e-9,
        .line_row = 5e-9,
        .row_entry = 0.8e-9,
        .row_flop = 1.6e-11,
        .row_item = 70e-9,
        .row_range = 20e-9,
        .item = 1000e-9,
        .pack_element = 0.35e-9,
        .launch = 2e-6,
        .backward_ratio = 3.8,
        .workers = 1,
    },
    {
        .name = "x86-sse",
        .kind = TARGET_CPU,
        .flops = 25e9,
        .exps = 1.6e9,
        .bytes = 14e9,
        .tile_flop = 5.0e-11,
        .tile_entry = 1.3e-9,
        .tile_mask = 0.2e-9,
        .line_entry = 1.6e-9,
        .line_flop = 5.5e-11,
        .line = 30e-9,
        .line_row = 8e-9,
        .row_entry = 1.5e-9,
        .row_flop = 5.0e-11,
        .row_item = 90e-9,
        .row_range = 30e-9,
        .item = 1500e-9,
        .pack_element = 0.5e-9,
        .launch = 2e-6,
        .backward_ratio = 3.8,
        .workers = 1,
    },
    {
        .name = "a100",
        .kind = TARGET_CUDA,
        .flops = 19.5e12,
        .exps = 2.4e12,
        .bytes = 1.4e12,
        .tile_flop = 1.8e-10,
        .tile_entry = 2.0e-9,
        .tile_mask = 0.2e-9,
        .line_entry = 4.0e-9,
        .line_flop = 3.6e-10,
        .line = 60e-9,
        .line_row = 10e-9,
        .row_entry = 4.0e-9,
        .row_flop = 3.0e-10,
        .row_item = 2000e-9,
        .row_range = 300e-9,
        .item = 3000e-9,
        .pack_element = 0,
        .launch = 4e-6,
        .backward_ratio = 3.8,
        .workers = 432,
    },
    {
        .name = "h100",
        .kind = TARGET_CUDA,
        .flops = 67e12,
        .exps = 3.7e12,
        .bytes = 2.95e12,
        .tile_flop = 1.2e-10,
        .tile_entry = 1.4e-9,
        .tile_mask = 0.15e-9,
        .line_entry = 3.0e-9,
        .line_flop = 2.6e-10,
        .line = 45e-9,
        .line_row = 8e-9,
        .row_entry = 3.0e-9,
        .row_flop = 2.2e-10,
        .row_item = 1500e-9,
        .row_range = 200e-9,
        .item = 2500e-9,
        .pack_element = 0,
        .launch = 4e-6,
        .backward_ratio = 3.8,
        .workers = 528,
    },
    {.name = NULL},
};

const struct machine *machine_find(const char *name, struct error *e)
{
    char known[128] = "";
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
