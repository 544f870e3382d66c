/* SPDX-License-Identifier: Apache-2.0 */
/* Finds NVRTC at run time: neither the build nor a machine with only CPUs needs a CUDA toolkit. */
#include "runtime/base/toolkit.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/nvrtc.h"
#include "runtime/device/cuda_driver.h"
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

/* A driver loads code of its own major version of CUDA and of older ones. Without a driver the code is for another machine. */
static bool suits_driver(const struct nvrtc *n)
{
    int major, minor;
    const int most = cuda_driver_major();
    return !most || (!n->nvrtcVersion(&major, &minor) && major <= most);
}

/* The first library stays where none suits the driver. */
static bool open_library(const char *path, void *context)
{
    struct nvrtc *ret = context, found = {0};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    if (!load_symbols(library, &found)) {
        dlclose(library);
        return false;
    }
    const bool suits = suits_driver(&found);
    if (suits || !ret->nvrtcVersion)
        *ret = found;
    return suits;
}

static const struct toolkit_library nvrtc_files = {
    "MASKC_NVRTC",
    "libnvrtc.so*",
    {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"},
};

static void find_nvrtc(struct nvrtc *n)
{
    int major, minor;
    toolkit_find(&nvrtc_files, open_library, n);
    if (n->nvrtcVersion && !n->nvrtcVersion(&major, &minor))
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
