/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors container: what the writer makes the reader takes; what does not add up it does
   not. */
#include "masks/safetensors.h"
#include "tests/masks/help.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A header (padded or not) and `data` bytes behind it; the caller frees. */
static uint8_t *make(const char *header, size_t data, size_t *size)
{
    size_t length = strlen(header);
    uint8_t *bytes = memory_new(8 + length + data, 1);
    for (int k = 0; k < 8; k++)
        bytes[k] = (uint8_t)((uint64_t)length >> 8 * k);
    memcpy(bytes + 8, header, length);
    *size = 8 + length + data;
    return bytes;
}

#define U8(name, n, from, to) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #n "],\"data_offsets\":[" #from "," #to "]}"

static const struct {
    const char *header;
    size_t data;
    const char *error; /* null: fine */
} files[] = {
    {"{}", 0, NULL},
    {"{}  \n", 0, NULL},
    {"{" U8("a", 4, 0, 4) "}", 4, NULL},
    {"{" U8("a", 4, 3, 7) "," U8("b", 3, 0, 3) "," U8("c", 0, 3, 3) "}", 7, NULL},
    {"{\"__metadata__\":{\"k\":\"v\"}," U8("a", 4, 0, 4) "}", 4, NULL},
    {"{" U8("a", 4, 0, 4) "," U8("b", 4, 2, 6) "}", 6,
     "t: tensor 'b': its data overlaps another tensor's"},
    {"{" U8("a", 4, 0, 4) "," U8("b", 4, 0, 4) "}", 4,
     "t: tensor 'b': its data overlaps another tensor's"},
    {"{" U8("a", 4, 1, 5) "}", 5, "t: tensor 'a': there is a gap before its data"},
    {"{" U8("a", 4, 0, 4) "}", 5, "t: 5 bytes of data, the header names 4"},
    {"{" U8("a", 4, 0, 4) "}", 3, "t: tensor 'a': the file is too short for its data"},
    {"{" U8("a", 4, 0, 3) "}", 3, "t: tensor 'a': dtype and shape do not fit its data_offsets"},
    {"{" U8("a", 4, 4, 0) "}", 4, "t: tensor 'a': no data_offsets [begin, end]"},
    {"{" U8("a", -4, 0, 4) "}", 4, "t: tensor 'a': a dimension is no whole number"},
    {"{" U8("a", 2.0, 0, 2) "}", 2, "t: tensor 'a': a dimension is no whole number"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
     "t: tensor 'a': the shape does not fit in 64 bits"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
     "t: tensor 'a': more than 8 dimensions"},
    {"{\"a\":{\"dtype\":\"X8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "t: tensor 'a': unknown dtype"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":3,\"data_offsets\":[0,1]}}", 1,
     "t: tensor 'a': no shape"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1,
     "t: tensor 'a': dtype, shape and data_offsets are expected"},
    {"{\"a\":7}", 0, "t: tensor 'a': dtype, shape and data_offsets are expected"},
    {"{" U8("a", 1, 0, 1) ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}   ",
     5, NULL}, /* unaligned: only some writers pad */
    {"{\"__metadata__\":{\"k\":1}}", 0, "t: __metadata__ 'k' is no string"},
    {"{\"__metadata__\":[]}", 0, "t: __metadata__ is no object"},
    {"[]", 0, "t: the safetensors header is no JSON object: something else"},
    {"{" U8("a", 4, 0, 4) "," U8("a", 4, 0, 4) "}", 4,
     "t: the safetensors header is no JSON object: duplicate object key near '\"a\"'"},
    {"{", 0,
     "t: the safetensors header is no JSON object: string or '}' expected near end of file"},
};

static void files_are_checked(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        struct safetensors s;
        struct error e = {0};
        size_t size;
        uint8_t *bytes = make(files[k].header, files[k].data, &size);
        int r = safetensors_parse(bytes, size, "t", &s, &e);
        if (r == 0 && files[k].error)
            fail_msg("%s was accepted", files[k].header);
        if (r < 0)
            assert_string_equal(e.text, files[k].error ? files[k].error : "");
        else
            safetensors_finish(&s);
        free(bytes);
    }
}

