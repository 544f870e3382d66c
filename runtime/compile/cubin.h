/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of a cubin by ptxas, read from the ELF file itself: needs no tool of the toolkit. */
#pragma once
#include "masks/base/error.h"
#include "runtime/artifact/artifact.h"

/* Adds each entry to the *count (at most `capacity`) that are in ret: name, registers, spill_bytes (the
   stack frame: our kernels call nothing, so that is what was spilled), shared_bytes (static) and
   code_bytes. Checks every offset: the bytes may be anything. */
int cubin_resources(const uint8_t *bytes, uint64_t size, struct kernel_resources *ret,
                    uint32_t capacity, uint32_t *count, struct error *e);
