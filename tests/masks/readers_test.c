/* SPDX-License-Identifier: Apache-2.0 */
/* Dense masks of every type, rank and order; thresholds and shares against a sort; DAM parameters
   against the tensor code of SparseBERT, written out plainly. */
#include "masks/npy.h"
#include "masks/readers/bits.h"
#include "masks/safetensors.h"
#include "masks/write.h"
#include "tests/masks/help.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { L = 2, H = 3, MAX_N = 67 };

/* The value of entry (l, h, i, j) in these tests: 0, 1, 2 or 3. */
static int value_at(uint32_t l, uint32_t h, uint32_t i, uint32_t j)
{
    uint64_t state = 1 + j + 100 * (i + 100 * (h + 100 * (uint64_t)l));
    next_random(&state);
    return (int)(next_random(&state) >> 40) % 4;
}

/* Rank 2 to 4, all layers and heads that the rank can say; the file is read and compared. */
static void check_dense(const char *descr, uint32_t rank, bool fortran, uint32_t n,
                        bool threshold)
{
    uint32_t layers = rank > 3 ? L : 1, heads = rank > 2 ? H : 1,
             item = (uint32_t)(descr[2] - '0');
    struct npy a = {.rank = 4, .shape = {layers, heads, n, n}, .fortran = fortran};
    size_t size = (size_t)layers * heads * n * n * item;
    uint8_t *data = memory_new(size, 1);
    for (uint64_t l = 0; l < layers; l++)
        for (uint64_t h = 0; h < heads; h++)
            for (uint64_t i = 0; i < n; i++)
                for (uint64_t j = 0; j < n; j++)
                    element_store(descr,
                                  value_at((uint32_t)l, (uint32_t)h, (uint32_t)i, (uint32_t)j),
                                  data + npy_index(&a, (uint64_t[]){l, h, i, j}) * item);
    char shape[80];
    snprintf(shape, sizeof shape,
             rank == 4   ? "(%u, %u, %u, %u)"
             : rank == 3 ? "(%u, %u, %u)"
                         : "(%u, %u)",
             rank == 4   ? layers
             : rank == 3 ? heads
                         : n,
             rank == 4 ? heads : n, n, n);
    const char *path = test_path("d.npy");
    write_npy(path, descr, shape, fortran, data, size);
    struct mask *m =
        load((struct mask_request){.name = path, .has_threshold = threshold, .threshold = 1});
    assert_true(m->n == n && m->layers == layers && m->heads == heads);
    for (uint32_t l = 0; l < layers; l++)
        for (uint32_t h = 0; h < heads; h++)
            for (uint32_t i = 0; i < n; i++)
                for (uint32_t j = 0; j < n; j++)
                    if (pattern_test(mask_pattern(m, l, h), i, j) !=
                        (value_at(l, h, i, j) > threshold))
                        fail_msg("%s rank %u order %d n %u: [%u,%u,%u,%u]", descr, rank,
                                 fortran, n, l, h, i, j);
    mask_destroy(m);
    free(data);
}

static void every_type_rank_and_order_is_read(void **unused)
{
    (void)unused;
    static const char *const types[] = {"|b1", "|u1", "|i1", "<u2", "<i2", "<i4",
                                        "<u8", "<i8", "<f2", "<f4", "<f8"};
    static const uint32_t lengths[] = {1, 5, 64, MAX_N};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (uint32_t rank = 2; rank <= 4; rank++)
            for (int fortran = 0; fortran < 2; fortran++)
                for (int k = 0; k < 4; k++) {
                    if (types[t][1] != 'f')
                        check_dense(types[t], rank, fortran, lengths[k], false);
                    check_dense(types[t], rank, fortran, lengths[k], true);
                }
}

