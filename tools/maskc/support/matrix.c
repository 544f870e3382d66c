/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskc/support/matrix.h"
#include "masks/mask.h"
#include <string.h>

#define DTYPE(name)  (1u << ABI_##name)
#define MATRIX_TYPES (DTYPE(BF16) | DTYPE(F16))

/* clang-format off */
const struct support_feature support_features[] = {
    {.name = "softmax", .option = ""},
    {.name = "sparsegen", .option = "--transform sparsegen=-4", .options.transform = "sparsegen=-4"},
    {.name = "dropout", .option = "--dropout", .options.with_dropout = true},
    {.name = "soft bias", .option = "--soft bias", .options.bias = "bias"},
    {.name = "soft scale", .option = "--soft scale", .options.bias = "scale"},
    {.name = "key heads", .option = "--kv-heads 1", .options.kv_heads = 1},
    {.name = "key length", .option = "", .longer_keys = true},
    {.name = "soft + key length", .option = "--soft bias", .options.bias = "bias", .longer_keys = true},
    {.name = "D = 16", .option = "--head-dim 16", .options.head_dim = 16},
    {.name = "D = 128", .option = "--head-dim 128", .options.head_dim = 128},
    {.name = "D = 256", .option = "--head-dim 256", .options.head_dim = 256},
    {.name = "n = 128", .option = "", .length = 128},
    {.name = "n = 512", .option = "", .length = 512},
    {.name = "n = 8192", .option = "", .length = 8192},
    {.name = NULL},
};

const struct support_evidence support_evidence[] = {
    {{"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-bf16", "x86-64-amx"}, {"cpu_vector"}, DTYPE(F32) | MATRIX_TYPES,
     "every CPU with the instructions, in each run of the tests"},
    {{"x86-64-bf16"}, {"cpu_matrix"}, DTYPE(BF16), "AMD Zen 4 and Zen 5, in each run of the tests there"},
    {{"x86-64-amx"}, {"cpu_matrix"}, DTYPE(BF16),
     "Intel Sapphire Rapids; tests on other CPUs execute the tile instructions in software"},
    {{"sm_90a"}, {"cuda_simt"}, DTYPE(F32), "NVIDIA H100, revision b84ec2a"},
    {{"sm_90a"}, {"cuda_resident", "cuda_tiled"}, MATRIX_TYPES, "NVIDIA H100, revision b84ec2a"},
    {.where = NULL},
};
/* clang-format on */

static const uint32_t lengths[] = {128, 512, 2048, 8192};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

struct tried {
    bool taken; /* false: refused before any target is known */
    struct kernel_request request;
};

static struct tried try_request(const struct support_feature *f, enum abi_dtype dtype,
                                uint32_t length)
{
    struct options o = f->options;
    struct tried ret = {0};
    struct error e = {0};
    o.layer = -1;
    o.kv_length = f->longer_keys ? 2 * length : 0;
    if (options_request(&o, dtype_name(dtype), &ret.request, &e))
        return ret;
    struct mask *m = options_kernel_mask(&o, "dense", length, SUPPORT_HEADS, &ret.request, &e);
    ret.taken = m;
    ret.request.length = m ? m->n : 0;
    mask_destroy(m);
    return ret;
}

/* All requests of a type. */
struct requests {
    struct tried of[SUPPORT_FEATURES_MOST][LENGTHS];
};

static struct requests try_all(enum abi_dtype dtype)
{
    struct requests ret = {0};
    for (uint32_t f = 0; support_features[f].name; f++)
        for (uint32_t k = 0; k < LENGTHS; k++)
            if (!support_features[f].length || support_features[f].length == lengths[k])
                ret.of[f][k] = try_request(&support_features[f], dtype, lengths[k]);
    return ret;
}

static bool names(const char *const *list, const char *name, uint32_t most)
{
    for (uint32_t k = 0; k < most && list[k]; k++)
        if (!strcmp(list[k], name))
            return true;
    return false;
}

static enum support_status known_status(const struct target *t, const struct kernel_family *f,
                                        enum abi_dtype dtype)
{
    for (const struct support_evidence *e = support_evidence; e->where; e++)
        if (e->dtypes >> dtype & 1 && names(e->targets, t->name, SUPPORT_TARGETS_MOST) &&
            names(e->families, f->name, SUPPORT_FAMILIES_MOST))
            return SUPPORT_RUN;
    return SUPPORT_EMULATED;
}

static bool is_listed(const struct target *t, const struct kernel_request *r,
                      enum family_pass pass, const struct kernel_family *f)
{
    const struct kernel_family *list[FAMILIES_MOST];
    const uint32_t count = family_list(t, r, pass, list);
    for (uint32_t k = 0; k < count; k++)
        if (list[k] == f)
            return true;
    return false;
}

/* The first length at which the family is offered the pass; else the first at which it can be asked for it. */
static struct support_cell make_cell(const struct tried of[LENGTHS], const struct target *t,
                                     const struct kernel_family *f, enum family_pass pass)
{
    struct support_cell ret = {0};
    for (uint32_t k = 0; k < LENGTHS; k++) {
        const struct kernel_request *r = &of[k].request;
        struct error e = {0};
        if (!of[k].taken || kernel_request_check(r, t, &e) || !f->applies(t, r, pass))
            continue;
        const bool asked = !is_listed(t, r, pass, f);
        if (!ret.status || (ret.asked && !asked))
            ret = (struct support_cell){known_status(t, f, r->dtype), asked, lengths[k]};
    }
    return ret;
}

