/* SPDX-License-Identifier: Apache-2.0 */
/* Python loads torch's libraries with RTLD_LOCAL, so that dlsym(RTLD_DEFAULT) cannot see them. A handle of a library that
   is loaded already can: dlsym on it searches the library and its dependencies. */
#include "runtime/python/maskc/torch_stream.h"
#include <dlfcn.h>
#include <stddef.h>

/* torch's CUDA library; and the library that depends on it, for builds with another name or with one library for all. */
static const char *const libraries[] = {"libtorch_cuda.so", "libtorch.so", NULL};
static const char name[] = "aoti_torch_get_current_cuda_stream";

static void *find_in(const char *library)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return NULL;
    void *found = dlsym(handle, name);
    dlclose(handle); /* torch holds its own reference */
    return found;
}

torch_stream_function *torch_stream_find(void)
{
    union {
        void *address;
        torch_stream_function *function;
    } found = {NULL};
    for (const char *const *library = libraries; *library && !found.address; library++)
        found.address = find_in(*library);
    if (!found.address)
        found.address = dlsym(RTLD_DEFAULT, name); /* linked into the program, or preloaded */
    return found.function;
}
