/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/budgets/budget_plans.h"
#include "gen/emit/emit.h"
#include "gen/family/cuda_tiled.h"
#include "masks/base/memory.h"
#include <stdio.h>
#include <string.h>

/* ---- families ---- */

/* Families and the lengths that bring them about: 0 is a length that is not known. "parts" is the
   tiled family with what plans with split items need (as are others that say so), "tall" with row blocks of
   128 rows; those that are `bare` are without rows alone. */
static const struct family {
    const char *name;
    enum abi_dtype dtype;
    uint32_t length;
    bool usual;
    enum abi_bias bias;
    bool parts, bare;
} families[] = {
    {"float", ABI_F32, 0, true},
    {"resident", ABI_BF16, 64, false},
    {"resident", ABI_BF16, 128, true},
    {"resident", ABI_BF16, 186, false},
    {"resident", ABI_BF16, 234, false},
    {"resident", ABI_BF16, 396, false},
    {"resident", ABI_BF16, 96, false},  /* the longest of D = 256, */
    {"resident", ABI_BF16, 168, false}, /* of D = 128, */
    {"resident", ABI_BF16, 192, false}, /* of D = 80 and 96, backward too on 227 KiB */
    {"resident", ABI_BF16, 256, false}, /* of all, backward */
    {"resident", ABI_F16, 64, false},
    {"resident", ABI_F16, 96, false},
    {"resident", ABI_F16, 128, false},
    {"resident", ABI_F16, 168, false},
    {"resident", ABI_F16, 186, false},
    {"resident", ABI_F16, 192, false},
    {"resident", ABI_F16, 234, false},
    {"tiled", ABI_BF16, 0, true},
    {"tiled", ABI_F16, 0, false},
    {"parts", ABI_F16, 0, false, ABI_BIAS_NONE, true},
    {"tall", ABI_F16, 0, false},
    {"tall", ABI_F16, 0, false, ABI_BIAS_NONE, true},
    {"tiled", ABI_BF16, 0, false, .bare = true},
    {"tiled", ABI_F16, 0, false, .bare = true},
    {"parts", ABI_F16, 0, false, ABI_BIAS_NONE, true, true},
    {"tall", ABI_F16, 0, false, .bare = true},
    {"bias float", ABI_F32, 0, true, ABI_BIAS_ADD},
    {"bias float", ABI_F32, 0, true, ABI_BIAS_SCALE},
    {"bias tiled", ABI_BF16, 0, true, ABI_BIAS_ADD},
    {"bias tiled", ABI_BF16, 0, true, ABI_BIAS_SCALE},
    {"bias tiled", ABI_F16, 0, false, ABI_BIAS_SCALE},
    {"bias tiled", ABI_BF16, 0, false, ABI_BIAS_ADD, true},
    {"bias tiled", ABI_BF16, 0, false, ABI_BIAS_SCALE, true},
    {"bias tiled", ABI_BF16, 0, false, ABI_BIAS_ADD, .bare = true},
    {"bias tiled", ABI_BF16, 0, false, ABI_BIAS_SCALE, .bare = true},
    {"tf32", ABI_TF32, 0, false},
    {"bias tf32", ABI_TF32, 0, false, ABI_BIAS_ADD},
    {"bias tf32", ABI_TF32, 0, false, ABI_BIAS_SCALE},
};
enum { FAMILIES = sizeof families / sizeof *families };

const char *budget_family_of(const char *entry, const struct kernel_config *f)
{
    if (f->request.bias)
        return f->request.dtype == ABI_TF32         ? "bias tf32"
               : dtype_bytes(f->request.dtype) == 4 ? "bias float"
                                                    : "bias tiled";
    if (f->shared_rows || f->tall)
        return f->tall ? "tall" : "parts";
    if (dtype_bytes(f->request.dtype) == 4)
        return f->request.dtype == ABI_F32 ? "float" : "tf32";
    return strstr(entry, "_short_") ? "resident" : "tiled";
}

uint32_t budget_dim_index(uint32_t dim)
{
    uint32_t k = 0;
    while (k < DIMS && dims[k] != dim)
        k++;
    return k;
}

static bool is_slow(const struct family *f, uint32_t dim, enum abi_transform transform)
{
    for (uint32_t k = 0; k < SLOW; k++)
        if (!strcmp(slow[k].family, f->name) && slow[k].bias == f->bias && slow[k].dim == dim &&
            slow[k].transform == transform)
            return true;
    return false;
}

/* ---- which ---- */

static bool is_tall(const struct family *f)
{
    return !strcmp(f->name, "tall");
}

/* The usual run: every family at two targets, D = 64 with both transforms and 128 with softmax; D =
   64 with softmax at all other targets; tensor cores' D = 32 and 96 at one. With a bias, one of each. */
static bool is_usual_shape(uint32_t chip, const struct family *f, uint32_t dim,
                           enum abi_transform transform)
{
    if (is_tall(f))
        return chip < USUAL_CHIPS && dim == 128;
    if (!f->usual)
        return chip == 0 && f->dtype != ABI_BF16 && !f->bias && dim == 64 &&
               transform == ABI_SOFTMAX && (!f->length || f->length == 128);
    if (f->bias)
        return chip == 0 && dim == 64 && transform == ABI_SOFTMAX;
    if (dim == 64)
        return chip < USUAL_CHIPS || transform == ABI_SOFTMAX;
    if (dim == 32 || dim == 96)
        return chip == 0 && f->dtype == ABI_BF16 && transform == ABI_SOFTMAX;
    return dim == 128 && chip < USUAL_CHIPS && transform == ABI_SOFTMAX;
}

