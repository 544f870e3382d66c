/* SPDX-License-Identifier: Apache-2.0 */
/* Small kernel files with every kind of piece, as a corpus for the fuzzer: mkb_seeds FOLDER. */
#include "masks/base/file.h"
#include "tests/runtime/fixture.h"
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name, *mask;
    uint32_t n, heads;
} seeds[] = {
    {"tiny", "window(1)|global(0)", 5, 1},
    {"none", "none", 9, 2},
    {"dense", "dense", 40, 2},
    {"rich", "(window(9)|distance(40)|global(0))-diagonal(0)", 70, 2},
    {"blocks", "blocks(2,shift=1)", 80, 1},
    {"lines", "distance(1,2,5,11,30)", 64, 1},
};

int main(int count, char **argument)
{
    if (count != 2) {
        fprintf(stderr, "usage: mkb_seeds FOLDER\n");
        return 2;
    }
    for (size_t k = 0; k < sizeof seeds / sizeof *seeds; k++) {
        struct error e = {0};
        char path[4096];
        struct fixture *f = fixture_new(seeds[k].mask, seeds[k].n, seeds[k].heads, k % 2 == 0);
        snprintf(path, sizeof path, "%s/%s.mkb", argument[1], seeds[k].name);
        int failed = file_write(path, f->bytes, f->size, &e);
        fixture_free(f);
        if (failed) {
            fprintf(stderr, "mkb_seeds: %s\n", e.text);
            return 1;
        }
    }
    return 0;
}
