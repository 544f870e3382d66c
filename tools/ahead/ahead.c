/* SPDX-License-Identifier: Apache-2.0 */
/* ahead SET CACHE OUT: compiles the kernels of a set ahead, and writes them as one file (runtime/ahead/). What is in
   the folder CACHE is not compiled again. */
#include "runtime/ahead/ahead.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "runtime/base/thread_pool.h"
#include "runtime/compile/compile.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what there is ---- */

/* PLAIN: softmax with a backward pass; else all of features[]. */
enum which { PLAIN, ALL };

struct level {
    const char *target;
    enum abi_dtype dtype;
    enum which which;
};

struct feature {
    enum abi_transform transform;
    enum abi_bias bias;
    bool dropout, backward;
};

struct set {
    const char *name;
    const struct level *levels; /* ends with a null target */
    uint32_t head_dim[8];       /* ends with 0 */
};

/* x86-64-v2 machines are rare and slow with 16-bit types: f32 PLAIN only. */
static const struct level full_levels[] = {
    {"x86-64-v2", ABI_F32, PLAIN}, {"x86-64-v3", ABI_F32, ALL},
    {"x86-64-v4", ABI_F32, ALL},   {"x86-64-v3", ABI_F16, ALL},
    {"x86-64-v4", ABI_F16, ALL},   {"x86-64-v3", ABI_BF16, ALL},
    {"x86-64-v4", ABI_BF16, ALL},  {"x86-64-bf16", ABI_BF16, ALL},
    {"x86-64-amx", ABI_BF16, ALL}, {0},
};

/* Levels for the tests. */
static const struct level small_levels[] = {
    {"x86-64-v2", ABI_F32, PLAIN},   {"x86-64-v3", ABI_F32, PLAIN},
    {"x86-64-v4", ABI_F32, PLAIN},   {"x86-64-bf16", ABI_BF16, PLAIN},
    {"x86-64-amx", ABI_BF16, PLAIN}, {0},
};

static const struct feature features[] = {
    {ABI_SOFTMAX, ABI_BIAS_NONE, false, true}, /* PLAIN */
    {ABI_SOFTMAX, ABI_BIAS_NONE, false, false},  {ABI_SOFTMAX, ABI_BIAS_NONE, true, true},
    {ABI_SOFTMAX, ABI_BIAS_ADD, false, true},    {ABI_SOFTMAX, ABI_BIAS_ADD, true, true},
    {ABI_SOFTMAX, ABI_BIAS_SCALE, false, true},  {ABI_SOFTMAX, ABI_BIAS_SCALE, true, true},
    {ABI_SPARSEGEN, ABI_BIAS_NONE, false, true}, {ABI_SPARSEGEN, ABI_BIAS_NONE, true, true},
};

enum { FEATURES = sizeof features / sizeof *features };

static const struct set sets[] = {
    {"small", small_levels, {64}},
    {"full", full_levels, {32, 64, 80, 96, 128}},
};

/* ---- the codes of a set ---- */

struct kernel {
    const struct target *target;
    struct kernel_config config;
    uint32_t frame;
    struct cache_key key;
    struct binary made;
};

struct work {
    struct kernel *kernel;
    uint32_t count, capacity, frames, done;
    struct cache *cache;
    pthread_mutex_t lock;
    struct error error; /* the first */
    bool failed;
};

/* A matrix-unit kernel is compiled twice: with the default and with the largest number of kept gathered columns
   (find_source() in runtime/pipeline/pipeline.c). */
static void add_kernels(struct work *w, const struct target *t, enum abi_dtype dtype,
                        uint32_t head_dim, const struct feature *f)
{
    struct kernel kernel = {.target = t, .frame = w->frames};
    kernel.config.request = (struct kernel_request){.dtype = dtype,
                                                    .transform = f->transform,
                                                    .head_dim = head_dim,
                                                    .dropout = f->dropout,
                                                    .backward = f->backward,
                                                    .bias = f->bias};
    *MEMORY_PUSH(w->kernel, w->count, w->capacity) = kernel;
    kernel.config.gathers_kept = GATHERS_KEPT_MOST;
    if (t->matrix_machine)
        *MEMORY_PUSH(w->kernel, w->count, w->capacity) = kernel;
}

/* Kernels of one target, dtype and head dimension share a frame, the unit of compression: loading one unpacks the whole
   frame. */
static int list_kernels(struct work *w, const struct set *s, struct error *e)
{
    for (const struct level *l = s->levels; l->target; l++) {
        const struct target *t = target_find(l->target, e);
        if (!t)
            return -1;
        for (const uint32_t *d = s->head_dim; *d; d++, w->frames++)
            for (uint32_t k = 0; k < (l->which == ALL ? FEATURES : 1); k++)
                add_kernels(w, t, l->dtype, *d, &features[k]);
    }
    return 0;
}

/* ---- compiled ---- */

static void note(struct work *w, int code, const struct error *e)
{
    pthread_mutex_lock(&w->lock);
    w->done++;
    if (code < 0 && !w->failed)
        w->error = *e;
    w->failed |= code < 0;
    if (w->done % 20 == 0 || w->done == w->count)
        fprintf(stderr, "ahead: %u of %u kernels\n", w->done, w->count);
    pthread_mutex_unlock(&w->lock);
}

static void compile(void *context, uint32_t k)
{
    struct work *w = context;
    struct kernel *kernel = &w->kernel[k];
    struct error e = {0};
    if (w->failed)
        return;
    struct source *s = emit_source(kernel->target, &kernel->config);
    kernel->key = source_key(s, kernel->target);
    note(w, compile_source(s, kernel->target, w->cache, &kernel->made, &e), &e);
    source_destroy(s);
}

static int write(const struct work *w, const char *path, struct error *e)
{
    struct ahead_code *code = memory_new(w->count, sizeof *code);
    uint64_t size = 0;
    for (uint32_t k = 0; k < w->count; k++)
        code[k] = (struct ahead_code){w->kernel[k].key, w->kernel[k].made.image[0].bytes,
                                      w->kernel[k].made.image[0].size, w->kernel[k].frame};
    uint8_t *bytes = ahead_write(code, w->count, w->kernel[0].made.compiler, &size);
    free(code);
    if (!bytes)
        return error_set(e, ERROR_UNAVAILABLE, "this build has no zstd: install libzstd-dev");
    int r = file_write(path, bytes, size, e);
    free(bytes);
    return r;
}

static int make(const struct set *s, const char *cache, const char *path, struct error *e)
{
    struct work w = {.cache = cache_open(cache), .lock = PTHREAD_MUTEX_INITIALIZER};
    int r = list_kernels(&w, s, e);
    if (r == 0) {
        thread_pool_run(w.count, compile, &w);
        r = w.failed ? error_set(e, w.error.kind, "%s", w.error.text) : write(&w, path, e);
    }
    for (uint32_t k = 0; k < w.count; k++)
        binary_finish(&w.kernel[k].made);
    free(w.kernel);
    cache_close(w.cache);
    return r;
}

int main(int argc, char **argv)
{
    struct error e = {0};
    if (argc != 4) {
        fprintf(stderr, "usage: ahead small|full CACHE OUT\n");
        return 2;
    }
    setenv("MASKC_AHEAD", "none", 1); /* compile; do not copy from an installed file */
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++)
        if (!strcmp(argv[1], sets[k].name)) {
            if (make(&sets[k], argv[2], argv[3], &e) == 0)
                return 0;
            fprintf(stderr, "ahead: %s\n", e.text);
            return (int)e.kind;
        }
    fprintf(stderr, "ahead: '%s' is neither small nor full\n", argv[1]);
    return 2;
}
