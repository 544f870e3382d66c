/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/reference/guarded.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xff }; /* all ones are NaN in every type */

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
    return k->device->upload(k->code, b->device, b->host, b->size + 2 * GUARD, e);
}

int guarded_download(const struct maskc_kernel *k, struct guarded *b, const char *name,
                     struct error *e)
{
    if (k->device->download(k->code, b->host, b->device, b->size + 2 * GUARD, e))
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
    if (b->device)
        k->device->release(k->code, b->device);
}