static bool other_computes(const struct tried of[LENGTHS], const struct target *t,
                           enum family_pass pass)
{
    for (const struct kernel_family *const *f = kernel_families; *f; f++)
        if (make_cell(of, t, *f, pass).status)
            return true;
    return false;
}

static bool make_cells(const struct requests *r, const struct target *t,
                       const struct kernel_family *f, enum family_pass pass,
                       struct support_cell ret[SUPPORT_FEATURES_MOST])
{
    bool some = false;
    for (uint32_t k = 0; support_features[k].name; k++) {
        ret[k] = make_cell(r->of[k], t, f, pass);
        some = some || ret[k].status;
        if (!ret[k].status && other_computes(r->of[k], t, pass))
            ret[k].status = SUPPORT_OTHER;
    }
    return some;
}

static bool same_cells(const struct support_cell *a, const struct support_cell *b)
{
    for (uint32_t k = 0; support_features[k].name; k++)
        if (a[k].status != b[k].status || a[k].asked != b[k].asked ||
            a[k].length != b[k].length)
            return false;
    return true;
}

/* Adds the target to a row from `first` on that has the same cells, or a new row. */
static void add(const struct support_row *row, uint32_t first, struct support_row *list,
                uint32_t *count)
{
    for (uint32_t k = first; k < *count; k++)
        if (list[k].family == row->family && list[k].passes == row->passes &&
            same_cells(list[k].cell, row->cell)) {
            list[k].targets |= row->targets;
            return;
        }
    if (*count < SUPPORT_ROWS_MOST)
        list[(*count)++] = *row;
}

static void add_target(const struct requests *r, uint32_t target, struct support_row row,
                       uint32_t first, struct support_row *list, uint32_t *count)
{
    struct support_row back = row;
    row.targets = back.targets = 1u << target;
    const struct target *t = &targets[target];
    const bool forward = make_cells(r, t, row.family, FAMILY_FORWARD, row.cell);
    const bool backward = make_cells(r, t, row.family, FAMILY_BACKWARD, back.cell);
    const bool both = forward && backward && same_cells(row.cell, back.cell);
    row.passes = SUPPORT_FORWARD | (both ? SUPPORT_BACKWARD : 0);
    back.passes = SUPPORT_BACKWARD;
    if (forward)
        add(&row, first, list, count);
    if (backward && !both)
        add(&back, first, list, count);
}

/* A row for the targets that refuse the type itself. */
static void add_refused(const struct requests *r, enum abi_dtype dtype,
                        struct support_row *list, uint32_t *count)
{
    struct support_row row = {.dtypes = 1u << dtype,
                              .passes = SUPPORT_FORWARD | SUPPORT_BACKWARD};
    for (uint32_t t = 0; targets[t].name; t++) {
        struct error e = {0};
        if (kernel_request_check(&r->of[0][0].request, &targets[t], &e))
            row.targets |= 1u << t;
    }
    if (row.targets)
        add(&row, *count, list, count);
}

/* Makes one row of those from `first` on that differ in their type only. Returns how many remain. */
static uint32_t join_dtypes(struct support_row *list, uint32_t first, uint32_t count)
{
    uint32_t kept = first;
    for (uint32_t k = first; k < count; k++) {
        uint32_t same = first;
        while (same < kept &&
               (list[same].targets != list[k].targets || list[same].passes != list[k].passes ||
                !same_cells(list[same].cell, list[k].cell)))
            same++;
        if (same < kept)
            list[same].dtypes |= list[k].dtypes;
        else
            list[kept++] = list[k];
    }
    return kept;
}

uint32_t support_make(struct support_row ret[SUPPORT_ROWS_MOST])
{
    static const enum abi_dtype dtypes[] = {ABI_F32, ABI_TF32, ABI_BF16, ABI_F16};
    enum { TYPES = sizeof dtypes / sizeof *dtypes };
    struct requests r[TYPES];
    uint32_t count = 0;
    for (uint32_t d = 0; d < TYPES; d++)
        r[d] = try_all(dtypes[d]);
    for (const struct kernel_family *const *f = kernel_families; *f; f++) {
        const uint32_t first = count;
        for (uint32_t d = 0; d < TYPES; d++) {
            const struct support_row row = {.dtypes = 1u << dtypes[d], .family = *f};
            const uint32_t from = count;
            for (uint32_t t = 0; targets[t].name; t++)
                add_target(&r[d], t, row, from, ret, &count);
        }
        count = join_dtypes(ret, first, count);
    }
    for (uint32_t d = 0; d < TYPES; d++)
        add_refused(&r[d], dtypes[d], ret, &count);
    return count;
}

const char *support_passes(const struct support_row *row)
{
    static const char *const names_of[] = {"none", "forward", "backward", "both"};
    return names_of[row->passes & 3];
}

enum support_status support_status(const struct support_row *row)
{
    for (uint32_t k = 0; support_features[k].name; k++)
        if (row->cell[k].status > SUPPORT_OTHER)
            return row->cell[k].status;
    return SUPPORT_REFUSED;
}

const char *support_status_name(enum support_status status)
{
    static const char *const names_of[] = {"refused", "other", "emulated", "run"};
    return names_of[status];
}
