/* SPDX-License-Identifier: Apache-2.0 */
/* See golden.h. */
#include "tests/gen/golden.h"
#include "masks/base/file.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

bool golden_update;

void golden_compare(const char *path, const struct text *text)
{
    struct error e = {0};
    struct file golden;
    if (golden_update) {
        assert_int_equal(file_write(path, text->bytes, text->length, &e), 0);
        return;
    }
    if (file_open(path, &golden, &e))
        fail_msg("%s (run with --update to write it)", e.text);
    bool same = golden.size == text->length && !memcmp(golden.bytes, text->bytes, text->length);
    file_close(&golden);
    if (!same)
        fail_msg("%s differs; run with --update and read the diff. It is now:\n%s", path,
                 text->bytes);
}
