/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/reference/guarded.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xff }; /* all ones are NaN in every type */

#ifdef __has_feature
#define ADDRESSES_ARE_CHECKED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define ADDRESSES_ARE_CHECKED 1
#else
#define ADDRESSES_ARE_CHECKED 0
#endif
#if ADDRESSES_ARE_CHECKED
#include <sanitizer/asan_interface.h>
/* A kernel that was compiled with the address sanitizer (tests/support/clang-asan) ends the program where it so much as reads
   a guard. */
static void guards_close(const struct maskc_kernel *k, const struct guarded *b)
{
    if (k->device == &device_cpu) {
        __asan_poison_memory_region(b->device, GUARD);
        __asan_poison_memory_region(b->device + GUARD + b->size, GUARD);
    }
}

static void guards_open(const struct maskc_kernel *k, const struct guarded *b)
{
    if (b->device && k->device == &device_cpu)
        __asan_unpoison_memory_region(b->device, b->size + 2 * GUARD);
}
#else
static void guards_close(const struct maskc_kernel *k, const struct guarded *b)
{
    (void)k;
    (void)b;
}

static void guards_open(const struct maskc_kernel *k, const struct guarded *b)
{
    (void)k;
    (void)b;
}
#endif

int guarded_make(const struct maskc_kernel *k, struct guarded *b, uint64_t size,
                 struct error *e)
{
    b->size = size;
    b->host = memory_aligned(size + 2 * GUARD, 1);
    memset(b->host, POISON, size + 2 * GUARD);
    b->device = k->device->allocate(k->code, size + 2 * GUARD, e);
    return b->device ? 0 : -1;
}

int guarded_upload(const struct maskc_kernel *k, const struct guarded *b, struct error *e)
{
    guards_open(k, b);
    int r = k->device->upload(k->code, b->device, b->host, b->size + 2 * GUARD, e);
    guards_close(k, b);
    return r;
}

int guarded_download(const struct maskc_kernel *k, struct guarded *b, const char *name,
                     struct error *e)
{
    guards_open(k, b);
    int r = k->device->download(k->code, b->host, b->device, b->size + 2 * GUARD, e);
    guards_close(k, b);
    if (r)
        return -1;
    for (uint32_t at = 0; at < GUARD; at++)
        if (b->host[at] != POISON || b->host[GUARD + b->size + at] != POISON)
            return error_set(e, ERROR_FALSE, "the kernel wrote outside of %s: %s its %s", name,
                             b->host[at] != POISON ? "before" : "after",
                             b->host[at] != POISON ? "first byte" : "last byte");
    return 0;
}

void guarded_forget(const struct maskc_kernel *k, struct guarded *b)
{
    (void)k;
    free(b->host);
    b->host = NULL;
}

void guarded_finish(const struct maskc_kernel *k, struct guarded *b)
{
    free(b->host);
    guards_open(k, b);
    if (b->device)
        k->device->release(k->code, b->device);
}