/* All 256 bytes at all places of a word, so that the eight-at-a-time way is seen to count. */
static void every_byte_that_is_not_zero_is_on(void **unused)
{
    (void)unused;
    uint8_t bytes[256 + 13];
    uint64_t words[5];
    uint32_t at;
    for (uint32_t shift = 0; shift < 13; shift++) {
        for (uint32_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)(k * 37 * (k % 3) + shift);
        struct npy a = {.type = NPY_BOOL, .item_bytes = 1, .data = bytes};
        const struct npy_row row = {&a, shift, 1, 256};
        assert_int_equal(bits_read(&row, NULL, words, &at), BITS_FINE);
        for (uint32_t k = 0; k < 256; k++)
            assert_int_equal(words[k / 64] >> k % 64 & 1, bytes[shift + k] != 0);
    }
}

struct entry {
    double value;
    uint32_t at;
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static void check_keep(const float *value, uint32_t n, double percent, uint64_t dropped,
                       bool fortran)
{
    struct entry *sorted = memory_new((size_t)n * n, sizeof *sorted);
    float *stored = memory_new((size_t)n * n, sizeof *stored);
    bool *active = memory_new((size_t)n * n, sizeof *active);
    for (uint32_t k = 0; k < n * n; k++) {
        sorted[k] = (struct entry){value[k], k};
        stored[fortran ? k % n * n + k / n : k] = value[k];
    }
    qsort(sorted, (size_t)n * n, sizeof *sorted, compare);
    for (uint64_t k = dropped; k < (uint64_t)n * n; k++)
        active[sorted[k].at] = true;
    char shape[40];
    snprintf(shape, sizeof shape, "(%u, %u)", n, n);
    const char *path = test_path("k.npy");
    write_npy(path, "<f4", shape, fortran, stored, (size_t)n * n * sizeof *stored);
    struct mask *m =
        load((struct mask_request){.name = path, .has_keep = true, .keep = percent});
    for (uint32_t k = 0; k < n * n; k++)
        if (pattern_test(m->pattern[0], k / n, k % n) != active[k])
            fail_msg("keep %g of %u: entry %u, %u is wrong", percent, n, k / n, k % n);
    assert_int_equal(m->pattern[0]->active, (uint64_t)n * n - dropped);
    mask_destroy(m);
    free(sorted);
    free(stored);
    free(active);
}

static void keep_is_a_sort(void **unused)
{
    (void)unused;
    static const struct {
        uint32_t n;
        double percent;
        uint64_t dropped;
    } cases[] = {
        {10, 100, 0},     {10, 0, 100}, {10, 99.9, 0},  {100, 99.9, 10},
        {100, 99.99, 1},  {7, 50, 24},  {64, 20, 3276}, {64, 33.3, 2732},
        {3, 10, 8},       {1, 99, 0},   {30, 0.1, 899}, {100, 12.345678, 8765},
        {300, 40, 54000},
    };
    uint64_t state = 3;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int few = 0; few < 3; few++) {
            uint32_t n = cases[k].n;
            float *value = memory_new((size_t)n * n, sizeof *value);
            for (uint32_t x = 0; x < n * n; x++) {
                int64_t draw = (int64_t)(next_random(&state) >> 20) % (few ? 5 : 1 << 20) - 2;
                value[x] = draw == 2 ? INFINITY : draw == 0 && x % 2 ? -0.0f : (float)draw / 7;
            }
            check_keep(value, n, cases[k].percent, cases[k].dropped, few == 2);
            free(value);
        }
}

