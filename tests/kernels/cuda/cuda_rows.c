/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/cuda/cuda_rows.h"
#include "gen/key_shape.h"
#include "tests/support/test.h"
#include <stdio.h>

static const char *const family_names[] = {"float",        "tf32",       "resident bf16",
                                           "resident f16", "tiled bf16", "tiled f16"};
static const char *const key_names[] = {"", " shared keys", " fewer keys",
                                        " fewer queries, shared keys"};
static const enum abi_dtype dtypes[] = {ABI_F32, ABI_TF32, ABI_BF16,
                                        ABI_F16, ABI_BF16, ABI_F16};
/* Those that templates are compiled for, and those that are padded to 16 in the same text. */
static const uint32_t dims[] = {32, 64, 80, 96, 128, 256, 16, 40, 72, 200};

/* Head 1's mask, head 0's is below; on a second layer they are swapped. */
enum { STRIDED = 2 };
static const char *const others[] = {"window(1)", "blocks(2)", [STRIDED] = "strided(16)",
                                     "dense"};

/* Head 0's mask, its length for the tiled family, where long masks show more, and for the others. */
static const struct shape {
    const char *mask;
    uint32_t n, few;  /* few 0: tiled kernels alone */
    const char *with; /* not null: head 1's mask here */
} shapes[] = {
    {"window(4)|global(0)-diagonal(0)", 150, 61},
    {"causal", 260, 64},
    {"blocks(2)", 256, 64},
    {"rows(5,40)|columns(7)|distance(2,9)", 141, 45},
    {"stride(8)|diagonal(1)|rows(30)", 141, 60},
    {"strided(16)", 449, 33},
    {"rows(5,1620)|columns(7)|diagonal(0)", 1700, 0},
    {"summary(4, 1) - random(0.15, seed=4) | diagonal(0)", 100, 70},
    {"local(24) & ~window(1) - rows(0)", 97, 3},
    /* from here on for the pinned rows alone */
    {"rows(3)", 256, 0, "dense"},
    {"rows(5)", 1664, 0, "blocks(13)"},
    {"strided(16)", 512, 0, "dense"},
};
#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))
enum { PINNED = 3 };

const struct pairs_row cuda_pinned_rows[] = {
    {{[FAMILY] = TILED_BF16, [DROPOUT] = 1, [SCALE] = 1, [DIM] = 4, [MASK] = 1, [OTHER] = 3}},
    {{[FAMILY] = TILED_F16, [PASS] = 1, [DIM] = 5, [MASK] = 2, [OTHER] = 3}},
    {{[FAMILY] = TILED_BF16, [DIM] = 9, [MASK] = 2, [OTHER] = 3}},
    {{[FAMILY] = TILED_F16, [DIM] = 4, [MASK] = COUNT(shapes) - 3}},
    {{[FAMILY] = TILED_BF16, [DIM] = 4, [MASK] = COUNT(shapes) - 2}},
    {{[FAMILY] = TILED_F16, [PASS] = 1, [DIM] = 4, [MASK] = COUNT(shapes) - 1}},
};
const uint32_t cuda_n_pinned_rows = COUNT(cuda_pinned_rows);

bool cuda_row_is_resident(const struct pairs_row *r)
{
    return r->value[FAMILY] == RESIDENT_BF16 || r->value[FAMILY] == RESIDENT_F16;
}

bool cuda_row_is_tiled(const struct pairs_row *r)
{
    return r->value[FAMILY] >= TILED_BF16;
}

static bool allows(const struct pairs_row *r)
{
    const struct shape *s = &shapes[r->value[MASK]];
    const uint32_t dim = dims[r->value[DIM]];
    if (s->n > MANY && ((r->value[BIAS] && dim > 32) || r->value[OTHER] % 2 ||
                        (r->value[OTHER] == STRIDED && dim > 64)))
        return false; /* would take long: X is n x n, and other heads are dense, or nearly */
    if (r->value[KEYS] >= FEWER_KEYS &&
        (cuda_row_is_resident(r) || r->value[BIAS] || r->value[BATCH] >= 2))
        return false; /* what does not go with other numbers of keys, or goes elsewhere */
    return !(cuda_row_is_resident(r) && r->value[BIAS]) && (cuda_row_is_tiled(r) || s->few);
}

static uint32_t length_of(const struct pairs_row *r)
{
    const struct shape *s = &shapes[r->value[MASK]];
    return cuda_row_is_tiled(r) ? s->n : s->few;
}

static const char *other_of(const struct pairs_row *r)
{
    const struct shape *s = &shapes[r->value[MASK]];
    return s->with ? s->with : others[r->value[OTHER]];
}

/* The longer side is that of the square mask. */
static struct key_shape key_shape_of(const struct pairs_row *r, uint32_t *ret_queries)
{
    const uint32_t n = length_of(r), fewer = n - n / 4, keys = r->value[KEYS];
    *ret_queries = keys == FEWER_QUERIES ? fewer : n;
    return (struct key_shape){.heads = keys == SHARED_KEYS || keys == FEWER_QUERIES,
                              .length = keys == FEWER_KEYS      ? fewer
                                        : keys == FEWER_QUERIES ? n
                                                                : 0,
                              .align =
                                  keys == FEWER_QUERIES ? MASK_ALIGN_END : MASK_ALIGN_START};
}

struct mask *cuda_row_mask(const struct pairs_row *r, struct kernel_request *ret)
{
    uint32_t queries;
    struct error e = {0};
    const struct key_shape keys = key_shape_of(r, &queries);
    struct mask *m = covering_mask(r, shapes[r->value[MASK]].mask, other_of(r), length_of(r));
    *ret = covering_request(r, dtypes[r->value[FAMILY]], dims[r->value[DIM]]);
    if (key_shape_apply(&keys, queries, &m, ret, &e))
        fail_msg("%s", e.text);
    return m;
}

struct kernel_case cuda_row_case(const struct pairs_row *r, const struct mask *m,
                                 const struct kernel_request *f)
{
    return (struct kernel_case){.mask = shapes[r->value[MASK]].mask,
                                .own = m,
                                .n = m->n,
                                .request = *f,
                                .tiled = cuda_row_is_tiled(r),
                                .family = cuda_row_is_resident(r) ? "cuda_resident" : NULL};
}

void cuda_row_name(const struct pairs_row *r, char *ret, size_t capacity)
{
    const struct kernel_request f =
        covering_request(r, dtypes[r->value[FAMILY]], dims[r->value[DIM]]);
    char masks[160];
    snprintf(masks, sizeof masks, "%s, %s n=%u%s", shapes[r->value[MASK]].mask, other_of(r),
             length_of(r), key_names[r->value[KEYS]]);
    covering_name(r, &f, family_names[r->value[FAMILY]], masks, ret, capacity);
}

void cuda_rows_start(struct covering *c)
{
    uint32_t *values = c->pairs.values;
    covering_start(c, FACTORS);
    c->pairs.allows = allows;
    values[FAMILY] = FAMILIES;
    values[DIM] = COUNT(dims);
    values[MASK] = COUNT(shapes) - PINNED;
    values[OTHER] = COUNT(others);
    values[KEYS] = KEY_SHAPES;
}
