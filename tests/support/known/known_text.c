/* SPDX-License-Identifier: Apache-2.0 */
/* See known_text.h. */
#include "tests/support/known/known_text.h"
#include "runtime/compile/compile.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void known_start_files(struct known *k, const char *name, const char *const *files, bool update)
{
    static const char *const shared[] = {"runtime/launch/*.[ch]", "tools/reference/*.[ch]",
                                         "tests/support/cuda_fixture.c",
                                         "tests/support/covering.c", NULL};
    const char *compiler = host_compiler_version();
    struct cache_key common = cache_key(compiler, strlen(compiler));
    const bool has_sources = getenv("MASKC_SOURCE");
    if (has_sources)
        common = known_key_join(
            common, known_key_join(known_key_of_files(files), known_key_of_files(shared)));
    known_start(k, name, common, update && has_sources);
}

void known_start_text(struct known *k, const char *name, bool update)
{
    char test[128];
    snprintf(test, sizeof test, "tests/kernels/cuda/%s_test.c", name);
    const char *const files[] = {test, "runtime/emulated/*.[ch]",
                                 "runtime/device/emulated/*.[ch]",
                                 "tests/support/planned_work.c", NULL};
    known_start_files(k, name, files, update);
}

static struct cache_key key_of(const struct kernel_case *c, const char *what,
                               void (*see)(const struct artifact *a))
{
    uint64_t size;
    uint8_t *bytes = fixture_file(c, NULL, NULL, &size);
    struct artifact *a = NULL;
    struct error e = {0};
    if (see && artifact_read(bytes, size, c->mask, &a, &e))
        fail_msg("%s", e.text);
    if (see)
        see(a);
    artifact_destroy(a);
    const struct cache_key key =
        known_key_join(cache_key(bytes, size), cache_key(what, strlen(what)));
    free(bytes);
    return key;
}

struct cache_key known_text_key(const struct kernel_case *c)
{
    return key_of(c, "", NULL);
}

struct maskc_kernel *known_load_text(struct known *k, const struct kernel_case *c,
                                     const char *what, void (*see)(const struct artifact *a))
{
    return known_skips(k, key_of(c, what, see)) ? NULL : must_load_text(c);
}
