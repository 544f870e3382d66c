/* SPDX-License-Identifier: Apache-2.0 */
/* Source to binary: from the cache, else from what was compiled ahead, else by a compiler. The key covers all that
   decides the binary: source bytes, flags, architecture, and for the cache the compiler. The mask is not in the source,
   so one entry serves every mask of the same shape; nor is the target's name, so an f32 entry serves x86-64-v4 and
   x86-64-amx. */
#include "runtime/compile/compile.h"
#include "masks/base/memory.h"
#include "runtime/ahead/ahead.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kernels are freestanding: no libc, nothing that the system's defaults would add to a program
   (stack protectors call into libc), and floats that keep NaN and infinity. */
/* clang-format off */
static const char *const fixed_flags[] = {
    "-std=gnu11", "-O3", "-fno-math-errno", "-ffp-contract=fast", "-fno-trapping-math",
    "-ffreestanding", "-nostdlib", "-fno-stack-protector", "-fno-asynchronous-unwind-tables",
    "-fPIC", "-fvisibility=hidden", "-mprefer-vector-width=512", "-shared", "-s", "-Wl,--no-undefined",
};
/* clang-format on */

enum { FIXED_FLAGS = sizeof fixed_flags / sizeof *fixed_flags };

void host_flags(const struct target *t, struct host_flags *ret)
{
    _Static_assert(FIXED_FLAGS + 2 <= HOST_MAX_FLAGS, "room for all flags and the null");
    memcpy(ret->flag, fixed_flags, sizeof fixed_flags);
    snprintf(ret->arch, sizeof ret->arch, "-march=%s", t->arch);
    ret->flag[FIXED_FLAGS] = ret->arch;
    ret->flag[FIXED_FLAGS + 1] = NULL;
}

void binary_finish(struct binary *b)
{
    for (uint32_t k = 0; k < b->n_images; k++)
        free((void *)b->image[k].bytes);
    *b = (struct binary){0};
}

void binary_add(struct binary *b, const void *bytes, uint64_t size)
{
    b->image[b->n_images++] = (struct code_image){memory_copy(bytes, size), size};
}

/* ---- key ---- */

/* Each part with its length before it, so that no two lists of parts read alike. */
static void add_part(struct text *t, const char *part)
{
    text_add(t, "%zu:", strlen(part));
    text_append(t, part, strlen(part));
}

struct cache_key source_key(const struct source *s, const struct target *t)
{
    struct text all = {0};
    struct host_flags flags = {0};
    text_add(&all, "abi %d, file %d %s ", ABI_VERSION, ARTIFACT_VERSION, t->arch);
    if (t->kind == TARGET_CPU)
        host_flags(t, &flags);
    for (int k = 0; flags.flag[k]; k++)
        add_part(&all, flags.flag[k]);
    for (uint32_t k = 0; k < s->n_files; k++) {
        add_part(&all, s->files[k].name);
        add_part(&all, s->files[k].text);
    }
    struct cache_key key = cache_key(all.bytes, all.length);
    text_finish(&all);
    return key;
}

/* Adds the compiler to the key. Keys of one source differ only in the lower half by compiler: without a compiler, any
   cached binary of the source is used. */
static struct cache_key add_compiler(struct cache_key source, const char *compiler)
{
    source.low ^= cache_key(compiler, strlen(compiler)).low;
    return source;
}

/* ---- a binary as a cache entry: the fixed part, then the images ---- */

struct packed {
    char compiler[96];
    uint32_t n_kernels, n_images;
    uint64_t size[ARTIFACT_MAX_IMAGES]; /* of the images */
    struct kernel_resources kernel[ARTIFACT_MAX_KERNELS];
};

static void put(struct cache *c, struct cache_key key, const struct binary *b)
{
    struct packed head;
    struct text all = {0};
    memset(&head, 0, sizeof head);
    memcpy(head.compiler, b->compiler, sizeof head.compiler);
    memcpy(head.kernel, b->kernel, sizeof head.kernel);
    head.n_kernels = b->n_kernels;
    head.n_images = b->n_images;
    for (uint32_t k = 0; k < b->n_images; k++)
        head.size[k] = b->image[k].size;
    text_append(&all, (const char *)&head, sizeof head);
    for (uint32_t k = 0; k < b->n_images; k++)
        text_append(&all, (const char *)b->image[k].bytes, b->image[k].size);
    cache_put(c, key, all.bytes, all.length);
    text_finish(&all);
}

