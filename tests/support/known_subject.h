/* SPDX-License-Identifier: Apache-2.0 */
/* Known cases of tests that take kernels of all targets (subject.h). */
#pragma once
#include "tests/support/known_text.h"
#include "tests/support/subject.h"

/* known_start for a test in tests/kernels: in common are the launch on each device, the reference, and the test's own
   source NAME_test.c. `list` is the name of the list. */
void known_start_subject(struct known *k, const char *name, const char *list, bool update);
/* Of the mask's kernel file for the target. */
struct cache_key known_subject_key(const struct mask *m, const struct target *t,
                                   const struct kernel_request *f);
/* subject_load; null where the case need not run. */
struct maskc_kernel *known_load_subject(struct known *k, const struct mask *m,
                                        const struct target *t, const struct kernel_request *f,
                                        struct cache *cache);
