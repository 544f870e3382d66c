/* SPDX-License-Identifier: Apache-2.0 */
/* Dense files that are no masks as they are asked for: each is refused in one line that says why. */
#include "masks/safetensors.h"
#include "masks/write.h"
#include "tests/masks/help.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tensors_of_others_are_let_be(void **unused)
{
    (void)unused;
    static const char header[] =
        "{\"scale\":{\"dtype\":\"F8_E8M0\",\"shape\":[3],\"data_offsets\":[0,3]},"
        "\"m\":{\"dtype\":\"BOOL\",\"shape\":[2,2],\"data_offsets\":[3,7]}}";
    static const uint8_t data[7] = {9, 9, 9, 1, 0, 1, 1};
    struct text file = {0}, line = {0};
    text_append(&file, (const char[8]){(char)strlen(header)}, 8);
    text_add(&file, "%s", header);
    text_append(&file, (const char *)data, sizeof data);
    const char *path = test_path("others.safetensors");
    write_bytes(path, file.bytes, file.length);
    struct mask *m = load((struct mask_request){.name = path, .tensor = "m"});
    for (uint32_t k = 0; k < 4; k++)
        assert_int_equal(pattern_test(m->pattern[0], k / 2, k % 2), data[3 + k]);
    mask_destroy(m);
    text_add(
        &line,
        "%s: tensor scale: elements of type F8_E8M0, booleans, integers or floats are expected",
        path);
    refuse((struct mask_request){.name = path, .tensor = "scale"}, line.bytes);
    text_finish(&line);
    text_finish(&file);
}

/* A .npy, a request for it, and the error behind the path. */
static const struct {
    const char *descr, *shape;
    double values[4];
    uint32_t count;
    struct mask_request request;
    const char *error;
} bad[] = {
    {"<f4",
     "(2, 2)",
     {0},
     4,
     {0},
     ": a float mask, --threshold T (active where > T) or --keep P (percent a head) is "
     "expected (`maskc make FILE --threshold T -o NEW.npy` writes a boolean mask)"},
    {"<i4",
     "(2, 2)",
     {0, 1, -1, 0},
     4,
     {0},
     ": a negative integer at head 0, query 1, key 0, 0 or 1 is expected; an additive mask (0 "
     "and -10000) needs --threshold, as in --threshold -1 (`maskc make FILE --threshold -1 -o "
     "NEW.npy` writes a boolean mask)"},
    {"|b1", "(1, 4)", {0}, 4, {0}, ": 1 x 4 is not square, [n,n] is expected"},
    {"<f4",
     "(2, 1, 2)",
     {0},
     4,
     {0},
     ": 1 x 2 is not square, [n,n] is expected (logits a distance: --dam)"},
    {"|b1", "(4,)", {0}, 4, {0}, ": 1 dimensions, [n,n], [H,n,n] or [L,H,n,n] is expected"},
    {"|b1",
     "(1, 1, 1, 2, 2)",
     {0},
     4,
     {0},
     ": 5 dimensions, [n,n], [H,n,n] or [L,H,n,n] is expected; sequences of a batch share the "
     "mask, and lengths or "
     "a packed batch (--offsets) tell them apart"},
    {"|b1", "(0, 0)", {0}, 0, {0}, ": length 0, 1..1048576 is expected"},
    {"|b1",
     "(0, 2, 2)",
     {0},
     0,
     {0},
     ": 1 layers of 0 heads, 1..4096 and 1..4096 are expected"},
    {"|b1", "(2, 2)", {0}, 3, {0}, ": the header promises 4 bytes of data, 3 follow"},
    {"<f8",
     "(2, 2)",
     {0, 0, 0, NAN},
     4,
     {.has_threshold = true},
     ": NaN at head 0, query 1, key 1, numbers are expected"},
    {"<f8",
     "(2, 2)",
     {0, NAN, 0, 0},
     4,
     {.has_keep = true, .keep = 50},
     ": NaN at head 0, query 0, key 1, numbers are expected"},
    {"<f8",
     "(2, 2)",
     {0},
     4,
     {.has_keep = true, .has_threshold = true},
     ": --threshold or --keep is expected, not both"},
    {"|b1", "(2, 2)", {0}, 4, {.n = 3}, ": -n 3 is larger than the mask's length 2"},
    {"|b1", "(2, 2)", {0}, 4, {.layer = 1}, ": --layer 1 is out of range, 0..0 is expected"},
    {"|b1", "(2, 2)", {0}, 4, {.tensor = "x"}, ": --tensor is for .safetensors files"},
    {"|b1", "(2, 2)", {0}, 4, {.border = true}, ": --border goes with --dam"},
    {"|b1",
     "(4, 1, 1)",
     {0},
     4,
     {.heads = 3},
     ": the mask has 4 heads, --heads 3 needs 1 or 3"},
    {"|b1", "(4, 1, 1)", {0}, 4, {.dam = true}, ": --dam, parameters as floats are expected"},
    {"<f4",
     "(4,)",
     {0},
     4,
     {.dam = true},
     ": --dam, parameters [H,n,2], [H,n,n] or [H,n-2] are expected, or L such"},
    {"<f4", "(2, 2)", {0, 0, 0, NAN}, 4, {.dam = true}, ": NaN at [1,1], numbers are expected"},
    {"<f4",
     "(1, 2, 2)",
     {0},
     4,
     {.dam = true},
     ": --dam, [H,2,2] may be logits or alpha; a length other than 2 is expected"},
    {"<f8",
     "(2, 1, 2)",
     {0, 0, NAN, 0},
     4,
     {.dam = true},
     ": NaN at [1,0,0], numbers are expected"},
    {"<f4",
     "(2, 1, 2)",
     {0},
     4,
     {.dam = true, .n = 2},
     ": -n 2 is larger than the parameters' length 1"},
    {"<f4",
     "(2, 1, 2)",
     {0},
     4,
     {.dam = true, .has_threshold = true},
     ": --dam decides by itself, --threshold and --keep do not go with it"},
};

static void what_does_not_fit_is_refused(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        uint8_t data[32];
        uint32_t item = (uint32_t)(bad[k].descr[2] - '0');
        for (uint32_t x = 0; x < bad[k].count; x++)
            element_store(bad[k].descr, bad[k].values[x], data + x * item);
        const char *path = test_path("b.npy");
        write_npy(path, bad[k].descr, bad[k].shape, false, data, (size_t)bad[k].count * item);
        struct mask_request r = bad[k].request;
        struct text line = {0};
        r.name = path;
        text_add(&line, "%s%s", path, bad[k].error);
        refuse(r, line.bytes);
        text_finish(&line);
    }
}

static void dense_files_have_a_limit(void **unused)
{
    (void)unused;
    struct mask *m = load_text("none", 100000);
    struct error e = {0};
    assert_int_equal(mask_write_npy(m, "big.npy", &e), -1);
    assert_string_equal(e.text,
                        "big.npy: 1 x 100000 x 100000 booleans are too large for a dense "
                        "file (2^33 bytes); write a .mask");
    assert_int_equal(mask_write_safetensors(m, "/no-such-folder/x.safetensors", &e), -1);
    mask_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_of_others_are_let_be),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(dense_files_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, test_folder_remove);
}
