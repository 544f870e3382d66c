/* SPDX-License-Identifier: Apache-2.0 */
/* Are sparse matrices of every format their stored entries, are neighbourhoods of k steps those of matrix powers, and is
   what is no such file refused in one line? */
#include "masks/graph/graph.h"
#include "tests/masks/help.h"
#include "tests/masks/npz_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 12, MOST = 200 };

/* Entries in random order, some twice, some with value 0; `on` is what they mean. */
struct entries {
    uint64_t count;
    int64_t row[MOST], column[MOST];
    float value[MOST];
    bool on[N][N];
};

static struct entries random_entries(uint64_t *state)
{
    struct entries x = {.count = next_random(state) % MOST};
    for (uint64_t k = 0; k < x.count; k++) {
        x.row[k] = (int64_t)(next_random(state) % N);
        x.column[k] = (int64_t)(next_random(state) % N);
        x.value[k] = next_random(state) % 4 ? -2.5f : next_random(state) % 2 ? -0.0f : 0;
        x.on[x.row[k]][x.column[k]] |= x.value[k] != 0;
    }
    return x;
}

/* The entries sorted by `key`; pointer[N + 1]. */
static void compress(const struct entries *x, const int64_t *key, const int64_t *other,
                     int64_t *pointer, int64_t *index, float *value)
{
    int64_t done = 0;
    for (int64_t i = 0; i < N; i++) {
        pointer[i] = done;
        for (uint64_t k = 0; k < x->count; k++)
            if (key[k] == i) {
                index[done] = other[k];
                value[done++] = x->value[k];
            }
    }
    pointer[N] = done;
}

static void write_compressed(struct npz_file *f, const struct entries *x, const char *format,
                             bool wide)
{
    int64_t pointer[N + 1], index[MOST];
    float value[MOST];
    bool by_row = !strcmp(format, "csr");
    compress(x, by_row ? x->row : x->column, by_row ? x->column : x->row, pointer, index,
             value);
    npz_add_whole(f, "indices", wide, x->count, index);
    npz_add_whole(f, "indptr", wide, N + 1, pointer);
    npz_add(f, "data", "<f4", 1, &x->count, value);
}

static void write_listed(struct npz_file *f, const struct entries *x, bool wide, bool coords)
{
    int64_t both[2 * MOST];
    memcpy(both, x->row, x->count * sizeof *both);
    memcpy(both + x->count, x->column, x->count * sizeof *both);
    if (coords)
        npz_add(f, "coords", "<i8", 2, (uint64_t[]){2, x->count}, both);
    else {
        npz_add_whole(f, "row", wide, x->count, x->row);
        npz_add_whole(f, "col", wide, x->count, x->column);
    }
    npz_add(f, "data", "<f4", 1, &x->count, x->value);
}

/* Blocks of 3 x 2, each entry in a block of its own: blocks may occur twice, in any order. */
static void write_blocks(struct npz_file *f, const struct entries *x, bool wide)
{
    enum { HEIGHT = 3, WIDTH = 2 };
    int64_t pointer[N / HEIGHT + 1] = {0}, index[MOST];
    double *value = memory_new(MOST * HEIGHT * WIDTH, sizeof *value);
    uint64_t done = 0;
    for (int64_t b = 0; b < N / HEIGHT; b++) {
        for (uint64_t k = 0; k < x->count; k++)
            if (x->row[k] / HEIGHT == b) {
                index[done] = x->column[k] / WIDTH;
                value[(done * HEIGHT + (uint64_t)x->row[k] % HEIGHT) * WIDTH +
                      (uint64_t)x->column[k] % WIDTH] = x->value[k];
                done++;
            }
        pointer[b + 1] = (int64_t)done;
    }
    npz_add_whole(f, "indices", wide, done, index);
    npz_add_whole(f, "indptr", wide, N / HEIGHT + 1, pointer);
    npz_add(f, "data", "<f8", 3, (uint64_t[]){done, HEIGHT, WIDTH}, value);
    free(value);
}

static const char *const formats[] = {"csr", "csc", "coo", "bsr"};

static void write_matrix(const struct entries *x, int format, bool wide, bool variant,
                         const char *path)
{
    struct npz_file f = {.deflated = variant && MASKS_ZLIB};
    npz_add_kind(&f, formats[format], N, N);
    if (format < 2)
        write_compressed(&f, x, formats[format], wide);
    else if (format == 2)
        write_listed(&f, x, wide, variant);
    else
        write_blocks(&f, x, wide);
    npz_end(&f);
    write_bytes(path, text_get(&f.bytes), f.bytes.length);
    npz_finish(&f);
}

static void compare(const struct mask *m, bool (*on)[N], const char *what)
{
    assert_int_equal(m->n, N);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t j = 0; j < N; j++)
            if (pattern_test(m->pattern[0], i, j) != on[i][j])
                fail_msg("%s: entry %u, %u is wrong", what, i, j);
}

static void matrices_are_their_entries(void **unused)
{
    (void)unused;
    uint64_t state = 11;
    for (int round = 0; round < 200; round++) {
        struct entries x = random_entries(&state);
        const char *path = test_path("matrix.npz");
        write_matrix(&x, round % 4, round / 4 % 2, round / 8 % 2, path);
        struct mask *m = load((struct mask_request){.name = path});
        compare(m, x.on, formats[round % 4]);
        mask_destroy(m);
    }
}

static void steps(bool (*on)[N], uint32_t hops, bool (*ret)[N])
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            ret[i][j] = i == j;
    for (uint32_t hop = 0; hop < hops; hop++) {
        bool before[N][N];
        memcpy(before, ret, sizeof before);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                for (int k = 0; k < N && before[i][j]; k++)
                    ret[i][k] |= on[j][k];
    }
}

static void hops_are_powers(void **unused)
{
    (void)unused;
    uint64_t state = 13;
    for (uint32_t round = 0; round < 60; round++) {
        struct entries x = random_entries(&state);
        bool reached[N][N];
        const char *path = test_path("graph.npz");
        x.count /= 8;
        memset(x.on, 0, sizeof x.on);
        for (uint64_t k = 0; k < x.count; k++)
            x.on[x.row[k]][x.column[k]] |= x.value[k] != 0;
        write_matrix(&x, 2, false, false, path);
        steps(x.on, round % 6, reached);
        struct mask *m =
            load((struct mask_request){.name = path, .has_hops = true, .hops = round % 6});
        compare(m, reached, "hops");
        mask_destroy(m);
    }
}

/* A byte of each array is changed: its checksum tells. */
static void damage_is_refused(void **unused)
{
    (void)unused;
    uint64_t state = 17;
    struct entries x = random_entries(&state);
    struct file f;
    struct error e = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", test_path("whole.npz"));
    write_matrix(&x, 0, false, false, path);
    assert_int_equal(file_open(path, &f, &e), 0);
    uint8_t *bytes = memory_copy(f.bytes, f.size);
    size_t size = f.size, refused = 0;
    file_close(&f);
    for (size_t k = 0; k < size; k += 7) {
        bytes[k] ^= 0x10;
        struct mask *m = sparse_parse(bytes, size, "FILE", &e);
        refused += !m;
        mask_destroy(m);
        bytes[k] ^= 0x10;
    }
    assert_true(refused > size / 7 * 3 / 4); /* the rest: dates and attributes */
    for (size_t k = 0; k < size; k += 11)
        assert_null(sparse_parse(bytes, k, "FILE", &e));
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_are_their_entries),
        cmocka_unit_test(hops_are_powers),
        cmocka_unit_test(damage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, test_folder_remove);
}
