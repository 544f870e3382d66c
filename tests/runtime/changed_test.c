/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel files with a right checksum and thousands of random changes: each either is refused or leaves tables
   that can be walked safely. */
#include "masks/base/memory.h"
#include "tests/runtime/fixture.h"
#include "tests/runtime/walk.h"
#include "tests/support/program/options.h"
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int changes = 1000; /* of each file; --few: fewer */

static uint64_t next(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* A word of the tensor data becomes something near or something wild. */
static uint32_t changed(uint32_t word, uint64_t *seed)
{
    static const uint32_t wild[] = {0, 1, 31, 32, 33, 0x7fffffff, 0x80000000, 0xffffffff};
    switch (next(seed) % 4) {
    case 0:
        return word + 1;
    case 1:
        return word - 1;
    case 2:
        return word ^ UINT32_C(1) << next(seed) % 32;
    default:
        return wild[next(seed) % 8];
    }
}

static void change_word(uint8_t *bytes, uint64_t size, uint64_t header, uint64_t *seed)
{
    uint64_t at = 8 + header + next(seed) % ((size - 8 - header) / 4) * 4;
    uint32_t word;
    memcpy(&word, bytes + at, 4);
    word = changed(word, seed);
    memcpy(bytes + at, &word, 4);
}

static void random_changes_are_refused_or_harmless(void **state)
{
    (void)state;
    uint64_t seed = 20240607;
    int believed = 0, refused = 0;
    struct fixture *f;
    for (uint32_t g = 0; (f = fixture_numbered(g)); g++) {
        uint64_t header;
        memcpy(&header, f->bytes, 8);
        for (int k = 0; k < changes; k++) {
            uint8_t *bytes = memory_copy(f->bytes, f->size);
            struct artifact *a;
            change_word(bytes, f->size, header, &seed);
            fixture_sign(bytes, f->size);
            if (artifact_read(bytes, f->size, "FILE", &a, NULL) == 0) {
                walk_artifact(a);
                artifact_destroy(a);
                believed++;
            } else {
                refused++;
            }
            free(bytes);
        }
        fixture_free(f);
    }
    /* Code, source text, costs and pattern bits may change without a table leaving its bounds. */
    assert_true(refused > believed);
}

int main(int argc, char **argv)
{
    if (test_option(argc, argv, "--few"))
        changes = 300;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_changes_are_refused_or_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
