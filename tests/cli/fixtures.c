/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cli/fixtures.h"
#include "tests/cli/shell.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void must(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        abort();
    }
}

void fixture_write(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    must(f != NULL, path);
    must(fwrite(bytes, 1, size, f) == size && !fclose(f), path);
}

void fixture_npy(const char *path, const char *descr, const char *shape, const void *data,
                 size_t size)
{
    char header[256];
    uint8_t *bytes = calloc(1, sizeof header + size);
    must(bytes != NULL, path);
    int length =
        snprintf(header, sizeof header,
                 "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    memset(header + length, ' ', sizeof header - (size_t)length);
    memcpy(bytes, "\x93NUMPY\1\0\x76\0", 10);
    memcpy(bytes + 10, header, 117);
    bytes[127] = '\n';
    if (size)
        memcpy(bytes + 128, data, size);
    fixture_write(path, bytes, 128 + size);
    free(bytes);
}

void fixture_safetensors(const char *path, const char *header, size_t size)
{
    size_t length = (strlen(header) + 7) / 8 * 8;
    uint8_t *bytes = calloc(1, 8 + length + size);
    must(bytes != NULL, path);
    uint64_t word = length;
    memcpy(bytes, &word, 8);
    memset(bytes + 8, ' ', length);
    memcpy(bytes + 8, header, strlen(header));
    fixture_write(path, bytes, 8 + length + size);
    free(bytes);
}

uint8_t *fixture_read(const char *path, size_t *ret_size)
{
    FILE *f = fopen(path, "rb");
    must(f != NULL, path);
    must(!fseek(f, 0, SEEK_END), path);
    size_t size = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = calloc(1, size + 1);
    must(bytes && fread(bytes, 1, size, f) == size, path);
    fclose(f);
    *ret_size = size;
    return bytes;
}

static void make_masks(void)
{
    static const uint8_t zeros[64];
    float values[16] = {1, 2, 3};
    fixture_npy("square.npy", "|b1", "(8, 8)", zeros, 64);
    fixture_npy("oblong.npy", "|b1", "(3, 4)", zeros, 12);
    fixture_npy("flat.npy", "|b1", "(16,)", zeros, 16);
    fixture_npy("big-endian.npy", ">f4", "(4, 4)", zeros, 64);
    fixture_npy("huge.npy", "|b1", "(1073741824, 1073741824)", zeros, 16);
    fixture_npy("short.npy", "|b1", "(8, 8)", zeros, 60);
    fixture_npy("float.npy", "<f4", "(4, 4)", values, sizeof values);
    values[5] = NAN;
    fixture_npy("nan.npy", "<f4", "(4, 4)", values, sizeof values);
    static const int64_t additive[16] = {0, -10000};
    fixture_npy("additive.npy", "<i8", "(4, 4)", additive, sizeof additive);
    fixture_write("noise.npy", "this is no array", 16);
    fixture_safetensors("overlap.safetensors",
                        "{\"a\":{\"dtype\":\"BOOL\",\"shape\":[4,4],\"data_offsets\":[0,16]},"
                        "\"b\":{\"dtype\":\"BOOL\",\"shape\":[4,4],\"data_offsets\":[8,24]}}",
                        24);
    fixture_safetensors("short.safetensors",
                        "{\"a\":{\"dtype\":\"BOOL\",\"shape\":[4,4],\"data_offsets\":[0,16]}}",
                        9);
    fixture_safetensors("two.safetensors",
                        "{\"a\":{\"dtype\":\"BOOL\",\"shape\":[2,2],\"data_offsets\":[0,4]},"
                        "\"b\":{\"dtype\":\"BOOL\",\"shape\":[2,2],\"data_offsets\":[4,8]}}",
                        8);
    static const char uneven[] = "length 8\nheads 3\nhead 0: dense\nhead 2: none\n";
    fixture_write("uneven.mask", uneven, sizeof uneven - 1);
    static const char outside[] = "length 8\nheads 3\nhead 0-3: dense\n";
    fixture_write("outside.mask", outside, sizeof outside - 1);
    static const char two[] = "length 32\nheads 2\nhead 0: window(2)\nhead 1: none\n";
    fixture_write("two.mask", two, sizeof two - 1);
    must(!mkdir("folder.npy", 0777) && !mkdir("folder.mkb", 0777) && !mkdir("empty", 0777),
         "mkdir");
    fixture_write("folder.mkb/file", "", 0);
}

/* [1, 32, 1, 16] for `good.mkb`, and arrays that do not fit. */
static void make_tensors(void)
{
    /* -4/8 .. 6/8 in f16 */
    static const uint16_t eighths[11] = {0xb800, 0xb600, 0xb400, 0xb000, 0,     0x3000,
                                         0x3400, 0x3600, 0x3800, 0x3900, 0x3a00};
    uint16_t half[32 * 16];
    float value[32 * 16];
    double wide[32 * 16];
    for (int k = 0; k < 32 * 16; k++) {
        wide[k] = value[k] = (float)((k * 7 + 3) % 11) / 8 - 0.5f;
        half[k] = eighths[(k * 7 + 3) % 11];
    }
    fixture_npy("q.npy", "<f4", "(1, 32, 1, 16)", value, sizeof value);
    fixture_npy("q16.npy", "<f2", "(1, 32, 1, 16)", half, sizeof half);
    fixture_npy("q64.npy", "<f8", "(1, 32, 1, 16)", wide, sizeof wide);
    fixture_npy("packed.npy", "<f4", "(32, 1, 16)", value, sizeof value);
    fixture_npy("wide.npy", "<f4", "(1, 16, 1, 32)", value, sizeof value);
    fixture_npy("long.npy", "<f4", "(1, 33, 1, 16)", value, sizeof value);
    float bias[32 * 32];
    for (int k = 0; k < 32 * 32; k++)
        bias[k] = (float)(k * 5 % 13) / 8;
    fixture_npy("soft.npy", "<f4", "(1, 32, 32)", bias, sizeof bias);
    static const int32_t bad[] = {33}, negative[] = {-1}, good[] = {20};
    static const int64_t offsets[] = {0, 20, 20, 32}, backwards[] = {0, 20, 12, 32};
    fixture_npy("bad-length.npy", "<i4", "(1,)", bad, sizeof bad);
    fixture_npy("negative-length.npy", "<i4", "(1,)", negative, sizeof negative);
    fixture_npy("length.npy", "<i4", "(1,)", good, sizeof good);
    fixture_npy("two-lengths.npy", "<i4", "(2,)", offsets, 8);
    fixture_npy("offsets.npy", "<i8", "(4,)", offsets, sizeof offsets);
    fixture_npy("backwards.npy", "<i8", "(4,)", backwards, sizeof backwards);
    fixture_npy("short-offsets.npy", "<i8", "(3,)", offsets, 24);
}

void fixtures_make(void)
{
    make_masks();
    make_tensors();
}

void fixtures_break_kernel(void)
{
    size_t size;
    uint8_t *bytes = fixture_read("good.mkb", &size);
    fixture_write("cut.mkb", bytes, size - 1);
    fixture_write("half.mkb", bytes, size / 2);
    fixture_write("longer.mkb", bytes, size + 1);
    for (int k = 0; k < FIXTURE_FLIPS; k++) {
        char path[32];
        size_t at = (size - 1) * (size_t)k / (FIXTURE_FLIPS - 1);
        snprintf(path, sizeof path, "flipped-%d.mkb", k);
        bytes[at] ^= (uint8_t)(1 << k % 8);
        fixture_write(path, bytes, size);
        bytes[at] ^= (uint8_t)(1 << k % 8);
    }
    static const char version[] = "\"version\":\"4\"";
    char *found = memmem(bytes, size, version, sizeof version - 1);
    must(found != NULL, "the version in good.mkb");
    found[sizeof version - 3] = '1';
    fixture_write("version.mkb", bytes, size);
    free(bytes);
}

int fixtures_set_up(void **state)
{
    (void)state;
    fixtures_make();
    shell_says("compile star -n 32 --head-dim 16 -o good.mkb", "good.mkb");
    shell_says("compile star -n 32 --head-dim 16 --forward-only -o forward.mkb", "forward.mkb");
    shell_says("compile star -n 32 --head-dim 16 --soft scale -o soft.mkb", "soft.mkb");
    fixtures_break_kernel();
    return 0;
}
