/* SPDX-License-Identifier: Apache-2.0 */
/* Takes parts of the container for the reader of kernel files: tensors of the expected type and
   shape, JSON values, and the mask, rebuilt and checked to be canonical. */
#include "masks/base/memory.h"
#include "runtime/artifact/tables.h"
#include <stdlib.h>
#include <string.h>

int artifact_take(struct reader *r, const char *name, const char *dtype, uint64_t columns,
                  void *ret, uint64_t *ret_rows)
{
    const uint32_t rank = columns ? 2 : 1;
    const struct safetensor *t = safetensors_find(r->file, name);
    memcpy(ret, &(void *){NULL}, sizeof(void *));
    *ret_rows = 0;
    if (!t)
        return 0;
    r->taken++;
    if (strcmp(t->dtype, dtype) || t->rank != rank || (rank == 2 && t->shape[1] != columns))
        return error_set(r->e, ERROR_INPUT, "%s: '%s' is not %s with %llu columns", r->path,
                         name, dtype, (unsigned long long)(columns ? columns : 1));
    if ((uintptr_t)t->data % safetensors_dtype_bytes(dtype))
        return error_set(r->e, ERROR_INPUT, "%s: '%s' is not aligned", r->path, name);
    memcpy(ret, &t->data, sizeof t->data);
    *ret_rows = t->shape[0];
    return 0;
}

struct datum *artifact_take_json(struct reader *r, const char *key)
{
    char why[DATUM_WHY_BYTES];
    const char *text = safetensors_metadata(r->file, key);
    struct datum *j = text ? datum_parse(text, strlen(text), why) : NULL;
    if (!j)
        error_set(r->e, ERROR_INPUT, "%s: '%s' is missing or not JSON", r->path, key);
    return j;
}

/* One pattern from its row index and runs, or null where they are not the canonical form. */
static struct pattern *read_pattern(uint32_t n, const uint64_t *row, const struct run *run,
                                    uint64_t n_runs)
{
    struct pattern *p = pattern_new(n);
    bool ok = row[0] == 0 && row[n] <= n_runs;
    for (uint32_t i = 0; i < n && ok; i++) {
        ok = row[i] <= row[i + 1] && row[i + 1] <= n_runs;
        uint32_t free_from = 0; /* the least key that the next run may begin at */
        for (uint64_t k = row[i]; ok && k < row[i + 1]; k++) {
            ok = run[k].begin >= free_from && run[k].begin < run[k].end && run[k].end <= n &&
                 pattern_add(p, i, run[k].begin, run[k].end);
            free_from = run[k].end + 1;
        }
        pattern_row(p, i);
    }
    if (ok)
        return pattern_finish(p);
    pattern_destroy(p);
    return NULL;
}

struct mask_tensors {
    uint32_t n, layers, heads, n_patterns;
    const uint32_t *at;
    const uint64_t *row;
    const struct run *run;
    uint64_t n_runs;
    const char *source;
};

/* Patterns in the order of their first use, each used. */
static bool at_is_ordered(const struct mask_tensors *t)
{
    uint32_t seen = 0;
    for (size_t k = 0; k < (size_t)t->layers * t->heads; k++) {
        if (t->at[k] > seen)
            return false;
        seen += t->at[k] == seen;
    }
    return seen == t->n_patterns;
}

static struct mask *build_mask(const struct mask_tensors *t)
{
    struct pattern **made = memory_new(t->n_patterns, sizeof *made);
    struct pattern **given = memory_new((size_t)t->layers * t->heads, sizeof *given);
    struct mask *m = NULL;
    uint64_t done = 0;
    uint32_t p = 0;
    for (; p < t->n_patterns; p++) {
        const uint64_t *row = t->row + (size_t)p * (t->n + 1);
        const struct run *run = t->run ? t->run + done : NULL; /* null: no pattern has runs */
        made[p] = read_pattern(t->n, row, run, t->n_runs - done);
        if (!made[p])
            goto out;
        done += row[t->n];
    }
    if (done != t->n_runs)
        goto out;
    for (size_t k = 0; k < (size_t)t->layers * t->heads; k++)
        given[k] = made[t->at[k]];
    m = mask_new(t->layers, t->heads, given, t->source);
    p = 0; /* the mask owns them now */
out:
    while (p)
        pattern_destroy(made[--p]);
    free(made);
    free(given);
    return m;
}

/* Columns of a tensor of rank 2 that must be there; 0 where it is not. */
static uint64_t columns_of(const struct reader *r, const char *name)
{
    const struct safetensor *t = safetensors_find(r->file, name);
    return t && t->rank == 2 && t->shape[0] ? t->shape[1] : 0;
}

static int take_mask_tensors(struct reader *r, struct mask_tensors *ret)
{
    uint64_t heads = columns_of(r, "mask/at"), row = columns_of(r, "mask/rows");
    uint64_t layers, n_patterns;
    if (artifact_take(r, "mask/at", "U32", heads, &ret->at, &layers) < 0 ||
        artifact_take(r, "mask/rows", "U64", row, &ret->row, &n_patterns) < 0 ||
        artifact_take(r, "mask/runs", "U32", 2, &ret->run, &ret->n_runs) < 0)
        return -1;
    if (heads < 1 || heads > MASK_MAX_HEADS || layers < 1 || layers > MASK_MAX_LAYERS ||
        row < 2 || row > PATTERN_MAX_N + 1 || n_patterns < 1 || n_patterns > layers * heads)
        return error_set(r->e, ERROR_INPUT, "%s: the mask's sizes are out of range", r->path);
    ret->n = (uint32_t)row - 1;
    ret->n_patterns = (uint32_t)n_patterns;
    ret->layers = (uint32_t)layers;
    ret->heads = (uint32_t)heads;
    return 0;
}

struct mask *artifact_take_mask(struct reader *r)
{
    struct mask_tensors t = {0};
    struct datum *j = artifact_take_json(r, "mask");
    struct mask *m = NULL;
    if (!j || take_mask_tensors(r, &t) < 0)
        goto out;
    t.source = datum_text(datum_member(j, "source"));
    if (t.source && datum_integer(datum_member(j, "length")) == t.n && at_is_ordered(&t))
        m = build_mask(&t);
    /* Two equal patterns were merged: the plan's tables count them as two. */
    if (m && m->n_patterns != t.n_patterns) {
        mask_destroy(m);
        m = NULL;
    }
    if (!m)
        error_set(r->e, ERROR_INPUT, "%s: the mask is not in order", r->path);
out:
    datum_destroy(j);
    return m;
}
