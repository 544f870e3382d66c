/* SPDX-License-Identifier: Apache-2.0 */
/* Known cases of tests that take kernels of all targets (subject.h). */
#pragma once
#include "tests/support/known/known_text.h"
#include "tests/support/subject.h"

/* known_start with the name of the list and the test's own source, "tests/kernels/scale_test.c": in common are that, the launch on
   each device and the reference. */
void known_start_subject(struct known *k, const char *list, const char *source, bool update);
/* Key of the mask's kernel file for the target, planned for a machine (null: the target's row of the table). */
struct cache_key known_subject_key(const struct mask *m, const struct target *t,
                                   const struct kernel_request *f,
                                   const struct machine *machine);
/* subject_load; null where the case need not run. */
struct maskc_kernel *known_load_subject(struct known *k, const struct mask *m,
                                        const struct target *t, const struct kernel_request *f,
                                        struct cache *cache);
