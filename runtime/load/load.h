/* SPDX-License-Identifier: Apache-2.0 */
/* Behind maskc.h, in libmaskc and libmaskc-runtime: a loaded kernel. The commands and model/ include this too. */
#pragma once
#include "runtime/artifact/artifact.h"
#include "runtime/device/device.h"
#include "runtime/maskc.h"

struct maskc_kernel {
    struct artifact *artifact;
    uint8_t *bytes; /* the file; the artifact points into it */
    uint64_t size;
    const struct artifact_target *target;
    const struct device *device;
    struct device_code *code;
};

/* A kernel file in memory, copied, to a loaded kernel. `device` as in maskc_load; `path` is for
   messages. kernel_load_file reads the file itself. */
int kernel_load(const void *data, uint64_t size, const char *path, const char *device,
                struct maskc_kernel **ret, struct error *e);
int kernel_load_file(const char *path, const char *device, struct maskc_kernel **ret,
                     struct error *e);
void kernel_unload(struct maskc_kernel *k); /* null and half loaded are fine */
