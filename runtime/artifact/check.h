/* SPDX-License-Identifier: Apache-2.0 */
/* Inside pass_check: the state of a check, and its parts, each a file. */
#pragma once
#include "runtime/artifact/tables.h"

struct check {
    const struct plan_pass *p;
    const struct mask *m;
    uint32_t block_rows;
    const char *where;
    struct error *e;
};

/* "WHERE: entry INDEX of WHAT"; returns -1. */
int check_refuse(const struct check *c, const char *what, uint64_t index);

static inline bool check_inside(uint64_t first, uint64_t count, uint64_t size)
{
    return first <= size && count <= size - first;
}

int check_tables(const struct check *c);   /* what pieces point into, and pieces */
int check_schedule(const struct check *c); /* work, heads, their order */
