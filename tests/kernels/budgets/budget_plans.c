/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/budgets/budget_plans.h"
#include "gen/emit/emit.h"
#include "gen/family/cuda_tiled.h"
#include "gen/family/family.h"
#include "masks/base/memory.h"
#include <stdio.h>
#include <string.h>

/* ---- families ---- */

/* Families and the lengths that bring them about: 0 is a length that is not known. "parts" is the
   tiled family with what plans with split items need (as are others that say so), "tall" with row blocks of
   128 rows; those that are `bare` are without rows alone, those that are `shaped` have fewer key heads and, where that
   may be, other numbers of keys. */
static const struct family {
    const char *name;
    enum abi_dtype dtype;
    uint32_t length;
    bool usual;
    enum abi_bias bias;
    bool parts, bare, shaped;
    uint32_t step_shape; /* of every pass of cuda_hopper that has it */
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
    {"parts", ABI_BF16, 0, false, ABI_BIAS_NONE, true},
    {"tall", ABI_BF16, 0, false},
    {"tall", ABI_BF16, 0, false, ABI_BIAS_NONE, true},
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
    {"float", ABI_F32, 0, false, .shaped = true},
    {"tf32", ABI_TF32, 0, false, .shaped = true},
    {"resident", ABI_BF16, 128, false, .shaped = true},
    {"resident", ABI_F16, 234, false, .shaped = true},
    {"tiled", ABI_BF16, 0, false, .shaped = true},
    {"parts", ABI_F16, 0, false, ABI_BIAS_NONE, true, .shaped = true},
    {"tall", ABI_F16, 0, false, .shaped = true},
    {"tall", ABI_F16, 0, false, ABI_BIAS_NONE, true, .shaped = true},
    {"bias float", ABI_F32, 0, false, ABI_BIAS_ADD, .shaped = true},
    {"bias tiled", ABI_BF16, 0, false, ABI_BIAS_ADD, .shaped = true},
    {"bias tiled", ABI_BF16, 0, false, ABI_BIAS_SCALE, true, .shaped = true},
    {"hopper first", ABI_BF16, 0, true},
    {"hopper first", ABI_F16, 0, false},
    {"hopper second", ABI_BF16, 0, true, .step_shape = 1},
    {"hopper second", ABI_F16, 0, false, .step_shape = 1},
    {"hopper third", ABI_BF16, 0, true, .step_shape = 2},
    {"hopper first", ABI_BF16, 0, false, .shaped = true},
    {"hopper second", ABI_F16, 0, false, .parts = true, .shaped = true, .step_shape = 1},
    {"hopper first", ABI_F16, 0, false, .parts = true},
    {"hopper first", ABI_BF16, 0, false, .parts = true},
    {"hopper second", ABI_F16, 0, false, .parts = true, .step_shape = 1},
    {"hopper second", ABI_BF16, 0, false, .parts = true, .step_shape = 1},
    {"hopper third", ABI_F16, 0, false, .step_shape = 2},
    {"hopper third", ABI_F16, 0, false, .parts = true, .step_shape = 2},
    {"hopper third", ABI_BF16, 0, false, .parts = true, .step_shape = 2},
    {"hopper third", ABI_F16, 0, false, .shaped = true, .step_shape = 2},
};
enum { FAMILIES = sizeof families / sizeof *families };

static bool is_hopper(const char *name)
{
    return !strncmp(name, "hopper", strlen("hopper"));
}

const char *budget_family_of(const char *entry, const struct kernel_config *f)
{
    static const char *const shapes[] = {"hopper first", "hopper second", "hopper third"};
    if (f->forward && !strcmp(f->forward->name, "cuda_hopper"))
        return shapes[f->step_shape[0]];
    if (f->request.bias)
        return f->request.dtype == ABI_TF32         ? "bias tf32"
               : dtype_bytes(f->request.dtype) == 4 ? "bias float"
                                                    : "bias tiled";
    if (f->shared_rows || f->tall)
        return f->tall ? "tall" : "parts";
    if (dtype_bytes(f->request.dtype) == 4)
        return f->request.dtype == ABI_F32 ? "float" : "tf32";
    return strstr(entry, "_resident_") ? "resident" : "tiled";
}

