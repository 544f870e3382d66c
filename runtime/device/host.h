/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by devices that run in this process: code from memory, tables inside the kernel file,
   plain memory. */
#pragma once
#include "runtime/device/device.h"

/* A shared object given as bytes; never a file that others could change. Close with dlclose().
   Null with *e set where the system's loader refuses it. */
void *object_open(const uint8_t *bytes, uint64_t size, struct error *e);

/* A layer's tables, pointing into the artifact. */
void host_tables(const struct artifact_plan *p, const struct mask *m, bool transposed,
                 uint32_t layer, struct abi_plan *ret);

void *host_allocate(const struct device_code *c, uint64_t bytes, struct error *e);
void host_release(const struct device_code *c, void *p);
int host_copy(const struct device_code *c, void *to, const void *from, uint64_t bytes,
              struct error *e);
int host_sync(const struct device_code *c, struct error *e);
