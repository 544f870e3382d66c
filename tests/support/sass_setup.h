/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of machine code: puts the mock driver of a given folder (tests/sass) into the loader's path, finds
   nvdisasm, compiles kernels by NVRTC for one target and loads them on it. */
#pragma once
#include "gen/key_shape.h"
#include "tests/support/subject.h"
#include "tools/reference/check.h"

/* Restarts the program with the driver of `folder` in the loader's path, as if it had a GPU of
   `target`'s kind, and returns null in the new process. If NVRTC, nvdisasm or AVX2 is missing, it
   does not restart but returns what is missing. */
const char *setup_machine(char **argv, const char *folder, const char *target);

/* The same without a driver: null, or what is missing. */
const char *setup_missing(void);

struct sass_case {
    const char *mask[2]; /* of alternate heads; the second null: one */
    uint32_t n;
    struct kernel_request request;
    struct key_shape
        keys; /* with fewer key heads there are twice as many query heads, else two */
    const char *family,
        *shape; /* null: the cheapest (plan_options.family, plan_take_shape()) */
};

/* The case's mask, which the caller destroys, and its whole request. */
struct mask *setup_mask(const struct sass_case *c, struct kernel_request *ret);

/* A kernel of the case on the device "cuda"; fails the test on an error. */
struct maskc_kernel *setup_load(const struct sass_case *c, const char *target,
                                struct cache *cache);

/* The same; null with *e set where it does not compile or load. */
struct maskc_kernel *setup_try(const struct sass_case *c, const char *target,
                               struct cache *cache, struct error *e);

/* The case on `device`: "cuda" is the machine code, "emulated" the text that it was made from. Null with *e set. */
struct maskc_kernel *setup_try_on(const char *device, const struct sass_case *c,
                                  const char *target, struct cache *cache, struct error *e);

/* Compares machine code with the text it was made from, which the emulation runs. Sums have the
   same order except within a product, so few roundings differ. Returns the largest error_measure of
   the results; infinite with *e set if one of them does not run. `ret_hash` (or null): the bits of
   the machine code's O and gradients are hashed into it. */
double setup_distance(const struct maskc_kernel *machine, const struct maskc_kernel *text,
                      const struct problem *p, uint64_t *ret_hash, struct error *e);
