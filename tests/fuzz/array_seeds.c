/* SPDX-License-Identifier: Apache-2.0 */
/* The corpus of the array readers: array_seeds npy|safetensors FOLDER writes gallery masks, and
   arrays of other types and shapes, as small files. */
#include "masks/base/file.h"
#include "masks/input/load.h"
#include "masks/npy.h"
#include "masks/safetensors.h"
#include "masks/write.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *mask;
    uint32_t n, heads;
} masks[] = {
    {"star", "star", 9, 1},       {"strided", "strided", 12, 2},
    {"bigbird", "bigbird", 8, 1}, {"blockbert", "blockbert-2", 6, 0},
    {"one", "dense", 1, 1},
};

static const struct {
    const char *name, *descr, *dtype;
    uint32_t item, rank;
    uint64_t shape[4];
} arrays[] = {
    {"dam", "<f4", "F32", 4, 3, {2, 5, 2}}, {"alpha", "<f8", "F64", 8, 3, {2, 3, 3}},
    {"half", "<f2", "BF16", 2, 2, {4, 4}},  {"int", "<i8", "I64", 8, 4, {2, 1, 2, 2}},
    {"empty", "<f4", "F32", 4, 2, {0, 0}},
};

static int write_mask(size_t k, bool npy, const char *path, struct error *e)
{
    struct mask_request r = {MASK_REQUEST_DEFAULTS, .name = masks[k].mask, .n = masks[k].n,
                             .heads = masks[k].heads};
    struct mask *m = mask_load(&r, NULL, e);
    if (!m)
        return -1;
    int result = (npy ? mask_write_npy : mask_write_safetensors)(m, path, e);
    mask_destroy(m);
    return result;
}

static int write_array(size_t k, bool npy, const char *path, struct error *e)
{
    static const float data[64] = {0.5f, -1, 2, 0, 3, -4, 0.25f, 1};
    uint64_t size;
    struct safetensors s = {0};
    safetensors_add(&s, arrays[k].name, arrays[k].dtype, arrays[k].rank, arrays[k].shape, data);
    safetensors_add(&s, "other", "U8", 1, (uint64_t[]){3}, data);
    safetensors_add_metadata(&s, "format", "pt");
    uint8_t *bytes = npy ? npy_write(arrays[k].descr, arrays[k].item, arrays[k].rank,
                                     arrays[k].shape, data, &size)
                         : safetensors_write(&s, &size);
    safetensors_finish(&s);
    int result = file_write(path, bytes, size, e);
    free(bytes);
    return result;
}

int main(int count, char **argument)
{
    if (count != 3) {
        fprintf(stderr, "usage: array_seeds npy|safetensors FOLDER\n");
        return 2;
    }
    bool npy = !strcmp(argument[1], "npy");
    size_t n_masks = sizeof masks / sizeof *masks, n_arrays = sizeof arrays / sizeof *arrays;
    int result = 0;
    struct error e = {0};
    for (size_t k = 0; k < n_masks + n_arrays && result == 0; k++) {
        char path[4096];
        bool array = k >= n_masks;
        snprintf(path, sizeof path, "%s/%s.%s", argument[2],
                 array ? arrays[k - n_masks].name : masks[k].name, argument[1]);
        result = array ? write_array(k - n_masks, npy, path, &e) : write_mask(k, npy, path, &e);
    }
    if (result < 0)
        fprintf(stderr, "array_seeds: %s\n", e.text);
    return result < 0;
}
