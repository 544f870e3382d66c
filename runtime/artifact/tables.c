/* SPDX-License-Identifier: Apache-2.0 */
/* The plan's tables as typed tensors: each struct of templates/abi.h is a row of 32-bit words, so a
   table is stored as it lies in memory and any safetensors reader can print it. And what a target's code
   is called. */
#include "runtime/artifact/tables.h"
#include <stdio.h>
#include <string.h>

/* clang-format off */
void plan_tables(struct plan_pass *p, struct plan_extent *x, uint32_t block_rows,
                 struct plan_table ret[PLAN_TABLES])
{
    const struct plan_table tables[PLAN_TABLES] = {
        {"items",      "U32", sizeof *p->items / 4,  &p->items,      &p->n_items},
        {"pieces",     "U32", sizeof *p->pieces / 4, &p->pieces,     &p->n_pieces},
        {"ranges",     "U32", sizeof *p->ranges / 4, &p->ranges,     &p->n_ranges},
        {"tiles",      "U32", sizeof *p->tiles / 4,  &p->tiles,      &p->n_tiles},
        {"lines",      "I32", sizeof *p->lines / 4,  &p->lines,      &p->n_lines},
        {"gathers",    "U32", sizeof *p->gathers / 4, &p->gathers,   &p->n_gathers},
        {"columns",    "U32", 1,                     &p->columns,    &p->n_columns},
        {"patterns",   "U32", block_rows,            &p->patterns,   &p->n_patterns},
        {"work",       "U32", sizeof *p->work / 4,   &p->work,       &p->n_work},
        {"heads",      "U32", sizeof *p->heads / 4,  &p->heads,      &p->n_heads},
        {"item_first", "U32", 1,                     &p->item_first, &x->item_first},
        {"layer_work", "U64", 3,                     &p->layer_work, &x->layer_work},
    };
    memcpy(ret, tables, sizeof tables);
}

void step_tables(struct plan_steps *t, struct plan_extent *x,
                 struct plan_table ret[STEP_TABLES])
{
    const struct plan_table tables[STEP_TABLES] = {
        {"groups",      "U32", sizeof *t->groups / 4, &t->groups,      &t->n_groups},
        {"steps",       "U32", sizeof *t->steps / 4,  &t->steps,       &t->n_steps},
        {"work",        "U32", sizeof *t->work / 4,   &t->work,        &t->n_work},
        {"group_first", "U32", 1,                     &t->group_first, &x->item_first},
        {"layer_work",  "U64", 2,                     &t->layer_work,  &x->layer_work},
    };
    memcpy(ret, tables, sizeof tables);
}
/* clang-format on */

void image_name(const struct artifact_target *t, uint32_t index, char ret[IMAGE_NAME_BYTES])
{
    char number[12] = "";
    if (index)
        snprintf(number, sizeof number, "%u", index);
    snprintf(ret, IMAGE_NAME_BYTES, "%s/code%s", t->name, number);
}
