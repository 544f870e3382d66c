/* SPDX-License-Identifier: Apache-2.0 */
/* The corpus of the reader of sparse matrices: npz_seeds FOLDER writes one 4 x 4 matrix in each format. */
#include "masks/base/file.h"
#include "tests/masks/npz_file.h"
#include <stdio.h>
#include <string.h>

static const int64_t row[] = {0, 0, 2, 3, 3}, column[] = {1, 3, 0, 3, 2},
                     pointer[] = {0, 2, 2, 3, 5}, block_column[] = {1, 0, 1},
                     block_pointer[] = {0, 1, 3};
static const double data[12] = {1, 0.5, -0.0, 2, 1, 0, 0, 3, 4, 0, 0, 1};

static void fill(struct npz_file *f, const char *name)
{
    bool wide = !strcmp(name, "coo");
    npz_add_kind(f, strcmp(name, "coords") ? name : "coo", 4, 4);
    if (!strcmp(name, "bsr")) {
        npz_add_whole(f, "indices", wide, 3, block_column);
        npz_add_whole(f, "indptr", wide, 3, block_pointer);
        npz_add(f, "data", "<f8", 3, (uint64_t[]){3, 2, 2}, data);
        return;
    }
    if (wide) {
        npz_add_whole(f, "row", wide, 5, row);
        npz_add_whole(f, "col", wide, 5, column);
    } else if (!strcmp(name, "coords")) {
        int64_t both[10];
        memcpy(both, row, sizeof row);
        memcpy(both + 5, column, sizeof column);
        npz_add(f, "coords", "<i8", 2, (uint64_t[]){2, 5}, both);
    } else {
        npz_add_whole(f, "indices", wide, 5, column);
        npz_add_whole(f, "indptr", wide, 5, pointer);
    }
    npz_add(f, "data", "<f8", 1, (uint64_t[]){5}, data);
}

int main(int count, char **argument)
{
    static const char *const names[] = {"csr", "csc", "coo", "bsr", "coords"};
    struct error e = {0};
    int result = 0;
    if (count != 2) {
        fprintf(stderr, "usage: npz_seeds FOLDER\n");
        return 2;
    }
    for (size_t k = 0; k < sizeof names / sizeof *names && result == 0; k++) {
        struct npz_file f = {.deflated = k % 2};
        char path[4096];
        fill(&f, names[k]);
        npz_end(&f);
        snprintf(path, sizeof path, "%s/%s.npz", argument[1], names[k]);
        result = file_write(path, text_get(&f.bytes), f.bytes.length, &e);
        npz_finish(&f);
    }
    if (result < 0)
        fprintf(stderr, "npz_seeds: %s\n", e.text);
    return result < 0;
}