/* Files of others: a dtype that is not known passes, its place and name are still checked. */
static const struct any {
    const char *header;
    size_t data;
    const char *error;
} any[] = {
    {"{\"s\":{\"dtype\":\"F8_E8M0\",\"shape\":[7],\"data_offsets\":[0,7]}," U8("a", 4, 7,
                                                                               11) "}",
     11, NULL},
    {"{\"s\":{\"dtype\":\"F4\",\"shape\":[7],\"data_offsets\":[0,4]}," U8("a", 4, 4, 8) "}", 8,
     NULL},
    {"{\"s\":{\"dtype\":\"F4\",\"shape\":[8],\"data_offsets\":[0,4]}," U8("a", 4, 2, 6) "}", 6,
     "t: tensor 'a': its data overlaps another tensor's"},
    {"{\"s\":{\"dtype\":\"F4\",\"shape\":[8],\"data_offsets\":[0,4]}," U8("a", 4, 6, 10) "}",
     10, "t: tensor 'a': there is a gap before its data"},
    {"{\"s\":{\"dtype\":\"F4\",\"shape\":[8],\"data_offsets\":[0,9]}}", 8,
     "t: tensor 's': the file is too short for its data"},
    {"{\"s\":{\"dtype\":\"F4\",\"shape\":[-8],\"data_offsets\":[0,4]}}", 4,
     "t: tensor 's': a dimension is no whole number"},
    {"{\"s\":{\"dtype\":\"F\\n\",\"shape\":[8],\"data_offsets\":[0,4]}}", 4,
     "t: tensor 's': unknown dtype"},
    {"{\"s\":{\"dtype\":\"F234567890123456\",\"shape\":[8],\"data_offsets\":[0,4]}}", 4,
     "t: tensor 's': unknown dtype"},
    {"{\"s\":{\"dtype\":\"\",\"shape\":[8],\"data_offsets\":[0,4]}}", 4,
     "t: tensor 's': unknown dtype"},
    {"{\"s\":{\"dtype\":3,\"shape\":[8],\"data_offsets\":[0,4]}}", 4,
     "t: tensor 's': unknown dtype"},
    {"{\"s\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,4]}}", 4,
     "t: tensor 's': dtype and shape do not fit its data_offsets"},
};

static void unknown_dtypes_pass_where_they_may(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof any / sizeof *any; k++) {
        struct safetensors s;
        struct error e = {0};
        size_t size;
        uint8_t *bytes = make(any[k].header, any[k].data, &size);
        assert_int_equal(safetensors_parse(bytes, size, "t", &s, &e), -1);
        e.text[0] = 0;
        int r = safetensors_parse_any(bytes, size, "t", &s, &e);
        assert_string_equal(e.text, any[k].error ? any[k].error : "");
        assert_int_equal(r, any[k].error ? -1 : 0);
        if (r == 0) {
            assert_int_equal(safetensors_find(&s, "a")->size, 4);
            assert_ptr_equal(safetensors_find(&s, "a")->data, bytes + size - 4);
            safetensors_finish(&s);
        }
        free(bytes);
    }
}

static void headers_that_promise_too_much_are_refused(void **unused)
{
    (void)unused;
    struct safetensors s;
    struct error e = {0};
    uint8_t bytes[16] = {0};
    assert_int_equal(safetensors_parse(bytes, 7, "t", &s, &e), -1);
    assert_string_equal(e.text, "t: 7 bytes, too short for a safetensors file");
    bytes[7] = 0x10; /* 2^60 */
    assert_int_equal(safetensors_parse(bytes, 16, "t", &s, &e), -1);
    assert_string_equal(e.text, "t: not a safetensors file: its header promises "
                                "1152921504606846976 bytes, 8 follow");
    memcpy(bytes, "\x93NUMPY\1", 8);
    assert_int_equal(safetensors_parse(bytes, 16, "t", &s, &e), -1);
    assert_string_equal(e.text, "t: an array of NumPy, not a safetensors file");
}