uint32_t budget_dim_index(uint32_t dim)
{
    uint32_t k = 0;
    while (k < DIMS && dims[k] != dim)
        k++;
    return k;
}

/* A unit to compile if the options select it. */
struct candidate {
    uint32_t chip; /* its place in the table */
    const struct family *family;
    uint32_t dim;
    enum abi_transform transform;
    bool dropout;
};

static bool is_slow(const struct candidate *c)
{
    for (uint32_t k = 0; k < SLOW; k++)
        if (!strcmp(slow[k].family, c->family->name) && slow[k].bias == c->family->bias &&
            slow[k].dim == c->dim && slow[k].transform == c->transform)
            return true;
    return false;
}

/* ---- which ---- */

static bool is_tall(const struct family *f)
{
    return !strcmp(f->name, "tall");
}

/* The usual run: every family at two targets, D = 64 with both transforms and 128 with softmax; D = 64 with softmax
   at all other targets of the resident family, which what their blocks may take shapes, and at those of the newest
   chips, where ptxas has other instructions, of the tiled one; tensor cores' D = 32 and 96 at one. With a bias, one
   of each. Shaped ones of half dtypes at one target, D = 64. */
static bool is_usual_shape(const struct candidate *c)
{
    const struct family *f = c->family;
    const bool softmax = c->transform == ABI_SOFTMAX;
    if (is_hopper(f->name))
        return c->dim == 64 || c->dim == 128 || (c->dim == 96 && f->dtype == ABI_F16);
    if (f->shaped)
        return c->chip == 0 && c->dim == 64 && dtype_bytes(f->dtype) == 2 && !f->bias;
    if (is_tall(f))
        return c->chip < USUAL_CHIPS && c->dim == 128 && f->dtype == ABI_F16;
    if (!f->usual)
        return c->chip == 0 && f->dtype != ABI_BF16 && !f->bias && c->dim == 64 && softmax &&
               (!f->length || f->length == 128);
    if (f->bias)
        return c->chip == 0 && c->dim == 64 && softmax;
    if (c->dim == 64 && c->chip >= USUAL_CHIPS)
        return softmax && f->dtype == ABI_BF16 && (f->length || chips[c->chip].newest);
    if (c->dim == 64)
        return true;
    if (c->dim == 32 || c->dim == 96)
        return c->chip == 0 && f->dtype == ABI_BF16 && softmax;
    return c->dim == 128 && c->chip < USUAL_CHIPS && softmax;
}

static bool is_tight(const struct candidate *c)
{
    const struct family *f = c->family;
    for (uint32_t k = 0; k < TIGHT; k++)
        if (!strcmp(tight[k].target, chips[c->chip].target) &&
            !strcmp(tight[k].family, f->name) && !f->bare && !f->shaped &&
            tight[k].bias == f->bias && tight[k].length == f->length &&
            tight[k].dim == c->dim && tight[k].transform == c->transform &&
            tight[k].plain != c->dropout && f->dtype == (tight[k].f16 ? ABI_F16 : ABI_BF16))
            return true;
    return false;
}

/* Half of these without dropout. At D = 256, where registers are fewest, those that take longest, and the
   others of the usual families without dropout. */
