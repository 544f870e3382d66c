/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/cuda/cublas_library.h"
#include "runtime/base/toolkit.h"
#include "runtime/device/cuda_driver.h"
#include <dlfcn.h>

static bool take_symbols(void *library, struct cublas_library *l)
{
#define S(name, args) *(void **)&l->name = dlsym(library, #name);
    CUBLAS_SYMBOLS(S)
#undef S
#define S(name, args) l->name &&
    return CUBLAS_SYMBOLS(S) true;
#undef S
}

/* A driver runs libraries of its own CUDA and of older ones; of newer ones only those of the same major version. */
static bool suits_driver(const struct cublas_library *l)
{
    int major;
    return l->cublasLtGetProperty(LT_MAJOR_VERSION, &major) == 0 &&
           major <= cuda_driver()->version / 1000;
}

static bool open_library(const char *path, void *context)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library && take_symbols(library, context) && suits_driver(context);
}

static const struct toolkit_library files = {
    "MASKC_CUBLASLT",
    "libcublasLt.so.1[23]",
    {"libcublasLt.so.13", "libcublasLt.so.12"},
};

int cublas_library_open(struct cublas_library *ret, struct error *e)
{
    return toolkit_find(&files, open_library, ret)
               ? 0
               : error_set(e, ERROR_UNAVAILABLE,
                           "no cuBLASLt (libcublasLt.so.12 or .13, and no newer one than the "
                           "driver, which is for CUDA %d): install the CUDA toolkit, "
                           "or `pip install nvidia-cublas`, or set CUDA_HOME to a toolkit or "
                           "MASKC_CUBLASLT to the library",
                           cuda_driver()->version / 1000);
}
