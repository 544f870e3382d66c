/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the plans of a kernel file: tables, the sums that go with them, and steps. */
#include "runtime/artifact/tables.h"
#include <stdio.h>
#include <string.h>

static int take_all(struct reader *r, const char *prefix, const struct plan_table *table,
                    int count)
{
    for (int k = 0; k < count; k++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%s", prefix, table[k].name);
        if (artifact_take(r, name, table[k].dtype, table[k].columns == 1 ? 0 : table[k].columns,
                          table[k].data, table[k].count) < 0)
            return -1;
    }
    return 0;
}

static int take_tables(struct reader *r, const char *prefix, const struct mask *m,
                       uint32_t block_rows, struct plan_pass *ret)
{
    struct plan_extent extent = {0};
    struct plan_table table[PLAN_TABLES];
    plan_tables(ret, &extent, block_rows, table);
    if (take_all(r, prefix, table, PLAN_TABLES) < 0)
        return -1;
    if (extent.item_first != (uint64_t)m->n_patterns + 1 || extent.layer_work != m->layers)
        return error_set(r->e, ERROR_INPUT, "%s: %s does not fit the mask", r->path, prefix);
    return 0;
}

static int read_pass(struct reader *r, const struct datum *j, const char *prefix,
                     const struct artifact *a, uint32_t block_rows, bool transposed,
                     struct plan_pass *ret)
{
    const struct mask *m = a->mask;
    char where[512];
    int64_t max_cols = datum_integer(datum_member(j, "max_cols"));
    int64_t uses = datum_integer(datum_member(j, "uses"));
    int64_t partial_slots = datum_integer(datum_member(j, "seats"));
    snprintf(where, sizeof where, "%.400s: %s", r->path, prefix);
    if (take_tables(r, prefix, m, block_rows, ret) < 0)
        return -1;
    ret->max_cols = (uint32_t)max_cols;
    ret->uses = (uint32_t)uses;
    ret->partial_slots = (uint32_t)partial_slots;
    if (max_cols != ret->max_cols || uses != ret->uses || partial_slots != ret->partial_slots)
        return error_set(r->e, ERROR_INPUT, "%s: sums are out of range", where);
    return pass_check(ret, m, request_sides(&a->request, m->n, transposed).rows, block_rows,
                      where, r->e);
}

static int read_plan_texts(struct reader *r, uint32_t k, struct artifact_plan *ret)
{
    char name[32];
    snprintf(name, sizeof name, "plan%u/text", k);
    ret->text = (char *)safetensors_metadata(r->file, name);
    snprintf(name, sizeof name, "plan%u/json", k);
    ret->json = (char *)safetensors_metadata(r->file, name);
    return ret->text && ret->json
               ? 0
               : error_set(r->e, ERROR_INPUT, "%s: plan %u has no text", r->path, k);
}

/* Steps of a pass; `shape`: row blocks of a group and slots of a step, or null: the kernels read items. */
static int read_steps(struct reader *r, const char *prefix, const struct datum *shape,
                      const struct mask *m, const struct plan_pass *pass,
                      struct plan_steps *ret)
{
    struct plan_extent extent = {0};
    struct plan_table table[STEP_TABLES];
    char where[512];
    const int64_t warpgroups = datum_integer(datum_at(shape, 0));
    const int64_t slots = datum_integer(datum_at(shape, 1));
    if (!shape || (!warpgroups && !slots))
        return 0;
    snprintf(where, sizeof where, "%.400s: %s", r->path, prefix);
    if (warpgroups < 1 || warpgroups > ABI_GROUP_BLOCKS || slots < 1 || slots > ABI_STEP_SLOTS)
        return error_set(r->e, ERROR_INPUT, "%s: groups or steps of an unknown shape", where);
    ret->warpgroups = (uint32_t)warpgroups;
    ret->slots = (uint32_t)slots;
    step_tables(ret, &extent, table);
    if (take_all(r, prefix, table, STEP_TABLES) < 0)
        return -1;
    if (extent.item_first != (uint64_t)m->n_patterns + 1 || extent.layer_work != m->layers)
        return error_set(r->e, ERROR_INPUT, "%s: does not fit the mask", where);
    return steps_check(ret, pass, m, where, r->e);
}

static int read_all_steps(struct reader *r, const struct datum *list, uint32_t plan,
                          const struct artifact *a, struct artifact_plan *ret)
{
    if (list && (datum_count(list) != PASSES || ret->block_rows != 64))
        return error_set(r->e, ERROR_INPUT, "%s: plan %u cannot have these steps", r->path,
                         plan);
    for (int k = 0; list && k < (a->request.backward ? PASSES : PASS_FORWARD + 1); k++) {
        char name[48];
        const bool transposed = k == PASS_DKV;
        snprintf(name, sizeof name, "plan%u/steps/%s", plan, pass_names[k]);
        if (read_steps(r, name, datum_at(list, (size_t)k), a->mask,
                       transposed ? &ret->transposed : &ret->forward, &ret->steps[k]) < 0)
            return -1;
    }
    return 0;
}

static int read_plan(struct reader *r, const struct datum *j, uint32_t k,
                     const struct artifact *a, struct artifact_plan *ret)
{
    char name[32];
    const char *machine = datum_text(datum_member(j, "machine"));
    int64_t rows = datum_integer(datum_member(j, "strip_rows"));
    if (!machine || strlen(machine) >= sizeof ret->machine || rows < 32 ||
        rows > ABI_MAX_BLOCK_ROWS || rows % 32)
        return error_set(r->e, ERROR_INPUT, "%s: plan %u is of an unknown shape", r->path, k);
    strcpy(ret->machine, machine);
    ret->block_rows = (uint32_t)rows;
    snprintf(name, sizeof name, "plan%u/forward", k);
    if (read_plan_texts(r, k, ret) < 0 || read_pass(r, datum_member(j, "forward"), name, a,
                                                    ret->block_rows, false, &ret->forward) < 0)
        return -1;
    snprintf(name, sizeof name, "plan%u/transposed", k);
    if (a->request.backward && read_pass(r, datum_member(j, "transposed"), name, a,
                                         ret->block_rows, true, &ret->transposed) < 0)
        return -1;
    return read_all_steps(r, datum_member(j, "steps"), k, a, ret);
}

int artifact_count_list(struct reader *r, const struct datum *list, const char *what,
                        uint32_t *ret)
{
    size_t count = datum_count(list);
    if (count < 1 || count > ARTIFACT_MAX_TARGETS)
        return error_set(r->e, ERROR_INPUT, "%s: %zu %s, not 1..%d", r->path, count, what,
                         ARTIFACT_MAX_TARGETS);
    *ret = (uint32_t)count;
    return 0;
}

int artifact_read_plans(struct reader *r, struct artifact *a)
{
    struct datum *list = artifact_take_json(r, "plans");
    int result = list ? artifact_count_list(r, list, "plans", &a->n_plans) : -1;
    for (uint32_t k = 0; result == 0 && k < a->n_plans; k++)
        result = read_plan(r, datum_at(list, (size_t)k), k, a, &a->plan[k]);
    datum_destroy(list);
    return result;
}
