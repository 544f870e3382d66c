/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/forge.h"
#include "masks/base/memory.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* 1: refused, 0: this plan has nothing to lie about. The tables lie in the first file's bytes, so
   that is where the lie is written. */
static int tell(struct fixture *f, bool (*lie)(struct artifact *a))
{
    uint8_t *bytes = memory_copy(f->bytes, f->size);
    struct artifact *a, *back;
    uint64_t size;
    int told = 0;
    assert_int_equal(artifact_read(bytes, f->size, "FILE", &a, NULL), 0);
    if (lie(a)) {
        struct error e = {0};
        uint8_t *forged = artifact_write(a, &size);
        told = 1;
        if (artifact_read(forged, size, "FILE", &back, &e) == 0) {
            artifact_destroy(back);
            told = -1;
        } else {
            assert_null(strchr(e.text, '\n'));
        }
        free(forged);
    }
    artifact_destroy(a);
    free(bytes);
    return told;
}

void forge_all(const struct lie *lies, size_t count)
{
    int told[96] = {0};
    assert_true(count <= sizeof told / sizeof *told);
    struct fixture *f;
    for (uint32_t g = 0; (f = fixture_numbered(g)); g++) {
        for (size_t k = 0; k < count; k++) {
            int r = tell(f, lies[k].tell);
            if (r < 0)
                fail_msg("%s: the lie '%s' was believed", f->mask->source, lies[k].name);
            told[k] += r;
        }
        fixture_free(f);
    }
    for (size_t k = 0; k < count; k++)
        if (!told[k])
            fail_msg("the lie '%s' was never told: no mask of the table has what it needs",
                     lies[k].name);
}
