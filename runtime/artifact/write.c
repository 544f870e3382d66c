/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of kernel files: names tensors and metadata, then lets safetensors lay them out and
   puts the checksum in. Empty tables are left out: a missing tensor is an empty one. */
#include "runtime/artifact/write.h"
#include "masks/base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Buffers that must live until the file is laid out. */
struct writer {
    struct safetensors file;
    void **kept;
    size_t n_kept, kept_capacity;
};

static void *keep(struct writer *w, void *buffer)
{
    *MEMORY_PUSH(w->kept, w->n_kept, w->kept_capacity) = buffer;
    return buffer;
}

static void add_json(struct writer *w, const char *key, json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(value);
    safetensors_add_metadata(&w->file, key, text ? text : "");
    free(text);
}

static void add_number(struct writer *w, const char *key, uint32_t value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    safetensors_add_metadata(&w->file, key, text);
}

static void add_tensor(struct writer *w, const char *name, const char *dtype, uint64_t rows,
                       uint64_t columns, const void *data)
{
    uint64_t shape[] = {rows, columns};
    if (rows && columns)
        safetensors_add(&w->file, name, dtype, columns == 1 ? 1 : 2, shape, data);
}

/* A text that JSON can hold: file names may be any bytes, JSON is UTF-8. */
static json_t *plain_text(const char *text)
{
    json_t *j = json_string(text);
    if (j)
        return j;
    char *copy = memory_text(text);
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    j = json_string(copy);
    free(copy);
    return j;
}

/* Writes the row indices of every pattern one after another, then all runs: the mask's canonical form, unchanged. */
static void add_mask(struct writer *w, const struct mask *m)
{
    uint64_t n_runs = 0, done = 0;
    for (uint32_t p = 0; p < m->n_patterns; p++)
        n_runs += m->pattern[p]->n_runs;
    uint64_t *row = keep(w, memory_new((size_t)m->n_patterns * (m->n + 1), sizeof *row));
    struct run *run = keep(w, memory_new(n_runs, sizeof *run));
    for (uint32_t p = 0; p < m->n_patterns; p++) {
        const struct pattern *from = m->pattern[p];
        memcpy(row + (size_t)p * (m->n + 1), from->row, ((size_t)m->n + 1) * sizeof *row);
        if (from->n_runs)
            memcpy(run + done, from->run, from->n_runs * sizeof *run);
        done += from->n_runs;
    }
    safetensors_add(&w->file, "mask/at", "U32", 2, (uint64_t[]){m->layers, m->heads}, m->at);
    safetensors_add(&w->file, "mask/rows", "U64", 2,
                    (uint64_t[]){m->n_patterns, (uint64_t)m->n + 1}, row);
    add_tensor(w, "mask/runs", "U32", n_runs, 2, run);
    add_json(
        w, "mask",
        json_pack("{s:I, s:o}", "length", (json_int_t)m->n, "source", plain_text(m->source)));
}

static void add_tables(struct writer *w, const char *prefix, const struct plan_table *table,
                       int count)
{
    for (int k = 0; k < count; k++) {
        char name[64];
        void *data;
        memcpy(&data, table[k].data, sizeof data);
        snprintf(name, sizeof name, "%s/%s", prefix, table[k].name);
        add_tensor(w, name, table[k].dtype, *table[k].count, table[k].columns, data);
    }
}

static void add_pass(struct writer *w, const char *prefix, const struct plan_pass *p,
                     uint32_t block_rows, const struct mask *m)
{
    struct plan_pass copy = *p;
    struct plan_extent extent = {(uint64_t)m->n_patterns + 1, m->layers};
    struct plan_table table[PLAN_TABLES];
    plan_tables(&copy, &extent, block_rows, table);
    add_tables(w, prefix, table, PLAN_TABLES);
}

static void add_steps(struct writer *w, uint32_t plan, const struct artifact_plan *p,
                      const struct mask *m)
{
    for (int k = 0; k < PASSES; k++) {
        struct plan_steps copy = p->steps[k];
        struct plan_extent extent = {(uint64_t)m->n_patterns + 1, m->layers};
        struct plan_table table[STEP_TABLES];
        char prefix[48];
        if (!copy.n_groups)
            continue;
        step_tables(&copy, &extent, table);
        snprintf(prefix, sizeof prefix, "plan%u/steps/%s", plan, pass_names[k]);
        add_tables(w, prefix, table, STEP_TABLES);
    }
}

