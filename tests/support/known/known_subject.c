/* SPDX-License-Identifier: Apache-2.0 */
/* See known_subject.h. */
#include "tests/support/known/known_subject.h"
#include <string.h>

void known_start_subject(struct known *k, const char *list, const char *source, bool update)
{
    const char *const files[] = {source,
                                 "tests/support/subject.c",
                                 "tests/support/tiles/cpu/matrix/*.h",
                                 "runtime/emulated/*.[ch]",
                                 "runtime/device/cpu*.[ch]",
                                 "runtime/device/emulated/*.[ch]",
                                 "runtime/compile/compile.c",
                                 "runtime/compile/host.c",
                                 NULL};
    known_start_files(k, list, files, update);
}

struct cache_key known_subject_key(const struct mask *m, const struct target *t,
                                   const struct kernel_request *f,
                                   const struct machine *machine)
{
    const char *name = subject_name(t);
    const bool emulated =
        strcmp(name, t->name); /* AMX's kernels, with tile instructions in software */
    const struct kernel_case c = {.mask = name,
                                  .own = m,
                                  .request = *f,
                                  .target = emulated ? "x86-64-amx" : name,
                                  .machine = machine};
    return known_key_join(known_text_key(&c), cache_key(name, strlen(name)));
}

struct maskc_kernel *known_load_subject(struct known *k, const struct mask *m,
                                        const struct target *t, const struct kernel_request *f,
                                        struct cache *cache)
{
    return known_skips(k, known_subject_key(m, t, f, NULL)) ? NULL
                                                            : subject_load(m, t, f, cache);
}
