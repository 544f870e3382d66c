/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of CUDA kernels: a mask's name to a kernel file in memory without
   running a GPU compiler (the emulation needs the text alone), and that file changed. */
#pragma once
#include "tools/reference/check.h"

struct kernel_case {
    const char *mask;
    uint32_t n, heads; /* heads 0: the mask's own */
    struct kernel_request request;
    const char *target;            /* null: sm_80 */
    bool tiled;                    /* never by the resident kernels */
    const char *family;            /* as plan_options has it; null: the cheapest */
    const char *shape;             /* as plan_take_shape() has it; null: the cheapest */
    const struct machine *machine; /* null: the target's row of the table */
    const struct mask *own;        /* not null: instead of `mask`, which then is a name alone */
    const char *const *images;     /* what the code is, ended by null; null: "none" */
    bool all_chips; /* every CUDA target in place of one, as fixture_chips lists them */
};

/* Names of CUDA's targets, ended by null; the code of the k-th is FIXTURE_CODE_BYTES of 'a' + k. */
extern const char *const fixture_chips[];
enum { FIXTURE_CODE_BYTES = 256 * 1024 }; /* more than a backward pass of D = 256 has */

/* A kernel file in memory whose one target holds text and no cubin. `edit` (null: none)
   may return another text, which is freed; it owns nothing else. Fails the test on an error. */
uint8_t *fixture_file(const struct kernel_case *c, char *(*edit)(const char *text, void *data),
                      void *data, uint64_t *ret_size);

/* The same, loaded on the device "emulated"; null with *e set where that fails. */
struct maskc_kernel *fixture_load(const struct kernel_case *c,
                                  char *(*edit)(const char *text, void *data), void *data,
                                  struct error *e);

/* The problem of a whole mask with a case's features. */
struct problem fixture_problem(const struct maskc_kernel *k);

/* fixture_load unchanged; fails the test on an error. */
struct maskc_kernel *must_load_text(const struct kernel_case *c);

/* The problem against float64, backward too where the kernel has it. */
void must_hold(const struct maskc_kernel *k, const struct problem *p, const char *name);

/* Lengths, then packed (not with other numbers of keys), then `by` shorter with a scale below zero. */
void must_launch(const struct maskc_kernel *k, uint32_t by, const char *name);

/* Inputs and results of one launch of each pass, the threads of a block in the seed's order. Caller
   destroys. */
struct problem_data *must_run(const struct maskc_kernel *k, const struct problem *p,
                              uint64_t seed, uint32_t threads);

/* Fails unless results have equal bits, backward too where the kernel has it, for `seeds` orders of
   the threads. The run with seed s has a grid of s blocks. */
void must_repeat(const struct maskc_kernel *k, const struct problem *p, uint64_t seeds);
