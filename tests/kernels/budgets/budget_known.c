/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/budgets/budget_known.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPILED_ONE_IN = 32 };

/* A line of the file. A unit of no kernels has one with an empty entry. */
struct figure {
    struct cache_key key;
    struct kernel_resources kernel;
};

struct figures {
    struct figure *row;
    uint32_t count, capacity;
};

struct budget_known {
    struct figures before, given;
    pthread_mutex_t lock;
    bool wrong;
    uint32_t news;
};

static const char nothing[] = "-"; /* in place of an entry */

/* ---- the file ---- */

static struct figure read_figure(const char *line)
{
    struct figure f = {{0, 0}, {.registers = 0}};
    struct kernel_resources *k = &f.kernel;
    if (sscanf(line, "%16" SCNx64 "%16" SCNx64 " %39s %u %u %u %u", &f.key.high, &f.key.low,
               k->entry, &k->registers, &k->spill_bytes, &k->shared_bytes,
               &k->code_bytes) != 7) {
        fprintf(stderr, "known.txt: no figures: %s", line);
        abort();
    }
    if (!strcmp(k->entry, nothing))
        memset(k->entry, 0, sizeof k->entry);
    return f;
}

struct budget_known *budget_known_open(const char *path)
{
    struct budget_known *k = memory_new(1, sizeof *k);
    char line[256];
    FILE *f = path ? fopen(path, "r") : NULL;
    pthread_mutex_init(&k->lock, NULL);
    while (f && fgets(line, sizeof line, f))
        if (line[0] != '#')
            *MEMORY_PUSH(k->before.row, k->before.count, k->before.capacity) =
                read_figure(line);
    if (f)
        fclose(f);
    return k;
}

void budget_known_destroy(struct budget_known *k)
{
    if (!k)
        return;
    pthread_mutex_destroy(&k->lock);
    free(k->before.row);
    free(k->given.row);
    free(k);
}

/* Units in the order of their keys; kernels of one in the order in which they came. */
static int by_key(const void *a, const void *b)
{
    const struct figure *x = a, *y = b;
    int high = (x->key.high > y->key.high) - (x->key.high < y->key.high);
    int low = (x->key.low > y->key.low) - (x->key.low < y->key.low);
    return high ? high : low ? low : strcmp(x->kernel.entry, y->kernel.entry);
}

int budget_known_write(const struct budget_known *k, const char *path, struct error *e)
{
    struct text t = {0};
    text_add(&t, "# What NVRTC made of units (budget_known.h): key, entry, registers, bytes "
                 "spilled, shared, code.\n"
                 "# Written by resource_budgets_test --update.\n");
    qsort(k->given.row, k->given.count, sizeof *k->given.row, by_key);
    for (uint32_t i = 0; i < k->given.count; i++) {
        const struct figure *f = &k->given.row[i];
        if (i && !by_key(f, f - 1))
            continue;
        text_add(&t, "%016" PRIx64 "%016" PRIx64 " %s %u %u %u %u\n", f->key.high, f->key.low,
                 f->kernel.entry[0] ? f->kernel.entry : nothing, f->kernel.registers,
                 f->kernel.spill_bytes, f->kernel.shared_bytes, f->kernel.code_bytes);
    }
    int r = file_write(path, text_get(&t), strlen(text_get(&t)), e);
    text_finish(&t);
    return r;
}

/* ---- units ---- */

struct cache_key budget_known_key(const struct source *s, uint32_t unit, const struct target *t)
{
    struct text all = {0};
    struct error e = {0};
    struct source one = *s;
    struct source_file *files = memory_copy(s->files, s->n_files * sizeof *files);
    files[0] = s->files[1 + unit];
    one.files = files;
    text_add(&all, "%s %s %d nvrtc %s\n%s\n", t->name, t->arch, t->ptx, nvrtc_version(&e),
             s->config_header);
    source_flatten(&one, &all);
    struct cache_key key = cache_key(all.bytes, all.length);
    text_finish(&all);
    free(files);
    return key;
}

static bool is_key(struct cache_key a, struct cache_key b)
{
    return a.low == b.low && a.high == b.high;
}

/* The kernels that are known of a unit; how many lines tell of it. */
static uint32_t find(const struct budget_known *k, struct cache_key key, struct binary *ret)
{
    uint32_t lines = 0;
    for (uint32_t i = 0; i < k->before.count; i++) {
        const struct figure *f = &k->before.row[i];
        if (!is_key(f->key, key))
            continue;
        lines++;
        if (f->kernel.entry[0] && ret->n_kernels < ARTIFACT_MAX_KERNELS)
            ret->kernel[ret->n_kernels++] = f->kernel;
    }
    return lines;
}

bool budget_known_take(const struct budget_known *k, struct cache_key key, struct binary *ret)
{
    struct binary found = {.n_kernels = 0};
    if (key.low % COMPILED_ONE_IN == 0 || !find(k, key, &found))
        return false;
    *ret = found;
    return true;
}

static bool has_kernel(const struct binary *b, const struct kernel_resources *r)
{
    for (uint32_t k = 0; k < b->n_kernels; k++)
        if (!memcmp(&b->kernel[k], r, sizeof *r))
            return true;
    return false;
}

void budget_known_give(struct budget_known *k, struct cache_key key, const struct binary *made)
{
    struct binary before = {.n_kernels = 0};
    const bool known = find(k, key, &before) > 0;
    bool same = before.n_kernels == made->n_kernels;
    pthread_mutex_lock(&k->lock);
    for (uint32_t i = 0; i < made->n_kernels; i++) {
        struct figure f = {key,
                           {.registers = made->kernel[i].registers,
                            .spill_bytes = made->kernel[i].spill_bytes,
                            .shared_bytes = made->kernel[i].shared_bytes,
                            .code_bytes = made->kernel[i].code_bytes}};
        snprintf(f.kernel.entry, sizeof f.kernel.entry, "%s", made->kernel[i].entry);
        same = same && has_kernel(&before, &f.kernel);
        *MEMORY_PUSH(k->given.row, k->given.count, k->given.capacity) = f;
    }
    if (!made->n_kernels)
        *MEMORY_PUSH(k->given.row, k->given.count, k->given.capacity) =
            (struct figure){.key = key};
    k->wrong |= known && !same;
    k->news += !known;
    pthread_mutex_unlock(&k->lock);
}

bool budget_known_is_wrong(const struct budget_known *k)
{
    return k->wrong;
}

uint32_t budget_known_news(const struct budget_known *k)
{
    return k->news;
}
