/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA text compiled by the host compiler together with runtime/emulated, and run block by block with
   every access to shared memory and every barrier watched. For checking, not for speed. */
#include "runtime/device/emulated/emulated_text.h"
#include "masks/base/memory.h"
#include "runtime/base/cache.h"
#include "runtime/compile/compile.h"
#include "runtime/device/cpu_threads.h"
#include "runtime/device/emulated/emulated.h"
#include "runtime/device/emulated/emulated_counts.h"
#include "runtime/device/host.h"
#include "runtime/emulated/files.h"
#include "runtime/emulated/launch.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_FILES = 20 };

/* Memory of blocks that have ended, for those to come: fresh pages take longer than many a block. */
struct mapping {
    void *memory;
    size_t bytes;
};

struct pool {
    pthread_mutex_t lock;
    struct mapping *idle;
    uint32_t count, capacity;
};

struct emulated_text {
    char name[64];
    void *object;
    emulation_enter_fn *enter;
    struct pool *pool;
};

/* clang-format off */
static const char *const flags[] = {
    "-std=gnu11", "-O0", "-w", "-fPIC", "-shared", "-fno-strict-aliasing",
    "-fno-stack-protector", "-ffp-contract=off", "-fno-math-errno", NULL,
};
/* clang-format on */

/* ---- seed ---- */

static _Atomic uint64_t given_seed; /* set by tests; 0: the environment's */

void emulated_set_seed(uint64_t seed)
{
    atomic_store(&given_seed, seed);
}

static uint64_t order_seed(void)
{
    uint64_t seed = atomic_load(&given_seed);
    const char *text = getenv("MASKC_EMULATION_SEED");
    return seed || !text ? seed : strtoull(text, NULL, 0);
}

/* ---- compiling the text ---- */

static uint32_t list_files(const char *text, struct source_file *ret)
{
    uint32_t count = 1;
    for (const struct emulation_file *f = emulation_embedded; f->name; f++) {
        struct source_file file = {f->name, f->text};
        if (!strcmp(f->name, "text.c"))
            ret[0] = file;
        else
            ret[count++] = file;
    }
    ret[count++] = (struct source_file){"kernel.cu", text};
    return count;
}

static struct cache_key key_of(const struct source *s)
{
    struct text all = {0};
    text_add(&all, "emulation %s\n", host_compiler_version());
    for (const char *const *f = flags; *f; f++)
        text_add(&all, "%s\n", *f);
    for (uint32_t k = 0; k < s->n_files; k++)
        text_add(&all, "%zu:%s", strlen(s->files[k].text), s->files[k].text);
    struct cache_key key = cache_key(all.bytes, all.length);
    text_finish(&all);
    return key;
}

/* The shared object, from the cache where it is there. */
static int compile_text(const char *text, uint8_t **ret, uint64_t *ret_size, struct error *e)
{
    struct source_file files[MAX_FILES];
    struct source source = {.files = files, .n_files = list_files(text, files)};
    struct cache *cache = cache_open(NULL);
    struct cache_key key = key_of(&source);
    int r = 0;
    if (!cache_get(cache, key, ret, ret_size)) {
        struct binary made = {0};
        r = host_compile(&source, flags, &made, e);
        if (r == 0) {
            cache_put(cache, key, made.image[0].bytes, made.image[0].size);
            *ret_size = made.image[0].size;
            *ret = memory_copy(made.image[0].bytes, made.image[0].size);
        }
        binary_finish(&made);
    }
    cache_close(cache);
    return r;
}

/* ---- memory of blocks ---- */

/* Takes an idle mapping or makes one; its untouched pages cost nothing. */
static struct mapping pool_take(struct pool *p, size_t bytes)
{
    struct mapping r = {0};
    pthread_mutex_lock(&p->lock);
    if (p->count)
        r = p->idle[--p->count];
    pthread_mutex_unlock(&p->lock);
    if (r.bytes >= bytes)
        return r;
    if (r.memory)
        munmap(r.memory, r.bytes);
    r.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    r.bytes = bytes;
    return r;
}

static void pool_give(struct pool *p, struct mapping r)
{
    pthread_mutex_lock(&p->lock);
    *MEMORY_PUSH(p->idle, p->count, p->capacity) = r;
    pthread_mutex_unlock(&p->lock);
}

