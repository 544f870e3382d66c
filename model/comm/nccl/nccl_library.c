/* SPDX-License-Identifier: Apache-2.0 */
#include "model/comm/nccl/nccl_library.h"
#include "runtime/base/toolkit.h"
#include <dlfcn.h>

static bool take_symbols(void *library, struct nccl_library *l)
{
#define S(name, type, args) *(void **)&l->name = dlsym(library, #name);
    NCCL_SYMBOLS(S)
#undef S
#define S(name, type, args) l->name &&
    return NCCL_SYMBOLS(S) true;
#undef S
}

static bool open_library(const char *path, void *context)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    if (take_symbols(library, context))
        return true;
    dlclose(library);
    return false;
}

static const struct toolkit_library files = {"MASKC_NCCL", "libnccl.so.2", {"libnccl.so.2"}};

int nccl_library_open(struct nccl_library *ret, struct error *e)
{
    return toolkit_find(&files, open_library, ret)
               ? 0
               : error_set(
                     e, ERROR_UNAVAILABLE,
                     "no NCCL (libnccl.so.2, 2.14 or later), which several GPUs need: install "
                     "libnccl2, or `pip install nvidia-nccl-cu13`, or set MASKC_NCCL to the "
                     "library");
}