static void deep_headers_are_refused(void **unused)
{
    (void)unused;
    size_t size;
    char *deep = memory_new(1000001, 1);
    memset(deep, '[', 1000000);
    uint8_t *bytes = make(deep, 0, &size);
    struct safetensors s;
    struct error e = {0};
    assert_int_equal(safetensors_parse(bytes, size, "t", &s, &e), -1);
    free(bytes);
    free(deep);
}

static const struct item {
    const char *name, *dtype;
    uint32_t rank;
    uint64_t shape[3];
} items[] = {
    {"bytes", "U8", 1, {5}},          {"wide", "F64", 2, {2, 3}},
    {"empty", "F32", 2, {0, 4}},      {"half", "BF16", 1, {3}},
    {"scalar", "I64", 0, {0}},        {"single", "F32", 3, {1, 2, 3}},
    {"\xc3\xa9\"\n", "BOOL", 1, {1}},
};
enum { N_ITEMS = sizeof items / sizeof *items };

static uint8_t *write_items(uint8_t data[N_ITEMS][64], uint64_t *size)
{
    struct safetensors s = {0};
    safetensors_add_metadata(&s, "format", "1");
    safetensors_add_metadata(&s, "json", "{\"a\":[1,\"\xc3\xa9\"]}");
    for (uint32_t k = 0; k < N_ITEMS; k++) {
        memset(data[k], (int)k + 1, 64);
        safetensors_add(&s, items[k].name, items[k].dtype, items[k].rank, items[k].shape,
                        data[k]);
    }
    uint8_t *bytes = safetensors_write(&s, size);
    safetensors_finish(&s);
    return bytes;
}

static void what_is_written_is_read(void **unused)
{
    (void)unused;
    uint8_t data[N_ITEMS][64];
    uint64_t size, again_size;
    uint8_t *bytes = write_items(data, &size), *again = write_items(data, &again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(bytes, again, size);
    struct safetensors s;
    struct error e = {0};
    if (safetensors_parse(bytes, size, "t", &s, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(s.n_tensors, N_ITEMS);
    assert_int_equal(s.header_size % 8, 0);
    assert_string_equal(safetensors_metadata(&s, "json"), "{\"a\":[1,\"\xc3\xa9\"]}");
    assert_string_equal(safetensors_metadata(&s, "format"), "1");
    assert_null(safetensors_metadata(&s, "other"));
    assert_null(safetensors_find(&s, "other"));
    for (uint32_t k = 0; k < N_ITEMS; k++) {
        const struct safetensor *t = safetensors_find(&s, items[k].name);
        assert_non_null(t);
        assert_string_equal(t->dtype, items[k].dtype);
        assert_int_equal(t->rank, items[k].rank);
        assert_memory_equal(t->shape, items[k].shape, items[k].rank * sizeof *t->shape);
        assert_memory_equal(t->data, data[k], t->size);
        assert_int_equal((uint64_t)(t->data - bytes) % safetensors_dtype_bytes(t->dtype), 0);
    }
    safetensors_finish(&s);
    free(bytes);
    free(again);
}

static void cut_or_longer_files_are_refused(void **unused)
{
    (void)unused;
    uint8_t data[N_ITEMS][64];
    uint64_t size;
    uint8_t *bytes = write_items(data, &size);
    for (uint64_t k = 0; k < size; k++) {
        struct safetensors s;
        struct error e = {0};
        uint8_t *cut = memory_copy(bytes, k);
        assert_int_equal(safetensors_parse(cut, k, "t", &s, &e), -1);
        free(cut);
    }
    struct safetensors s;
    struct error e = {0};
    bytes = memory_resize(bytes, size + 1, 1);
    bytes[size] = 0;
    assert_int_equal(safetensors_parse(bytes, size + 1, "t", &s, &e), -1);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_checked),
        cmocka_unit_test(unknown_dtypes_pass_where_they_may),
        cmocka_unit_test(headers_that_promise_too_much_are_refused),
        cmocka_unit_test(deep_headers_are_refused),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(cut_or_longer_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
