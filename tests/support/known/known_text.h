/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the emulated tests that ran right before: the same plan and text, run by the same emulation on what the same test
   gives it, come to the same result. */
#pragma once
#include "tests/support/cuda_fixture.h"
#include "tests/support/known/known.h"

/* known_start for a test; in common are these files, the reference, who launches, the host compiler's version. Without
   $MASKC_SOURCE every case runs. */
void known_start_files(struct known *k, const char *name, const char *const *files,
                       bool update);
/* known_start_files() for a test of tests/kernels/cuda. */
void known_start_text(struct known *k, const char *name, bool update);
/* The case's kernel (must_load_text); null where it need not run. `what` is what the test does with it, where that is not in the case.
   `see`, where it is not null, receives the kernel file in both cases. */
struct maskc_kernel *known_load_text(struct known *k, const struct kernel_case *c,
                                     const char *what, void (*see)(const struct artifact *a));
/* Key of the case's kernel file, with its text; the target may be a CPU. */
struct cache_key known_text_key(const struct kernel_case *c);
