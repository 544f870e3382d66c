/* SPDX-License-Identifier: Apache-2.0 */
/* Which elements of sparse matrices are active, by type, and which files are refused with which line? */
#include "tests/masks/help.h"
#include "tests/masks/npz_file.h"
#include <stdio.h>

/* Types of data: the element's bytes, and whether it is active. */
static void every_type_of_data_is_read(void **unused)
{
    (void)unused;
    /* clang-format off */
    static const struct {
        const char *descr;
        uint8_t bytes[32];
        bool active;
    } types[] = {
        {"|b1", {1}, true},
        {"|b1", {0}, false},
        {"<u2", {0, 1}, true},
        {"<i8", {0, 0, 0, 0, 0, 0, 0, 0x80}, true},
        {"<f2", {0, 0x80}, false},
        {"<f4", {0, 0, 0xc0, 0x7f}, true},
        {"<f8", {1}, true},
        {"<f8", {0, 0, 0, 0, 0, 0, 0, 0x80}, false},
        {"<c8", {0, 0, 0, 0, 1}, true},
        {"<c16", {[7] = 0x80, [15] = 0x80}, false},
        {"<f16", {[9] = 0x80, [12] = 7}, false},
        {"<f16", {[8] = 1}, true},
        {"<c32", {[9] = 0x80, [25] = 0x40}, true},
    };
    /* clang-format on */
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        struct npz_file f = {0};
        const char *path = test_path("type.npz");
        npz_add_kind(&f, "coo", 1, 1);
        npz_add_whole(&f, "row", false, 1, (int64_t[]){0});
        npz_add_whole(&f, "col", false, 1, (int64_t[]){0});
        npz_add(&f, "data", types[k].descr, 1, (uint64_t[]){1}, types[k].bytes);
        npz_end(&f);
        write_bytes(path, text_get(&f.bytes), f.bytes.length);
        struct mask *m = load((struct mask_request){.name = path});
        assert_int_equal(m->pattern[0]->active, types[k].active);
        mask_destroy(m);
        npz_finish(&f);
    }
}

/* A matrix of two entries with one thing changed. */
struct fault {
    const char *format, *index, *other, *data;
    int64_t rows, columns, pointer[4];
    int64_t at[2], to[2];
    const char *line; /* after the path */
};

/* clang-format off */
static const struct fault faults[] = {
    {"coo", "row", "col", "data", 3, 4, {0}, {0, 1}, {1, 2}, ": 3 x 4 is not square, [n,n] is expected"},
    {"coo", "row", "col", "data", -4, -4, {0}, {0, 1}, {1, 2}, ": shape has a number below 0 or above 2^63 - 1"},
    {"coo", "row", "col", "data", 0, 0, {0}, {0, 1}, {1, 2}, ": length 0, 1..1048576 is expected"},
    {"dia", "row", "col", "data", 3, 3, {0}, {0, 1}, {1, 2},
     ": format 'dia'; csr, csc, coo or bsr is expected, as matrix.tocsr() gives"},
    {"coo", "row", "col", "other", 3, 3, {0}, {0, 1}, {1, 2},
     ": there is no array 'data' in it; what scipy.sparse.save_npz writes is expected; a dense mask "
     "belongs into a .npy file (numpy.save)"},
    {"coo", "row", "col", "data", 3, 3, {0}, {0, 3}, {1, 2}, ": row or col has a number that is no row or column"},
    {"coo", "row", "col", "data", 3, 3, {0}, {0, 1}, {-1, 2}, ": row or col has a number that is no row or column"},
    {"csr", "indices", "unused", "data", 3, 3, {0, 1, 1, 2}, {0, 3}, {0, 0}, ": indices has a number that is no column"},
    {"csr", "indices", "unused", "data", 3, 3, {0, 2, 1, 2}, {0, 1}, {0, 0},
     ": indptr does not ascend from 0 to the number of entries"},
    {"csr", "indices", "unused", "data", 3, 3, {0, 1, 2, 3}, {0, 1}, {0, 0},
     ": indptr does not ascend from 0 to the number of entries"},
    {"bsr", "indices", "unused", "data", 3, 3, {0, 1, 2, 2}, {0, 1}, {0, 0},
     ": data is no list of blocks that divide the matrix, in C order"},
};
/* clang-format on */

static void faults_are_refused(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        const struct fault *x = &faults[k];
        struct npz_file f = {0};
        char path[512], line[1024];
        snprintf(path, sizeof path, "%s", test_path("fault.npz"));
        npz_add_kind(&f, x->format, x->rows, x->columns);
        npz_add_whole(&f, x->index, false, 2, x->at);
        npz_add_whole(&f, x->other, false, 2, x->to);
        npz_add_whole(&f, "indptr", false, 4, x->pointer);
        npz_add(&f, x->data, "|b1", 1, (uint64_t[]){2}, "\1\1");
        npz_end(&f);
        write_bytes(path, text_get(&f.bytes), f.bytes.length);
        snprintf(line, sizeof line, "%s%s", path, x->line);
        refuse((struct mask_request){.name = path}, line);
        npz_finish(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_data_is_read),
        cmocka_unit_test(faults_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, test_folder_remove);
}
