/* SPDX-License-Identifier: Apache-2.0 */
/* The .npy reader: headers good and bad, every element type, both orders; the writer. */
#include "masks/npy.h"
#include "tests/masks/help.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A header of version 1 to 3 with `data` zero bytes behind it; the caller frees. */
static uint8_t *make(int version, const char *header, size_t data, size_t *size)
{
    size_t length = strlen(header), before = version == 1 ? 10 : 12;
    uint8_t *bytes = memory_new(before + length + data, 1);
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (uint8_t)version;
    bytes[8] = (uint8_t)length;
    bytes[9] = (uint8_t)(length >> 8);
    memcpy(bytes + before, header, length);
    *size = before + length + data;
    return bytes;
}

static const struct {
    const char *header;
    size_t data;
    const char *error; /* null: fine */
} headers[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24, NULL},
    {"{'shape':(2,3),'fortran_order':True,'descr':\"<f4\"}\n", 24, NULL},
    {"{'descr': '|b1', 'fortran_order': False, 'shape': (), }", 1, NULL},
    {"{'descr': '|b1', 'fortran_order': False, 'shape': (5,), }", 5, NULL},
    {"{'descr': '<u8', 'fortran_order': False, 'shape': (0, 3), }", 0, NULL},
    {"{'descr': '<i8', 'fortran_order': False, 'shape': (0, 18446744073709551615), }", 0, NULL},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", 24,
     "t.npy: big-endian data ('>f4'); write it little-endian: numpy.save(FILE, "
     "a.astype('<f4'))"},
    {"{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }", 24,
     "t.npy: the header promises 12 bytes of data, 24 follow"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 23,
     "t.npy: the header promises 24 bytes of data, 23 follow"},
    {"{'descr': '|b1', 'fortran_order': False, 'shape': (1073741824, 1073741824), }", 4,
     "t.npy: the header promises 1152921504606846976 bytes of data, 4 follow"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 4,
     "t.npy: the header promises more than 2^64 bytes, 4 follow"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (18446744073709551616,), }", 4,
     "t.npy: not a .npy file that can be read: a dimension does not fit in 64 bits"},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8,
     "t.npy: elements of type '<c8', booleans, integers or floats of 2, 4 or 8 bytes are "
     "expected"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8,
     "t.npy: elements of type '|O', booleans, integers or floats of 2, 4 or 8 bytes are "
     "expected"},
    {"{'descr': '', 'fortran_order': False, 'shape': (1,), }", 8,
     "t.npy: elements of type '', booleans, integers or floats of 2, 4 or 8 bytes are "
     "expected"},
    {"{'descr': '<', 'fortran_order': False, 'shape': (1,), }", 8,
     "t.npy: elements of type '<', booleans, integers or floats of 2, 4 or 8 bytes are "
     "expected"},
    {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }", 16,
     "t.npy: elements of type '<f16', booleans, integers or floats of 2, 4 or 8 bytes are "
     "expected"},
    {"{'descr': '<i99999999999', 'fortran_order': False, 'shape': (1,), }", 16,
     "t.npy: elements of type '<i99999999999', booleans, integers or floats of 2, 4 or 8 bytes "
     "are "
     "expected"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4,
     "t.npy: not a .npy file that can be read: 'descr' is no type name (structured types are "
     "not "
     "read)"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", 4,
     "t.npy: not a .npy file that can be read: 'fortran_order' is no boolean"},
    {"{'descr': '<f4', 'shape': (1,), }", 4,
     "t.npy: not a .npy file that can be read: the header lacks descr, fortran_order or shape"},
    {"{'descr': '<f4', 'descr': '<f4', 'shape': (1,), }", 4,
     "t.npy: not a .npy file that can be read: the header has an unknown key or one key twice"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4,
     "t.npy: not a .npy file that can be read: 'shape' holds something other than numbers"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4,
     "t.npy: not a .npy file that can be read: more than 8 dimensions"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", 4,
     "t.npy: not a .npy file that can be read: 'shape' does not end"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", 4,
     "t.npy: not a .npy file that can be read: the header does not end"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4,
     "t.npy: not a .npy file that can be read: something follows the header's dict"},
    {"", 4, "t.npy: not a .npy file that can be read: the header is no dict"},
};

static void check_header(int version, size_t k)
{
    struct npy a;
    struct error e = {0};
    size_t size;
    uint8_t *bytes = make(version, headers[k].header, headers[k].data, &size);
    int r = npy_parse(bytes, size, "t.npy", &a, &e);
    if (r == 0 && headers[k].error)
        fail_msg("%s was accepted", headers[k].header);
    if (r < 0)
        assert_string_equal(e.text, headers[k].error ? headers[k].error : "");
    else
        assert_int_equal(a.count * a.item_bytes, headers[k].data);
    free(bytes);
}

