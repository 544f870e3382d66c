/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer on a kernel's device with its copy on the host. It starts as NaN, and so do the guards before and
   after it: a forbidden read is a NaN in a result, a write outside shows in the guards. */
#pragma once
#include "runtime/load/load.h"

enum { GUARD = 256 }; /* bytes */

struct guarded {
    uint8_t *device, *host; /* of size + 2 guards; null: there is none */
    uint64_t size;
};

int guarded_make(const struct maskc_kernel *k, struct guarded *b, uint64_t size,
                 struct error *e);
int guarded_upload(const struct maskc_kernel *k, const struct guarded *b, struct error *e);
/* Fails (false) where the guards have changed; `name` is for the text. */
int guarded_download(const struct maskc_kernel *k, struct guarded *b, const char *name,
                     struct error *e);
/* Lets go of the copy on the host. */
void guarded_forget(const struct maskc_kernel *k, struct guarded *b);
void guarded_finish(const struct maskc_kernel *k, struct guarded *b);
