/* SPDX-License-Identifier: Apache-2.0 */
/* See sample_key.h. */
#include "tests/sass/sample_key.h"
#include "runtime/compile/compile.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

struct cache_key sample_common(void)
{
    static const char *const files[] = {"tests/sass/*.[ch]",
                                        "tests/sass/hopper/*.[ch]",
                                        "tests/support/cuda_fixture.c",
                                        "tests/support/plan_shape.c",
                                        "tests/support/sass_setup.c",
                                        "tests/support/covering.c",
                                        "tools/reference/*.[ch]",
                                        "runtime/launch/*.[ch]",
                                        "runtime/device/*.[ch]",
                                        NULL};
    struct error e = {0};
    const char *nvrtc = nvrtc_version(&e);
    return known_key_join(cache_key(nvrtc, strlen(nvrtc)), known_key_of_files(files));
}

struct cache_key sample_key(const struct sass_case *c, const char *target,
                            void (*see)(const struct artifact *a))
{
    struct kernel_case text = {.mask = c->mask[0],
                               .target = target,
                               .tiled = c->family != NULL,
                               .family = c->family,
                               .shape = c->shape};
    struct mask *m = setup_mask(c, &text.request);
    text.own = m;
    struct error e = {0};
    struct artifact *a = NULL;
    uint64_t size;
    uint8_t *bytes = fixture_file(&text, NULL, NULL, &size);
    const struct cache_key key = cache_key(bytes, size);
    if (artifact_read(bytes, size, c->mask[0], &a, &e))
        fail_msg("%s", e.text);
    see(a);
    artifact_destroy(a);
    free(bytes);
    mask_destroy(m);
    return key;
}
