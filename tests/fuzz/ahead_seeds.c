/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of kernels compiled ahead, as a corpus for the fuzzer: ahead_seeds FOLDER. */
#include "masks/base/file.h"
#include "runtime/ahead/ahead.h"
#include <stdio.h>
#include <stdlib.h>

static int write(const char *folder, const char *name, uint32_t count, struct error *e)
{
    static const uint8_t bytes[64] = {1, 2, 3};
    struct ahead_code code[4] = {0};
    uint64_t size = 0;
    char path[4096];
    for (uint32_t k = 0; k < count; k++)
        code[k] = (struct ahead_code){cache_key(&k, sizeof k), bytes + k, 20 + 7 * k, k / 2};
    uint8_t *file = ahead_write(code, count, "clang 14.0.6", &size);
    snprintf(path, sizeof path, "%s/%s.ahead", folder, name);
    int r = file_write(path, file ? (const void *)file : "", file ? size : 0, e);
    free(file);
    return r;
}

int main(int count, char **argument)
{
    struct error e = {0};
    if (count != 2) {
        fprintf(stderr, "usage: ahead_seeds FOLDER\n");
        return 2;
    }
    if (!write(argument[1], "none", 0, &e) && !write(argument[1], "one", 1, &e) &&
        !write(argument[1], "some", 4, &e))
        return 0;
    fprintf(stderr, "ahead_seeds: %s\n", e.text);
    return 1;
}
