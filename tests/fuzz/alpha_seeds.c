/* SPDX-License-Identifier: Apache-2.0 */
/* The corpus of the reader of learned masks: alpha_seeds FOLDER writes a small alpha.safetensors of each kind. */
#include "masks/base/file.h"
#include "masks/safetensors.h"
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name, *kind;
    uint32_t rank;
    uint64_t shape[4];
} seeds[] = {
    {"p", "p", 3, {2, 4, 4}},
    {"dam-u", "dam-u", 4, {2, 1, 3, 3}},
    {"dam-s", "dam-s", 2, {2, 5}},
    {"layers", "dam-s", 3, {2, 2, 4}},
    {"dam-code", "dam-code", 3, {2, 5, 2}},
};

static int write_seed(size_t k, const char *folder, struct error *e)
{
    static const float data[64] = {0.5f, -1, 2, 0, 3, -4, 0.25f, 1, -0.5f};
    char path[4096];
    uint64_t size;
    struct safetensors s = {0};
    safetensors_add_metadata(&s, "dam", seeds[k].kind);
    safetensors_add(&s, "alpha", "F32", seeds[k].rank, seeds[k].shape, data);
    uint8_t *bytes = safetensors_write(&s, &size);
    safetensors_finish(&s);
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, seeds[k].name);
    int r = file_write(path, bytes, size, e);
    free(bytes);
    return r;
}

int main(int count, char **argument)
{
    struct error e = {0};
    if (count != 2) {
        fprintf(stderr, "usage: alpha_seeds FOLDER\n");
        return 2;
    }
    for (size_t k = 0; k < sizeof seeds / sizeof *seeds; k++)
        if (write_seed(k, argument[1], &e) < 0) {
            fprintf(stderr, "alpha_seeds: %s\n", e.text);
            return 2;
        }
    return 0;
}