static void headers_are_checked(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof headers / sizeof *headers; k++)
        for (int version = 1; version <= 3; version++)
            check_header(version, k);
    size_t size;
    struct npy a;
    struct error e = {0};
    uint8_t *bytes =
        make(1, "{'descr': '>f8', 'fortran_order': False, 'shape': (1,), }", 8, &size);
    assert_int_equal(npy_parse_any(bytes, size, "m.npz: data", &a, &e), -1);
    assert_string_equal(e.text, "m.npz: data: big-endian data ('>f8'); write it little-endian: "
                                "scipy.sparse.save_npz(FILE, matrix.astype('<f8'))");
    free(bytes);
}

static void files_cut_short_are_refused(void **unused)
{
    (void)unused;
    size_t size;
    uint8_t *bytes = make(1, headers[0].header, headers[0].data, &size);
    for (size_t k = 0; k < size; k++) {
        struct npy a;
        struct error e = {0};
        uint8_t *cut = memory_copy(bytes, k); /* of its own, so that reading past it is seen */
        assert_int_equal(npy_parse(cut, k, "t.npy", &a, &e), -1);
        free(cut);
    }
    bytes[6] = 4;
    struct npy a;
    struct error e = {0};
    assert_int_equal(npy_parse(bytes, size, "t.npy", &a, &e), -1);
    assert_string_equal(e.text, "t.npy: version 4 of .npy, 1 to 3 is expected");
    free(bytes);
}

/* Writes one element, reads it back. */
static double through(const char *descr, uint32_t item, const void *data)
{
    uint64_t size, one = 1;
    struct npy a;
    struct error e = {0};
    uint8_t *bytes = npy_write(descr, item, 1, &one, data, &size);
    assert_int_equal(size % 64, item);
    if (npy_parse(bytes, size, "t.npy", &a, &e) < 0)
        fail_msg("%s", e.text);
    double x = npy_get(&a, 0);
    free(bytes);
    return x;
}

static void elements_keep_their_values(void **unused)
{
    (void)unused;
    static const struct {
        uint16_t half;
        double value;
    } halves[] = {{0x3c00, 1},
                  {0xc000, -2},
                  {0x0001, 0x1p-24},
                  {0x8001, -0x1p-24},
                  {0x7bff, 65504},
                  {0x0400, 0x1p-14},
                  {0x03ff, 0x1p-14 - 0x1p-24},
                  {0x7c00, INFINITY},
                  {0xfc00, -INFINITY},
                  {0x3555, 0x1.554p-2}};
    for (size_t k = 0; k < sizeof halves / sizeof *halves; k++)
        assert_true(through("<f2", 2, &halves[k].half) == halves[k].value);
    assert_true(isnan(through("<f2", 2, &(uint16_t){0x7e00})));
    assert_true(through("<f4", 4, &(float){-1.5f}) == -1.5);
    assert_true(through("<f8", 8, &(double){0.1}) == 0.1);
    assert_true(through("|i1", 1, &(int8_t){-5}) == -5);
    assert_true(through("<i2", 2, &(int16_t){-500}) == -500);
    assert_true(through("<i4", 4, &(int32_t){INT32_MIN}) == INT32_MIN);
    assert_true(through("<i8", 8, &(int64_t){-(INT64_C(1) << 53)}) == -0x1p53);
    assert_true(through("|u1", 1, &(uint8_t){200}) == 200);
    assert_true(through("<u8", 8, &(uint64_t){UINT64_MAX}) == 0x1p64);
    assert_true(through("|b1", 1, &(uint8_t){1}) == 1);
}

static void indices_follow_the_order(void **unused)
{
    (void)unused;
    struct npy a = {.rank = 3, .shape = {2, 3, 5}};
    assert_int_equal(npy_index(&a, (uint64_t[]){1, 2, 4}), 29);
    assert_int_equal(npy_index(&a, (uint64_t[]){0, 2, 1}), 11);
    a.fortran = true;
    assert_int_equal(npy_index(&a, (uint64_t[]){1, 2, 4}), 29);
    assert_int_equal(npy_index(&a, (uint64_t[]){0, 2, 1}), 0 + 2 * (2 + 3 * 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_checked),
        cmocka_unit_test(files_cut_short_are_refused),
        cmocka_unit_test(elements_keep_their_values),
        cmocka_unit_test(indices_follow_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
