/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/driver/cuda_fake.h"
#include "tests/support/test.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

const char *const cuda_units[] = {"entries: attention_dkv", "entries: attention_dq",
                                  "entries: attention_forward", NULL};

const struct kernel_case cuda_example = {
    "dam-s-example",
    70,
    0,
    {.dtype = ABI_F32, .head_dim = 16, .backward = true, .dropout = true},
    .images = cuda_units};

bool cuda_has_fake(void)
{
    return getenv("MASKC_TEST_FAKE_DRIVER") != NULL;
}

int cuda_run_with_fake(char **argv, const char *folder)
{
    setenv("MASKC_TEST_FAKE_DRIVER", "1", 1);
    setenv("LD_LIBRARY_PATH", folder, 1);
    execv("/proc/self/exe", argv);
    return 1;
}

struct fake *cuda_fake(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct fake *f = library ? dlsym(library, "fake_driver") : NULL;
    assert_non_null(f);
    return f;
}

void cuda_must_hold_nothing(const struct fake *f)
{
    assert_int_equal(f->failures, 0);
    assert_int_equal(f->contexts, 0);
    assert_int_equal(f->modules, 0);
    assert_int_equal(f->allocations, 0);
    assert_int_equal(f->pushed, 0);
}

struct maskc_kernel *cuda_load_example(const char *device, struct error *e)
{
    struct maskc_kernel *k = NULL;
    uint64_t size;
    uint8_t *bytes = fixture_file(&cuda_example, NULL, NULL, &size);
    if (kernel_load(bytes, size, "x.mkb", device, &k, e) < 0)
        k = NULL;
    free(bytes);
    return k;
}