static bool is_tight(uint32_t chip, const struct family *f, uint32_t dim,
                     enum abi_transform transform, bool dropout)
{
    for (uint32_t k = 0; k < TIGHT; k++)
        if (!strcmp(tight[k].target, chips[chip].target) && !strcmp(tight[k].family, f->name) &&
            !f->bare && tight[k].bias == f->bias && tight[k].length == f->length &&
            tight[k].dim == dim && tight[k].transform == transform &&
            tight[k].plain != dropout && f->dtype == (tight[k].f16 ? ABI_F16 : ABI_BF16))
            return true;
    return false;
}

/* Half of these without dropout. At D = 256, where registers are fewest, those that take longest, and the
   others of the usual families without dropout. */
static bool is_usual(uint32_t chip, const struct family *f, uint32_t dim,
                     enum abi_transform transform, bool dropout)
{
    const bool plain = dim == 128 || chip >= USUAL_CHIPS || f->bias;
    if (is_tight(chip, f, dim, transform, dropout))
        return true;
    if (budget_dim_index(dim) == DIMS)
        return false;
    if (chip == 0 && is_slow(f, dim, transform) &&
        (f->usual || f->dtype != ABI_F16 || f->parts) && !f->bare)
        return dropout;
    if (chip == 0 && dim == 256 && f->usual && f->dtype == ABI_BF16 && !f->length)
        return !dropout && transform == ABI_SOFTMAX;
    return is_usual_shape(chip, f, dim, transform) && dropout != plain;
}

enum kind { KIND_TARGET, KIND_FAMILY, KIND_DIM };

static enum kind kind_of(const char *name)
{
    for (uint32_t c = 0; c < CHIPS; c++)
        if (!strcmp(chips[c].target, name))
            return KIND_TARGET;
    return name[0] >= '0' && name[0] <= '9' ? KIND_DIM : KIND_FAMILY;
}

static bool is_named(const char *const *named, const char *what)
{
    bool others = false;
    for (const char *const *name = named; *name; name++) {
        if (!strcmp(*name, what))
            return true;
        others |= kind_of(*name) == kind_of(what);
    }
    return !others;
}

static bool is_asked(bool all, const char *const *named, uint32_t chip, const struct family *f,
                     uint32_t dim, enum abi_transform transform, bool dropout)
{
    if ((is_tall(f) || f->parts) && transform == ABI_SPARSEGEN)
        return false;
    char number[16];
    snprintf(number, sizeof number, "%u", dim);
    return is_named(named, chips[chip].target) && is_named(named, f->name) &&
           is_named(named, number) && (all || is_usual(chip, f, dim, transform, dropout));
}

/* Whether the family is what such features bring about. */
static bool is_family(const struct chip *c, const struct family *f,
                      const struct kernel_config *x)
{
    struct error e;
    struct source *s = emit_source(target_find(c->target, &e), x);
    bool same = !strcmp(budget_family_of(s->launch.forward[0].entry, x), f->name);
    source_destroy(s);
    return same;
}

static void add(struct budget_plan **plan, uint32_t *count, uint32_t *capacity, uint32_t chip,
                const struct family *f, uint32_t dim, enum abi_transform transform,
                bool dropout)
{
    struct kernel_config x = {.request = {.dtype = f->dtype,
                                          .transform = transform,
                                          .lambda = transform == ABI_SPARSEGEN ? -4 : 0,
                                          .head_dim = dim,
                                          .dropout = dropout,
                                          .backward = true,
                                          .bias = f->bias,
                                          .length = f->length}};
    x.shared_rows = f->parts;
    x.global_rows = !f->bare;
    x.cut_rows = f->parts && !f->bare;
    if (f->bare && tiled_has_row_pass(&x))
        return;
    x.tall = is_tall(f);
    if (x.tall && !(family_can(target_find(chips[chip].target, NULL), &x.request) & CAN_TALL))
        return;
    if (is_family(&chips[chip], f, &x))
        *MEMORY_PUSH(*plan, *count, *capacity) =
            (struct budget_plan){.chip = &chips[chip], .config = x};
}

struct budget_plan *budget_plans(bool all, const char *const *named, uint32_t *ret_count)
{
    struct budget_plan *plan = NULL;
    uint32_t count = 0, capacity = 0;
    for (uint32_t c = 0; c < CHIPS; c++)
        for (uint32_t f = 0; f < FAMILIES; f++)
            for (uint32_t d = 0; d < 4 * (DIMS + OTHER_DIMS); d++) {
                const uint32_t dim = d / 4 < DIMS ? dims[d / 4] : other_dims[d / 4 - DIMS];
                if (is_asked(all, named, c, &families[f], dim, d / 2 % 2, d % 2))
                    add(&plan, &count, &capacity, c, &families[f], dim, d / 2 % 2, d % 2);
            }
    *ret_count = count;
    return plan;
}
