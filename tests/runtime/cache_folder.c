/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/cache_folder.h"
#include "masks/base/memory.h"
#include "tests/support/test.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *cache_folder_new(void)
{
    char *path = memory_text("/tmp/maskc-cache-test-XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

void cache_folder_remove(char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *at; d && (at = readdir(d));)
        unlinkat(dirfd(d), at->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
    free(path);
}

char *cache_folder_path(const char *folder, const char *name)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
    return path;
}

static size_t content(uint32_t k, uint8_t *ret)
{
    size_t size = 1000 + 37 * (size_t)k;
    for (size_t i = 0; i < size; i++)
        ret[i] = (uint8_t)(i * 7 + k);
    return size;
}

struct cache_key cache_content_key(uint32_t k)
{
    return cache_key(&k, sizeof k);
}

void cache_content_put(struct cache *c, uint32_t k)
{
    uint8_t bytes[8192];
    cache_put(c, cache_content_key(k), bytes, content(k, bytes));
}

bool cache_content_hit(struct cache *c, uint32_t k)
{
    uint8_t expected[8192], *got = NULL;
    uint64_t size = 0;
    if (!cache_get(c, cache_content_key(k), &got, &size))
        return false;
    assert_int_equal(size, content(k, expected));
    assert_memory_equal(got, expected, size);
    free(got);
    return true;
}

uint32_t cache_content_count(struct cache *c)
{
    uint32_t count;
    free(cache_list(c, &count));
    return count;
}