/* Row blocks of a group and slots of a step, for each pass. */
static json_t *steps_json(const struct artifact_plan *p)
{
    json_t *list = json_array();
    for (int k = 0; k < PASSES; k++)
        json_array_append_new(list, json_pack("[I, I]", (json_int_t)p->steps[k].warpgroups,
                                              (json_int_t)p->steps[k].slots));
    return list;
}

static bool has_steps(const struct artifact_plan *p)
{
    return p->steps[PASS_FORWARD].n_groups || p->steps[PASS_DQ].n_groups ||
           p->steps[PASS_DKV].n_groups;
}

static json_t *pass_json(const struct plan_pass *p)
{
    return json_pack("{s:I, s:I, s:I}", "max_cols", (json_int_t)p->max_cols, "uses",
                     (json_int_t)p->uses, "seats", (json_int_t)p->partial_slots);
}

static void add_plans(struct writer *w, const struct artifact *a)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < a->n_plans; k++) {
        const struct artifact_plan *p = &a->plan[k];
        char name[32];
        snprintf(name, sizeof name, "plan%u/text", k);
        safetensors_add_metadata(&w->file, name, p->text ? p->text : "");
        snprintf(name, sizeof name, "plan%u/json", k);
        safetensors_add_metadata(&w->file, name, p->json ? p->json : "");
        snprintf(name, sizeof name, "plan%u/forward", k);
        add_pass(w, name, &p->forward, p->block_rows, a->mask);
        snprintf(name, sizeof name, "plan%u/transposed", k);
        if (a->request.backward)
            add_pass(w, name, &p->transposed, p->block_rows, a->mask);
        add_steps(w, k, p, a->mask);
        json_t *j = json_pack("{s:I, s:s, s:o, s:o}", "strip_rows", (json_int_t)p->block_rows,
                              "machine", p->machine, "forward", pass_json(&p->forward),
                              "transposed", pass_json(&p->transposed));
        if (has_steps(p))
            json_object_set_new(j, "steps", steps_json(p));
        json_array_append_new(list, j);
    }
    add_json(w, "plans", list);
}

static void add_targets(struct writer *w, const struct artifact *a)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < a->n_targets; k++) {
        const struct artifact_target *t = &a->target[k];
        char name[IMAGE_NAME_BYTES];
        json_array_append_new(list, target_json(t));
        for (uint32_t i = 0; i < t->n_images; i++) {
            image_name(t, i, name);
            add_tensor(w, name, "U8", t->image[i].size, 1, t->image[i].bytes);
        }
        snprintf(name, sizeof name, "%s/source", t->name);
        if (t->source)
            add_tensor(w, name, "U8", strlen(t->source), 1, t->source);
    }
    add_json(w, "targets", list);
}

uint8_t *artifact_write(const struct artifact *a, uint64_t *ret_size)
{
    struct writer w = {0};
    safetensors_add_metadata(&w.file, "format", "maskc kernel file");
    add_number(&w, "version", ARTIFACT_VERSION);
    add_number(&w, "abi", ABI_VERSION);
    safetensors_add_metadata(&w.file, "checksum", "00000000000000000000000000000000");
    add_json(&w, "features", kernel_request_json(&a->request));
    add_mask(&w, a->mask);
    if (a->order)
        add_tensor(&w, "mask/order", "U32", a->mask->n, 1, a->order);
    add_plans(&w, a);
    add_targets(&w, a);
    uint64_t size;
    uint8_t *bytes = safetensors_write(&w.file, &size);
    uint8_t *digits = checksum_find(bytes, size);
    if (!digits)
        abort(); /* the key was added above: only our own bug gets here */
    char sum[CHECKSUM_DIGITS + 1];
    checksum_compute(bytes, size, digits, sum);
    memcpy(digits, sum, CHECKSUM_DIGITS);
    safetensors_finish(&w.file);
    while (w.n_kept)
        free(w.kept[--w.n_kept]);
    free(w.kept);
    *ret_size = size;
    return bytes;
}
