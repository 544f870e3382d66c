/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of pass_check(), one in each file, and the state that they share. */
#pragma once
#include "runtime/artifact/tables.h"

struct check {
    const struct plan_pass *p;
    const struct mask *m;
    uint32_t rows; /* queries, or keys in the transposed plan: at most the mask's */
    uint32_t block_rows;
    const char *where;
    struct error *e;
};

/* Sets the error "WHERE: entry INDEX of WHAT" and returns -1. */
int check_refuse(const struct check *c, const char *what, uint64_t index);

static inline bool check_inside(uint64_t first, uint64_t count, uint64_t size)
{
    return first <= size && count <= size - first;
}

/* Checks of a kind of piece. `columns` and `fits_item` are called only after its entries are known to be inside their table. */
struct check_kind {
    uint64_t (*size)(const struct plan_pass *p); /* of the table that it indexes */
    uint64_t (*columns)(const struct plan_pass *p, struct abi_piece piece);
    bool (*fits_item)(const struct plan_pass *p, struct abi_piece piece,
                      const struct abi_item *item);
};

extern const struct check_kind check_kinds[ABI_KINDS];

int check_tables(const struct check *c);   /* pieces, and the tables that they index */
int check_schedule(const struct check *c); /* work, heads, their order */
