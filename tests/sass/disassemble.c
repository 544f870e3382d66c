/* SPDX-License-Identifier: Apache-2.0 */
/* nvdisasm as a child process. Its text is kept under the cubin's hash, since it takes longer than most
   kernels run. */
#include "tests/sass/image.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* All of a file with a zero behind it, or null. */
static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat s;
    char *text = NULL;
    if (!f)
        return NULL;
    if (!fstat(fileno(f), &s) && (text = malloc((size_t)s.st_size + 1)))
        text[fread(text, 1, (size_t)s.st_size, f)] = 0;
    fclose(f);
    return text;
}

static bool write_file(const char *path, const uint8_t *bytes, uint64_t size)
{
    FILE *f = fopen(path, "wb");
    const bool all = f && fwrite(bytes, 1, size, f) == size;
    return f && !fclose(f) && all;
}

/* Written aside and renamed: tests run side by side, and share the folder. */
static char *run_nvdisasm(const char *cubin, const char *to)
{
    const char *program = getenv("NVDISASM");
    char command[2400];
    snprintf(command, sizeof command, "'%s' -c -hex '%s' > '%s.text' && mv '%s.text' '%s'",
             program ? program : "nvdisasm", cubin, cubin, cubin, to);
    return system(command) ? NULL : read_file(to);
}

char *image_disassemble(const uint8_t *cubin, uint64_t bytes, char *why, size_t capacity)
{
    const char *folder = getenv("MASKC_SASS_CACHE");
    const XXH128_hash_t hash = XXH3_128bits(cubin, bytes);
    char path[512], copy[560];
    snprintf(path, sizeof path, "%s/%016llx%016llx.sass", folder ? folder : "/tmp",
             (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    char *text = read_file(path);
    if (text)
        return text;
    snprintf(copy, sizeof copy, "%s.%d.cubin", path, (int)getpid());
    if (write_file(copy, cubin, bytes))
        text = run_nvdisasm(copy, path);
    unlink(copy);
    if (!text)
        snprintf(why, capacity,
                 "nvdisasm cannot disassemble the cubin (is $NVDISASM its path?)");
    return text;
}
