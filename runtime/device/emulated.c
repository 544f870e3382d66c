/* SPDX-License-Identifier: Apache-2.0 */
/* The device "emulated": the CUDA text of a kernel file, compiled by the host compiler together
   with runtime/emulated, and run block by block on this CPU with every access to shared memory
   and every barrier watched. For checking, not for speed. */
#include "masks/base/memory.h"
#include "runtime/cache.h"
#include "runtime/compile/compile.h"
#include "runtime/device/host.h"
#include "runtime/emulated/files.h"
#include "runtime/emulated/launch.h"
#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_ENTRIES = 2 * EMIT_MAX_PHASES, MAX_FILES = 20, BLOCKS = 4 };

struct device_code {
    const struct artifact *artifact;
    const struct artifact_target *target;
    void *object;
    emulation_memory_fn *memory;
    emulation_block_fn *block;
};

/* clang-format off */
static const char *const flags[] = {
    "-std=gnu11", "-O2", "-w", "-fPIC", "-shared", "-fno-strict-aliasing",
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

/* ---- bank conflicts ---- */

static struct emulation_banks *_Atomic asked_banks; /* null: nobody asked */

void emulated_count_banks(struct emulation_banks *ret)
{
    if (ret)
        memset(ret, 0, sizeof *ret);
    atomic_store(&asked_banks, ret);
}

static bool same_site(const struct emulation_site *a, const struct emulation_site *b)
{
    return a->line == b->line && a->access == b->access && a->bytes == b->bytes &&
           !strcmp(a->function, b->function);
}

static void add_site(struct emulation_banks *to, const struct emulation_site *s)
{
    uint32_t k = 0;
    while (k < to->count && !same_site(&to->site[k], s))
        k++;
    if (k == EMULATION_MAX_SITES) {
        to->missed += s->requests;
    } else if (k == to->count) {
        to->site[to->count++] = *s;
    } else {
        to->site[k].requests += s->requests;
        to->site[k].turns += s->turns;
        to->site[k].least += s->least;
    }
}

/* Blocks count apart, and add up one after the other. */
static void add_banks(struct emulation_banks *to, const struct emulation_banks *from)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    for (uint32_t k = 0; k < from->count; k++)
        add_site(to, &from->site[k]);
    to->missed += from->missed;
    pthread_mutex_unlock(&lock);
}

/* ---- compiling the text ---- */

