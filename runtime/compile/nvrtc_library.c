/* SPDX-License-Identifier: Apache-2.0 */
/* Finds NVRTC at run time: neither the build nor a machine with only CPUs needs a CUDA toolkit. */
#include "runtime/base/toolkit.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/nvrtc.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static bool load_symbols(void *library, struct nvrtc *n)
{
#define S(type, name, args) *(void **)&n->name = dlsym(library, #name);
    NVRTC_SYMBOLS(S)
#undef S
#define S(type, name, args) n->name &&
    return NVRTC_SYMBOLS(S) true;
#undef S
}

static bool open_library(const char *path, void *context)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    if (load_symbols(library, context))
        return true;
    dlclose(library);
    return false;
}

static const struct toolkit_library nvrtc_files = {
    "MASKC_NVRTC",
    "libnvrtc.so*",
    {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"},
};

static void find_nvrtc(struct nvrtc *n)
{
    int major, minor;
    if (toolkit_find(&nvrtc_files, open_library, n) && !n->nvrtcVersion(&major, &minor))
        snprintf(n->version, sizeof n->version, "%d.%d", major, minor);
}

const struct nvrtc *nvrtc_library(void)
{
    static struct nvrtc library;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool searched;
    pthread_mutex_lock(&lock);
    if (!searched)
        find_nvrtc(&library);
    searched = true;
    pthread_mutex_unlock(&lock);
    return &library;
}

const char *nvrtc_version(struct error *e)
{
    const struct nvrtc *n = nvrtc_library();
    if (!n->version[0])
        error_set(
            e, ERROR_UNAVAILABLE,
            "no NVRTC (libnvrtc.so): install the CUDA toolkit, or `pip install "
            "nvidia-cuda-nvrtc`, or set CUDA_HOME to a toolkit or MASKC_NVRTC to the library");
    return n->version;
}
