/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/pipeline/measured_plans.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "runtime/base/cache.h"
#include "runtime/pipeline/calibration.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { VERSION = 1 };

/* ---- entries ---- */

void measured_key(const struct mask *m, const struct target *t, const struct kernel_request *r,
                  const struct machine *machine, const struct kernel_family *family,
                  char ret[33])
{
    struct text x = {0};
    text_add(&x, "%s %s %u %u %g %u %d %d %u\n%u %u %u\n", t->name, machine->name, r->dtype,
             r->transform, (double)r->lambda, r->head_dim, r->dropout, r->backward, r->bias,
             m->n, m->heads, m->layers);
    text_add(&x, "%s %u %u %u\n", family ? family->name : "-", r->kv_heads, r->queries,
             r->keys);
    for (uint32_t k = 0; k < m->n_patterns; k++)
        text_add(&x, "%016llx ", (unsigned long long)m->pattern[k]->hash);
    for (uint64_t k = 0; k < (uint64_t)m->layers * m->heads; k++)
        text_add(&x, "%u ", m->at[k]);
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = 0; k < RATES; k++)
            text_add(&x, "%.6g ", machine->rate[pass][k]);
    const XXH128_hash_t hash = XXH3_128bits(text_get(&x), x.length);
    snprintf(ret, 33, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    text_finish(&x);
}

static struct measured_entry *find(const struct measured_plans *p, const char *key)
{
    for (uint32_t k = 0; k < p->count; k++)
        if (!strcmp(p->entry[k].key, key))
            return &p->entry[k];
    return NULL;
}

const struct plan_choice *measured_find(const struct measured_plans *p, const char *key)
{
    const struct measured_entry *found = find(p, key);
    return found ? &found->choice : NULL;
}

struct plan_options measured_options(const struct measured_plans *p, const struct mask *m,
                                     const struct target *t, const struct kernel_request *r,
                                     const struct machine *machine,
                                     const struct kernel_family *family)
{
    char key[33];
    measured_key(m, t, r, machine, family, key);
    const struct plan_choice *c = measured_find(p, key);
    struct plan_options o = {.family = family};
    if (c) {
        o.forward = c->forward;
        o.transposed = c->transposed;
    }
    return o;
}

void measured_add(struct measured_plans *p, const char *key, const struct plan_choice *choice)
{
    struct measured_entry *to = find(p, key);
    if (!to && p->count == MEASURED_MOST)
        memmove(p->entry, p->entry + 1, --p->count * sizeof *p->entry);
    if (!to) {
        p->entry = memory_resize(p->entry, p->count + 1, sizeof *p->entry);
        to = &p->entry[p->count++];
    }
    *to = (struct measured_entry){.choice = *choice};
    snprintf(to->key, sizeof to->key, "%s", key);
}

void measured_finish(struct measured_plans *p)
{
    free(p->entry);
    *p = (struct measured_plans){0};
}

/* ---- text ---- */

static json_t *entries_json(const struct measured_plans *p)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < p->count; k++) {
        const struct measured_entry *x = &p->entry[k];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:f}", "key", x->key, "forward", x->choice.forward,
                            "transposed", x->choice.transposed, "seconds", x->choice.seconds));
    }
    return list;
}

/* Digest of the entries in jansson's compact format, independent of their writer. */
void measured_digest(const json_t *list, char ret[17])
{
    char *text = json_dumps(list, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS |
                                      JSON_REAL_PRECISION(9));
    snprintf(ret, 17, "%016llx",
             (unsigned long long)(text ? XXH3_64bits(text, strlen(text)) : 0));
    free(text);
}

char *measured_text(const struct measured_plans *p, const char *identity)
{
    char sum[17];
    json_t *list = entries_json(p);
    measured_digest(list, sum);
    json_t *j = json_pack("{s:i, s:s, s:s, s:o}", "measured_plans", VERSION, "cpu", identity,
                          "checksum", sum, "entries", list);
    char *text = json_dumps(j, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    json_decref(j);
    return text;
}

static bool read_word(const json_t *j, const char *name, char *ret, size_t capacity)
{
    const char *word = json_string_value(json_object_get(j, name));
    if (!word || strlen(word) >= capacity)
        return false;
    memcpy(ret, word, strlen(word) + 1);
    return true;
}

static bool read_entry(const json_t *j, struct measured_plans *ret)
{
    struct measured_entry x = {0};
    x.choice.seconds = json_number_value(json_object_get(j, "seconds"));
    if (!read_word(j, "key", x.key, sizeof x.key) || strlen(x.key) + 1 != sizeof x.key ||
        !read_word(j, "forward", x.choice.forward, sizeof x.choice.forward) ||
        !read_word(j, "transposed", x.choice.transposed, sizeof x.choice.transposed) ||
        !(x.choice.seconds > 0 && isfinite(x.choice.seconds)))
        return false;
    measured_add(ret, x.key, &x.choice);
    return true;
}

static const char *read_json(const json_t *j, const char *identity, struct measured_plans *ret)
{
    const char *name = json_string_value(json_object_get(j, "cpu"));
    const char *sum = json_string_value(json_object_get(j, "checksum"));
    const json_t *list = json_object_get(j, "entries");
    char expected[17];
    if (json_integer_value(json_object_get(j, "measured_plans")) != VERSION || !name || !sum ||
        !json_is_array(list) || json_array_size(list) > MEASURED_MOST)
        return "not measured plans of this version of maskc";
    if (strcmp(name, identity) != 0)
        return "measured on another machine";
    measured_digest(list, expected);
    if (strcmp(sum, expected) != 0)
        return "damaged: its checksum is wrong";
    for (size_t k = 0; k < json_array_size(list); k++)
        if (!read_entry(json_array_get(list, k), ret))
            return "damaged: an entry is none";
    return NULL;
}

int measured_parse(const void *bytes, uint64_t size, const char *identity,
                   struct measured_plans *ret, struct error *e)
{
    *ret = (struct measured_plans){0};
    json_t *j =
        size <= MEASURED_BYTES ? json_loadb(bytes, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const char *problem = read_json(j, identity, ret);
    json_decref(j);
    if (!problem)
        return 0;
    measured_finish(ret);
    return error_set(e, ERROR_INPUT, "%s", problem);
}

/* ---- the file ---- */

char *measured_path(void)
{
    char *path = calibration_path(CALIBRATION_CPU), *slash = strrchr(path, '/'), *ret = NULL;
    if (!slash || asprintf(&ret, "%.*s/measured-%s", (int)(slash - path), path,
                           slash + strlen("/calibration-")) < 0)
        ret = memory_text("");
    free(path);
    return ret;
}

int measured_load(struct measured_plans *ret, struct error *e)
{
    char *path = measured_path(), *identity = calibration_identity(CALIBRATION_CPU);
    struct file f = {0};
    int code = 0;
    *ret = (struct measured_plans){0};
    if (*path && !access(path, F_OK)) {
        code = file_open(path, &f, e);
        if (!code && measured_parse(f.bytes, f.size, identity, ret, e))
            code = error_prefix(e, "%s", path);
        file_close(&f);
    }
    free(path);
    free(identity);
    return code;
}

int measured_save(const struct measured_plans *p, struct error *e)
{
    if (calibration_prepare(e))
        return -1;
    char *path = measured_path(), *identity = calibration_identity(CALIBRATION_CPU);
    char *text = measured_text(p, identity);
    int code = text ? file_write(path, text, strlen(text), e)
                    : error_set(e, ERROR_INPUT, "%s: cannot be written as text", path);
    free(text);
    free(path);
    free(identity);
    return code;
}
