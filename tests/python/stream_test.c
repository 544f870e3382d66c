/* SPDX-License-Identifier: Apache-2.0 */
/* Is torch's stream function found in a libtorch_cuda.so that was loaded with RTLD_LOCAL, as Python loads it, and only there? */
#include "runtime/python/maskc/torch_stream.h"
#include "tests/support/test.h"
#include <dlfcn.h>

static const char *library; /* the stand-in */

static void missing_without_torch(void **state)
{
    (void)state;
    assert_null(torch_stream_find());
}

static void found_where_it_is_local(void **state)
{
    (void)state;
    void *stream = NULL, *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    assert_non_null(handle);
    assert_null(dlsym(RTLD_DEFAULT, "aoti_torch_get_current_cuda_stream"));
    torch_stream_function *const found = torch_stream_find();
    assert_non_null(found);
    assert_int_equal(found(1, &stream), 0);
    assert_int_equal((intptr_t)stream, 4097);
    assert_int_equal(dlclose(handle), 0);
    assert_null(torch_stream_find()); /* the lookup itself holds nothing */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_without_torch),
        cmocka_unit_test(found_where_it_is_local),
    };
    if (argc != 2) {
        print_error("usage: stream_test LIBRARY, a stand-in libtorch_cuda.so\n");
        return 2;
    }
    library = argv[1];
    return cmocka_run_group_tests_name("torch's stream", tests, NULL, NULL);
}
