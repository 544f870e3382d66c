/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/cuda/cuda_traits.h"
#include "gen/family/family.h"
#include "gen/plan/plan.h"
#include "tests/support/machine/kernel_machine.h"
#include "tests/support/planned_work.h"
#include "tests/support/test.h"
#include <string.h>

const char *const cuda_trait_names[] = {"tiles",          "columns",    "rows",
                                        "blocks",         "diagonals",  "residue classes",
                                        "classes merged", "split rows", "tall row blocks"};

/* clang-format off */
#define BIT(x) (1u << (x))
enum {
    FLOATS = BIT(FLOAT) | BIT(TF32),
    RESIDENT = BIT(RESIDENT_BF16) | BIT(RESIDENT_F16),
    TILED = BIT(TILED_BF16) | BIT(TILED_F16),
};
/* Traits that a plan cannot have together, each with the reason. Factor TRAIT: other traits. */
static const struct never {
    enum trait trait;
    uint32_t factor;
    uint32_t values; /* bits */
    const char *why;
} nevers[] = {
    {COLUMNS, FAMILY, RESIDENT, "heads on chip are tiles alone"},
    {ROWS, FAMILY, RESIDENT, "the same"},
    {BLOCKS, FAMILY, RESIDENT, "the same"},
    {DIAGONALS, FAMILY, RESIDENT | TILED, "half dtypes have no diagonal kernels"},
    {CLASSES, FAMILY, FLOATS | RESIDENT, "only tiled kernels read index lists"},
    {MERGED, FAMILY, FLOATS | RESIDENT, "the same"},
    {SPLIT, FAMILY, FLOATS | RESIDENT, "only tiled kernels split rows"},
    {TALL, FAMILY, FLOATS | RESIDENT, "their row blocks have one height"},
    {DIAGONALS, TRAIT, BIT(CLASSES) | BIT(MERGED) | BIT(SPLIT) | BIT(TALL), "they are of other families"},
    {MERGED, TRANSFORM, BIT(1), "tau is known once all scores of a row are"},
    {SPLIT, TRANSFORM, BIT(1), "the same"},
    {MERGED, DIM, BIT(5) | BIT(9), "above 128 dQ walks twice, its state known before"},
    {SPLIT, DIM, BIT(6), "too little work at this length for a launch more"},
    {TALL, BIAS, BIT(1) | BIT(2), "X of a tall row block takes too many registers"},
    {TALL, DIM, BIT(2) | BIT(3) | BIT(8), "three blocks of 64 rows fit a processor, but one of 128"},
    {SPLIT, OTHER, BIT(1) | BIT(3), "heads as dense as these would take long here"},
};
/* clang-format on */

static void add_traits(const struct plan_pass *p, bool *has)
{
    static const struct {
        uint32_t kind;
        enum trait trait;
    } kinds[] = {{ABI_TILES, TILES},   {ABI_COLUMNS, COLUMNS},    {ABI_ROWS, ROWS},
                 {ABI_BLOCKS, BLOCKS}, {ABI_DIAGONAL, DIAGONALS}, {ABI_RESIDUE, CLASSES}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        has[kinds[k].trait] |= (p->uses >> kinds[k].kind & 1) != 0;
    has[SPLIT] |= p->partial_slots != 0;
    has[MERGED] |= pass_merges(p);
}

void cuda_traits_find(const struct pairs_row *r, bool has[TRAITS])
{
    struct error e = {0};
    const struct target *t = target_find("sm_80", &e);
    struct kernel_request f;
    struct mask *m = cuda_row_mask(r, &f);
    f.length = cuda_row_is_tiled(r) ? 0 : m->n;
    const struct kernel_case c = cuda_row_case(r, m, &f);
    const struct plan_options o = {.family = c.family ? family_find(c.family, &e) : NULL};
    struct plan *p = plan_build(m, t, &f, kernel_machine(t, &f), &o, &e);
    if (!p)
        fail_msg("%s", e.text);
    memset(has, 0, TRAITS * sizeof *has);
    add_traits(&p->forward, has);
    if (f.backward)
        add_traits(&p->transposed, has);
    has[TALL] = p->block_rows == 128;
    plan_destroy(p);
    mask_destroy(m);
}

const char *cuda_never_why(uint32_t t, uint32_t f, uint32_t v)
{
    for (size_t k = 0; k < sizeof nevers / sizeof *nevers; k++) {
        const struct never *x = &nevers[k];
        bool same = x->trait == t && x->factor == f && x->values & BIT(v);
        if (same || (f == TRAIT && x->factor == f && x->trait == v && x->values & BIT(t)))
            return x->why;
    }
    return NULL;
}