/* True if sizes add up and counts are in range. */
static bool is_sound(const struct packed *head, uint64_t size)
{
    if (head->n_kernels > ARTIFACT_MAX_KERNELS || head->n_images > ARTIFACT_MAX_IMAGES ||
        !head->n_images || !memchr(head->compiler, 0, sizeof head->compiler))
        return false;
    for (uint32_t k = 0; k < head->n_images; k++) {
        if (!head->size[k] || head->size[k] > size)
            return false;
        size -= head->size[k];
    }
    return size == 0;
}

static bool unpack(const uint8_t *bytes, uint64_t size, struct binary *ret)
{
    struct packed head;
    if (size < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (!is_sound(&head, size - sizeof head))
        return false;
    *ret = (struct binary){.n_kernels = head.n_kernels};
    memcpy(ret->compiler, head.compiler, sizeof head.compiler);
    memcpy(ret->kernel, head.kernel, sizeof head.kernel);
    bytes += sizeof head;
    for (uint32_t k = 0; k < head.n_images; bytes += head.size[k++])
        binary_add(ret, bytes, head.size[k]);
    return true;
}

/* MASKC_CC overrides kernels compiled ahead of time. */
static bool names_compiler(void)
{
    const char *asked = getenv("MASKC_CC");
    return asked && *asked;
}

/* Without a compiler what any of them made; nothing where one is asked for that is not there. */
static bool get(struct cache *c, struct cache_key key, bool any, struct binary *ret)
{
    uint8_t *bytes;
    uint64_t size;
    if ((any && names_compiler()) || !(any ? cache_get_any : cache_get)(c, key, &bytes, &size))
        return false;
    bool ok = unpack(bytes, size, ret);
    free(bytes);
    return ok;
}

/* ---- compiled ahead ---- */

static const struct ahead *ahead_file(const struct target *t)
{
    return t->kind != TARGET_CPU || names_compiler() ? NULL : ahead_installed();
}

static bool get_ahead(const struct target *t, struct cache_key source, struct binary *ret,
                      struct error *e)
{
    const struct ahead *a = ahead_file(t);
    uint8_t *bytes;
    uint64_t size;
    if (!a || !ahead_get(a, source, &bytes, &size, e))
        return false;
    *ret = (struct binary){.n_images = 1, .image = {{bytes, size}}};
    memcpy(ret->compiler, a->compiler, sizeof ret->compiler);
    return true;
}

bool compiled_ahead(const struct source *s, const struct target *t)
{
    struct binary b;
    const bool found = ahead_file(t) && get_ahead(t, source_key(s, t), &b, NULL);
    if (found)
        binary_finish(&b);
    return found;
}

/* ---- compile ---- */

static int run_compiler(const struct source *s, const struct target *t, struct binary *ret,
                        struct error *e)
{
    struct host_flags flags;
    if (t->kind == TARGET_CUDA)
        return nvrtc_compile(s, t, ret, e);
    host_flags(t, &flags);
    return host_compile(s, flags.flag, ret, e);
}

/* Name of the compiler in the key; empty if there is none. Caller frees. */
static char *describe_compiler(const struct target *t)
{
    if (t->kind == TARGET_CUDA)
        return memory_text(nvrtc_version(NULL));
    char *identity = host_compiler_identity();
    return identity ? identity : memory_text(host_compiler_version());
}

static int make(const struct source *s, const struct target *t, struct cache *cache,
                struct cache_key key, struct binary *ret, struct error *e)
{
    struct binary made = {0};
    if (run_compiler(s, t, &made, e) < 0)
        return -1;
    put(cache, key, &made);
    *ret = made;
    return 0;
}

int compile_source(const struct source *s, const struct target *t, struct cache *cache,
                   struct binary *ret, struct error *e)
{
    char *compiler = describe_compiler(t);
    const struct cache_key source = source_key(s, t), key = add_compiler(source, compiler);
    cache_begin(cache, key);
    struct error damage = {0};
    const bool found = get(cache, key, !compiler[0], ret) || get_ahead(t, source, ret, &damage);
    int r = found ? 0 : make(s, t, cache, key, ret, e);
    if (r < 0 && !compiler[0] && damage.kind)
        error_prefix(e, "%s", damage.text);
    cache_end(cache, key);
    free(compiler);
    return r;
}