static struct pool *pool_new(void)
{
    struct pool *p = memory_new(1, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

static void pool_destroy(struct pool *p)
{
    for (uint32_t k = 0; k < p->count; k++)
        munmap(p->idle[k].memory, p->idle[k].bytes);
    pthread_mutex_destroy(&p->lock);
    free(p->idle);
    free(p);
}

/* ---- opening ---- */

static int open_object(struct emulated_text *t, const char *text, struct error *e)
{
    uint8_t *bytes;
    uint64_t size;
    if (compile_text(text, &bytes, &size, e) < 0)
        return error_prefix(e, "emulation of %s", t->name);
    t->object = object_open(bytes, size, e);
    free(bytes);
    if (!t->object)
        return error_prefix(e, "emulation of %s", t->name);
    *(void **)&t->enter = dlsym(t->object, "emulation_enter");
    if (!t->enter)
        return error_set(e, ERROR_INPUT, "emulation of %s: the text replaces the emulation",
                         t->name);
    return 0;
}

struct emulated_text *emulated_open(const char *text, const char *name, struct error *e)
{
    struct emulated_text *t = memory_new(1, sizeof *t);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->pool = pool_new();
    if (open_object(t, text, e) == 0)
        return t;
    emulated_close(t);
    return NULL;
}

void emulated_close(struct emulated_text *t)
{
    if (t && t->object)
        dlclose(t->object);
    if (t)
        pool_destroy(t->pool);
    free(t);
}

int emulated_find(const struct emulated_text *t, const char *entry, struct error *e)
{
    return dlsym(t->object, entry)
               ? 0
               : error_set(e, ERROR_INPUT, "emulation of %s: the text has no entry '%s'",
                           t->name, entry);
}

/* ---- running ---- */

/* An entry with all that its blocks have in common. */
struct call {
    const struct emulated_text *t;
    const char *entry;
    const void *args;
    const struct emulated_grid *grid;
};

/* Runs the block in memory of its own. */
static int run_mapped(const struct call *c, struct emulation_launch *run, struct error *e)
{
    const size_t bytes = emulation_memory(run);
    const struct mapping m = pool_take(c->t->pool, bytes);
    if (m.memory == MAP_FAILED)
        return error_set(e, ERROR_UNAVAILABLE, "no %zu bytes of memory to emulate a block",
                         bytes);
    run->memory = m.memory;
    int r = emulation_block(c->t->enter, dlsym(c->t->object, c->entry), c->args, run);
    pool_give(c->t->pool, m);
    return r < 0 ? error_set(e, ERROR_FALSE, "%s: %s", c->entry, run->error) : 0;
}

/* One block; its error, if any, to *e. Blocks of a launch are independent. */
static void run_block(const struct call *c, uint32_t block, struct error *e)
{
    struct emulation_launch run = {.block = block,
                                   .blocks = c->grid->blocks,
                                   .waves = c->grid->waves,
                                   .threads = c->grid->threads,
                                   .shared_bytes = c->grid->shared_bytes,
                                   .seed = order_seed(),
                                   .banks = counts_begin()};
    run_mapped(c, &run, e);
    counts_end(c->entry, &run);
}

static uint32_t count_blocks(const struct emulated_grid *grid)
{
    return grid->blocks * (grid->waves ? grid->waves : 1);
}

struct blocks {
    const struct call *call;
    struct error *errors;
    atomic_uint next;
};

/* Each thread takes the next block. */
static void run_blocks(void *context, uint32_t step, uint32_t thread, uint32_t threads)
{
    struct blocks *all = context;
    (void)step, (void)thread, (void)threads;
    const uint32_t count = count_blocks(all->call->grid);
    for (uint32_t k; (k = atomic_fetch_add(&all->next, 1)) < count;)
        run_block(all->call, k, &all->errors[k]);
}

int emulated_run(const struct emulated_text *t, const char *entry, const void *args,
                 const struct emulated_grid *grid, struct error *e)
{
    const struct call c = {t, entry, args, grid};
    const uint32_t count = count_blocks(grid);
    struct error *errors = memory_new(count, sizeof *errors);
    int r = 0;
    struct blocks all = {.call = &c, .errors = errors};
    threads_run(threads_most(), 1, run_blocks, &all);
    for (uint32_t block = 0; block < count && r == 0; block++)
        if (errors[block].kind != ERROR_NONE)
            r = error_set(e, errors[block].kind, "%s", errors[block].text);
    free(errors);
    return r;
}