/* SparseBERT's modeling.py for one head: two logits a distance become a matrix by distance. */
static void dam_distances_are_its_code(void **unused)
{
    (void)unused;
    enum { N = 9 };
    float logits[H][N][2];
    uint64_t state = 11;
    for (uint32_t h = 0; h < H; h++)
        for (uint32_t d = 0; d < N; d++)
            for (int c = 0; c < 2; c++)
                logits[h][d][c] =
                    (float)((double)(next_random(&state) >> 40) / (1 << 24) - 0.5);
    logits[1][4][0] = logits[1][4][1]; /* equal: not active */
    write_npy(test_path("dam.npy"), "<f4", "(3, 9, 2)", false, logits, sizeof logits);
    for (int border = 0; border < 2; border++)
        for (uint32_t n = 9; n >= 5; n -= 4) {
            struct mask *m = load((struct mask_request){
                .name = test_path("dam.npy"), .dam = true, .border = border, .n = n});
            assert_true(m->n == n && m->heads == H);
            for (uint32_t h = 0; h < H; h++)
                for (uint32_t i = 0; i < n; i++)
                    for (uint32_t j = 0; j < n; j++) {
                        const float *a = logits[h][abs((int)i - (int)j)];
                        bool edge = border && (!i || !j || i == n - 1 || j == n - 1);
                        assert_int_equal(pattern_test(mask_pattern(m, 0, h), i, j),
                                         a[0] > a[1] || edge);
                    }
            mask_destroy(m);
        }
}

static void dam_alphas_are_thresholded_at_zero(void **unused)
{
    (void)unused;
    static const double alpha[2][3][3] = {{{1, -1, 0}, {-0.0, 1e-300, -1e-300}, {2, 3, -4}},
                                          {{-1, -1, -1}, {-1, -1, -1}, {-1, -1, -1}}};
    write_npy(test_path("a.npy"), "<f8", "(2, 3, 3)", false, alpha, sizeof alpha);
    for (int border = 0; border < 2; border++) {
        struct mask *m = load(
            (struct mask_request){.name = test_path("a.npy"), .dam = true, .border = border});
        for (uint32_t h = 0; h < 2; h++)
            for (uint32_t k = 0; k < 9; k++)
                assert_int_equal(pattern_test(mask_pattern(m, 0, h), k / 3, k % 3),
                                 alpha[h][k / 3][k % 3] > 0 || (border && k != 4));
        mask_destroy(m);
    }
}

static void tensors_are_masks_too(void **unused)
{
    (void)unused;
    static const uint16_t brain[4] = {0x3f80, 0xbf80, 0x0000, 0x4000}; /* 1, -1, 0, 2 */
    static const uint8_t flags[4] = {0, 1, 0, 1};
    uint64_t size;
    struct safetensors s = {0};
    safetensors_add(&s, "brain", "BF16", 2, (uint64_t[]){2, 2}, brain);
    safetensors_add(&s, "flags", "BOOL", 3, (uint64_t[]){1, 2, 2}, flags);
    uint8_t *bytes = safetensors_write(&s, &size);
    safetensors_finish(&s);
    const char *path = test_path("t.safetensors");
    write_bytes(path, bytes, size);
    free(bytes);
    struct mask *m = load((struct mask_request){
        .name = path, .tensor = "brain", .has_threshold = true, .threshold = -0.5});
    for (uint32_t k = 0; k < 4; k++)
        assert_int_equal(pattern_test(m->pattern[0], k / 2, k % 2), k != 1);
    mask_destroy(m);
    m = load((struct mask_request){.name = path, .tensor = "flags"});
    for (uint32_t k = 0; k < 4; k++)
        assert_int_equal(pattern_test(m->pattern[0], k / 2, k % 2), flags[k]);
    mask_destroy(m);
    struct text line = {0};
    text_add(&line, "%s: there are 2 tensors, --tensor NAME is expected: brain, flags", path);
    refuse((struct mask_request){.name = path}, line.bytes);
    text_finish(&line);
    text_add(&line, "%s: there is no tensor 'x'; it holds brain, flags", path);
    refuse((struct mask_request){.name = path, .tensor = "x"}, line.bytes);
    text_finish(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_rank_and_order_is_read),
        cmocka_unit_test(every_byte_that_is_not_zero_is_on),
        cmocka_unit_test(keep_is_a_sort),
        cmocka_unit_test(dam_distances_are_its_code),
        cmocka_unit_test(dam_alphas_are_thresholded_at_zero),
        cmocka_unit_test(tensors_are_masks_too),
    };
    return cmocka_run_group_tests(tests, NULL, test_folder_remove);
}