static uint32_t list_files(const struct artifact_target *t, struct source_file *ret)
{
    uint32_t count = 1;
    for (const struct emulation_file *f = emulation_embedded; f->name; f++) {
        struct source_file file = {f->name, f->text};
        if (!strcmp(f->name, "emulation.c"))
            ret[0] = file;
        else
            ret[count++] = file;
    }
    ret[count++] = (struct source_file){"kernel.cu", t->source};
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
static int compile_text(const struct artifact_target *t, uint8_t **ret, uint64_t *ret_size,
                        struct error *e)
{
    struct source_file files[MAX_FILES];
    struct source source = {.files = files, .n_files = list_files(t, files)};
    struct cache *cache = cache_open(NULL);
    struct cache_key key = key_of(&source);
    int r = 0;
    if (!cache_get(cache, key, ret, ret_size)) {
        struct binary made = {0};
        r = host_compile(&source, flags, &made, e);
        if (r == 0) {
            cache_put(cache, key, made.bytes, made.size);
            *ret_size = made.size;
            *ret = memory_copy(made.bytes, made.size);
        }
        binary_finish(&made);
    }
    cache_close(cache);
    return r < 0 ? error_prefix(e, "emulation of %s", t->name) : 0;
}

/* ---- loading ---- */

static int find_entries(const struct device_code *c, const struct phase *p, uint32_t count,
                        struct error *e)
{
    for (uint32_t k = 0; k < count; k++)
        if (!dlsym(c->object, p[k].entry))
            return error_set(e, ERROR_INPUT, "emulation of %s: the text has no entry '%s'",
                             c->target->name, p[k].entry);
    return 0;
}

static int open_code(struct device_code *c, struct error *e)
{
    uint8_t *bytes;
    uint64_t size;
    if (!c->target->source)
        return error_set(e, ERROR_INPUT, "target %s holds no source to emulate",
                         c->target->name);
    if (compile_text(c->target, &bytes, &size, e) < 0)
        return -1;
    c->object = object_open(bytes, size, e);
    free(bytes);
    if (!c->object)
        return error_prefix(e, "emulation of %s", c->target->name);
    *(void **)&c->memory = dlsym(c->object, "emulation_memory");
    *(void **)&c->block = dlsym(c->object, "emulation_block");
    if (!c->memory || !c->block)
        return error_set(e, ERROR_INPUT, "emulation of %s: the text replaces the emulation",
                         c->target->name);
    const struct launch_record *l = &c->target->launch;
    return find_entries(c, l->forward, l->n_forward, e) < 0 ||
                   find_entries(c, l->backward, l->n_backward, e) < 0
               ? -1
               : 0;
}

static void unload(struct device_code *c)
{
    if (c && c->object)
        dlclose(c->object);
    free(c);
}

static int load(const struct artifact *a, const struct artifact_target *t, int ordinal,
                struct device_code **ret, struct error *e)
{
    (void)ordinal;
    struct device_code *c = memory_new(1, sizeof *c);
    c->artifact = a;
    c->target = t;
    if (open_code(c, e) < 0) {
        unload(c);
        return -1;
    }
    *ret = c;
    return 0;
}

/* ---- launching ---- */

/* Runs the block in memory of its own. Pages that nobody touches cost nothing: most of the
   fibers' stacks. */
static int run_mapped(const struct device_code *c, const struct phase *p,
                      const struct abi_args *args, struct emulation_launch *run,
                      struct error *e)
{
    const size_t bytes = c->memory(run);
    run->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (run->memory == MAP_FAILED)
        return error_set(e, ERROR_UNAVAILABLE, "no %zu bytes of memory to emulate a block",
                         bytes);
    int r = c->block(dlsym(c->object, p->entry), args, run);
    munmap(run->memory, bytes);
    return r < 0 ? error_set(e, ERROR_FALSE, "%s: %s", p->entry, run->error) : 0;
}

/* One block; its error, if any, to *e. Blocks of a phase are independent. */
static int run_block(const struct device_code *c, const struct phase *p,
                     const struct abi_args *args, const struct device_launch *l, uint32_t block,
                     struct error *e)
{
    struct emulation_banks *asked = atomic_load(&asked_banks);
    struct emulation_launch run = {.block = block,
                                   .blocks = l->workers,
                                   .threads = p->threads,
                                   .shared_bytes = p->shared_bytes,
                                   .seed = order_seed(),
                                   .banks = asked ? memory_new(1, sizeof *asked) : NULL,
                                   .exp2 = exp2f,
                                   .log2 = log2f};
    int r = run_mapped(c, p, args, &run, e);
    if (asked)
        add_banks(asked, run.banks);
    free(run.banks);
    return r;
}

static int run_phase(const struct device_code *c, const struct phase *p,
                     const struct device_launch *l, struct error *e)
{
    const struct abi_args args = phase_args(p->over, &l->args);
    int r = 0;
    if (!phase_indices(p->over, &args))
        return 0;
    struct error *errors = memory_new(l->workers, sizeof *errors);
#pragma omp parallel for schedule(dynamic, 1)
    for (uint32_t block = 0; block < l->workers; block++)
        run_block(c, p, &args, l, block, &errors[block]);
    for (uint32_t block = 0; block < l->workers && r == 0; block++)
        if (errors[block].kind != ERROR_NONE)
            r = error_set(e, errors[block].kind, "%s", errors[block].text);
    free(errors);
    return r;
}

static int launch(const struct device_code *c, const struct device_launch *l, struct error *e)
{
    for (uint32_t k = 0; k < l->n_phases; k++)
        if (run_phase(c, &l->phases[k], l, e) < 0)
            return -1;
    return 0;
}

static uint32_t workers(const struct device_code *c, uint32_t threads)
{
    (void)c;
    return threads ? threads : BLOCKS;
}

static void tables(const struct device_code *c, bool transposed, uint32_t layer,
                   struct abi_plan *ret)
{
    host_tables(&c->artifact->plan[c->target->plan], c->artifact->mask, transposed, layer, ret);
}

/* ---- the device ---- */

static const char *unavailable(void)
{
    return host_compiler_version()[0]
               ? ""
               : "the emulated device needs a host compiler: install clang or gcc";
}

static void describe(struct text *out)
{
    text_add(out, "CUDA code on this CPU, watched (%s)", host_compiler_version());
}

static int prefers(const struct artifact_target *t)
{
    return t->source ? 1 : 0;
}

const struct device device_emulated = {
    .name = "emulated",
    .unavailable = unavailable,
    .describe = describe,
    .prefers = prefers,
    .load = load,
    .unload = unload,
    .tables = tables,
    .workers = workers,
    .host_memory = true,
    .launch = launch,
    .allocate = host_allocate,
    .release = host_release,
    .upload = host_copy,
    .download = host_copy,
    .sync = host_sync,
};
