/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/api_compile.h"
#include "runtime/base/cache.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <unistd.h>

char api_cache[] = "/tmp/maskc-api-test-XXXXXX";

int api_set_up(void **state)
{
    (void)state;
    return mkdtemp(api_cache) ? 0 : -1;
}

int api_tear_down(void **state)
{
    (void)state;
    struct cache *c = cache_open(api_cache);
    cache_clear(c);
    cache_close(c);
    return rmdir(api_cache);
}

struct maskc_bytes api_compile(const char *mask, struct maskc_options o)
{
    struct maskc_bytes bytes = {0};
    struct maskc_error error = {0};
    o.struct_size = sizeof o;
    o.cache_dir = api_cache;
    if (maskc_compile(mask, &o, &bytes, &error))
        fail_msg("%s: %s", mask, error.text);
    return bytes;
}

struct maskc_kernel *api_kernel(const char *mask, uint32_t n, uint32_t heads)
{
    const struct maskc_options o = {.struct_size = sizeof o, .length = n, .heads = heads};
    struct maskc_bytes bytes = {0};
    struct maskc_kernel *kernel = NULL;
    struct maskc_error error;
    if (maskc_compile(mask, &o, &bytes, &error) ||
        maskc_load_memory(bytes.data, bytes.size, "cpu", &kernel, &error))
        fail_msg("%s: %s", mask, error.text);
    maskc_bytes_free(&bytes); /* the kernel has its own copy */
    return kernel;
}