static bool is_usual(const struct candidate *c)
{
    const struct family *f = c->family;
    const bool plain = c->dim == 128 || c->chip >= USUAL_CHIPS || f->bias;
    if (is_tight(c))
        return true;
    if (is_hopper(f->name))
        return is_usual_shape(c) && c->dropout != (f->dtype == ABI_F16) &&
               (!f->parts || f->dtype == ABI_F16);
    if (budget_dim_index(c->dim) == DIMS)
        return false;
    if (c->chip == 0 && !f->shaped && is_slow(c) &&
        (f->usual || f->dtype != ABI_F16 || f->parts) && !f->bare)
        return c->dropout;
    if (c->chip == 0 && c->dim == 256 && f->usual && f->dtype == ABI_BF16 && !f->length)
        return !c->dropout && c->transform == ABI_SOFTMAX;
    return is_usual_shape(c) && c->dropout != plain;
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

static bool is_asked(bool all, const char *const *named, const struct candidate *c)
{
    const struct family *f = c->family;
    if ((is_tall(f) || f->parts || is_hopper(f->name)) && c->transform == ABI_SPARSEGEN)
        return false;
    char number[16];
    snprintf(number, sizeof number, "%u", c->dim);
    return is_named(named, chips[c->chip].target) && is_named(named, f->name) &&
           is_named(named, number) && (all || is_usual(c));
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

struct budget_plans {
    struct budget_plan *plan;
    uint32_t count, capacity;
};

static void add_shape(struct kernel_request *r)
{
    r->kv_heads = 1;
    if (r->bias || r->length)
        return;
    r->queries = 1;
    r->keys = 2;
}

/* The config of cuda_hopper, where the family takes it and a pass has the shape. */
static bool add_hopper(const struct chip *chip, const struct family *f, struct kernel_config *x)
{
    const struct target *t = target_find(chip->target, NULL);
    const struct kernel_family *hopper = family_find("cuda_hopper", NULL);
    const struct step_shape *shape[STEP_SHAPES_MOST];
    bool found = false;
    x->shared_rows = x->global_rows = false;
    if (!hopper->applies(t, &x->request, FAMILY_FORWARD))
        return false;
    x->forward = x->backward = hopper;
    for (int pass = 0; pass < PASSES; pass++) {
        const uint32_t count = hopper->step_shapes(&x->request, (enum machine_pass)pass, shape);
        found |= f->step_shape < count;
        x->step_shape[pass] = f->step_shape < count ? f->step_shape : 0;
    }
    return found;
}

static void add(struct budget_plans *plans, const struct candidate *c)
{
    const struct family *f = c->family;
    const struct chip *chip = &chips[c->chip];
    struct kernel_config x = {.request = {.dtype = f->dtype,
                                          .transform = c->transform,
                                          .lambda = c->transform == ABI_SPARSEGEN ? -4 : 0,
                                          .head_dim = c->dim,
                                          .dropout = c->dropout,
                                          .backward = true,
                                          .bias = f->bias,
                                          .length = f->length}};
    if (f->shaped)
        add_shape(&x.request);
    x.shared_rows = f->parts;
    x.global_rows = !f->bare;
    x.cut_rows = f->parts && !f->bare;
    if (f->bare && tiled_has_row_pass(&x))
        return;
    x.tall = is_tall(f);
    if (x.tall && !(family_can(target_find(chip->target, NULL), &x) & CAN_TALL))
        return;
    if (is_hopper(f->name) && !add_hopper(chip, f, &x))
        return;
    if (is_family(chip, f, &x))
        *MEMORY_PUSH(plans->plan, plans->count, plans->capacity) =
            (struct budget_plan){.chip = chip, .config = x};
}

struct budget_plan *budget_plans(bool all, const char *const *named, uint32_t *ret_count)
{
    struct budget_plans plans = {0};
    for (uint32_t chip = 0; chip < CHIPS; chip++)
        for (uint32_t f = 0; f < FAMILIES; f++)
            for (uint32_t d = 0; d < 4 * (DIMS + OTHER_DIMS); d++) {
                const struct candidate c = {
                    .chip = chip,
                    .family = &families[f],
                    .dim = d / 4 < DIMS ? dims[d / 4] : other_dims[d / 4 - DIMS],
                    .transform = d / 2 % 2,
                    .dropout = d % 2,
                };
                if (is_asked(all, named, &c))
                    add(&plans, &c);
            }
    *ret_count = plans.count;
    return plans.plan;
}
