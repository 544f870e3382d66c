/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA text to a cubin or to PTX through NVRTC, which is looked for at run time: neither the
   build nor a machine that only has CPUs needs a CUDA toolkit. Headers go in from memory. */
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/cubin.h"
#include "runtime/toolkit.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nvrtc_program;

/* nvrtcResult is an int; 0 is success. */
#define NVRTC_SYMBOLS(S)                                                              \
    S(int, nvrtcVersion, (int *, int *))                                              \
    S(const char *, nvrtcGetErrorString, (int))                                       \
    S(int, nvrtcCreateProgram,                                                        \
      (struct nvrtc_program **, const char *, const char *, int, const char *const *, \
       const char *const *))                                                          \
    S(int, nvrtcDestroyProgram, (struct nvrtc_program **))                            \
    S(int, nvrtcCompileProgram, (struct nvrtc_program *, int, const char *const *))   \
    S(int, nvrtcGetProgramLogSize, (struct nvrtc_program *, size_t *))                \
    S(int, nvrtcGetProgramLog, (struct nvrtc_program *, char *))                      \
    S(int, nvrtcGetCUBINSize, (struct nvrtc_program *, size_t *))                     \
    S(int, nvrtcGetCUBIN, (struct nvrtc_program *, char *))                           \
    S(int, nvrtcGetPTXSize, (struct nvrtc_program *, size_t *))                       \
    S(int, nvrtcGetPTX, (struct nvrtc_program *, char *))

struct nvrtc {
#define S(type, name, args) type(*name) args;
    NVRTC_SYMBOLS(S)
#undef S
    char version[16];
};

/* ---- finding the library ---- */

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

/* The library, looked for once in a process; its version is empty where there is none. */
static const struct nvrtc *nvrtc_library(void)
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

/* ---- compiling ---- */

static int create(const struct nvrtc *n, const struct source *s, struct nvrtc_program **ret)
{
    uint32_t count = s->n_files - 1;
    const char **text = memory_new(count, sizeof *text),
               **name = memory_new(count, sizeof *name);
    for (uint32_t k = 0; k < count; k++) {
        text[k] = s->files[k + 1].text;
        name[k] = s->files[k + 1].name;
    }
    int r =
        n->nvrtcCreateProgram(ret, s->files[0].text, s->files[0].name, (int)count, text, name);
    free(text);
    free(name);
    return r;
}

/* The error's text: one line, then the first lines of the compiler's log. */
static int refuse(const struct nvrtc *n, struct nvrtc_program *p, const struct target *t,
                  int code, struct error *e)
{
    size_t size = 0;
    if (p)
        n->nvrtcGetProgramLogSize(p, &size);
    char *log = memory_new(size + 1, 1);
    if (size)
        n->nvrtcGetProgramLog(p, log);
    error_set(e, ERROR_FALSE, "NVRTC %s cannot compile the kernel for %s: %s%s%.2000s",
              n->version, t->name, n->nvrtcGetErrorString(code), size > 1 ? "\n" : "", log);
    free(log);
    return -1;
}

static int take_code(const struct nvrtc *n, struct nvrtc_program *p, bool ptx,
                     struct binary *ret)
{
    size_t size = 0;
    int r = ptx ? n->nvrtcGetPTXSize(p, &size) : n->nvrtcGetCUBINSize(p, &size);
    ret->bytes = memory_new(size + 1, 1);
    ret->size = size;
    return r ? r : (ptx ? n->nvrtcGetPTX : n->nvrtcGetCUBIN)(p, (char *)ret->bytes);
}

/* Does the phase's entry stand in none before? */
static bool is_new(const struct phase *phase, uint32_t p)
{
    for (uint32_t k = 0; k < p; k++)
        if (!strcmp(phase[k].entry, phase[p].entry))
            return false;
    return true;
}

/* Shared memory is given at launch: the cubin does not know of it. */
static void add_shared(const struct phase *phase, uint32_t count, struct binary *b)
{
    for (uint32_t p = 0; p < count; p++)
        for (uint32_t k = 0; k < b->n_kernels && is_new(phase, p); k++)
            if (!strcmp(b->kernel[k].entry, phase[p].entry))
                b->kernel[k].shared_bytes += phase[p].shared_bytes;
}

static int describe(const struct source *s, const struct target *t, struct binary *b,
                    struct error *e)
{
    if (t->ptx)
        return 0; /* registers are the driver's choice later */
    if (cubin_resources(b->bytes, b->size, b->kernel, ARTIFACT_MAX_KERNELS, &b->n_kernels, e) <
        0)
        return -1;
    add_shared(s->launch.forward, s->launch.n_forward, b);
    add_shared(s->launch.backward, s->launch.n_backward, b);
    return 0;
}

/* A program's kernels are optimised side by side. A fixed number, whatever the machine: the code depends
   on it. */
const char *const nvrtc_flag = "--split-compile=3";

enum { INVALID_OPTION = 5 };

/* NVRTC of CUDA 12.0 does not know the flag yet. */
static int compile_program(const struct nvrtc *n, struct nvrtc_program *p, const char *arch)
{
    const char *options[] = {arch, nvrtc_flag};
    int code = n->nvrtcCompileProgram(p, 2, options);
    return code == INVALID_OPTION ? n->nvrtcCompileProgram(p, 1, options) : code;
}

int nvrtc_compile(const struct source *s, const struct target *t, struct binary *ret,
                  struct error *e)
{
    char arch[64];
    struct nvrtc_program *p = NULL;
    struct binary made = {0};
    if (!nvrtc_version(e)[0])
        return -1;
    const struct nvrtc *n = nvrtc_library();
    snprintf(arch, sizeof arch, "--gpu-architecture=%s", t->arch);
    snprintf(made.compiler, sizeof made.compiler, "nvrtc %s", n->version);
    int code = create(n, s, &p);
    if (!code)
        code = compile_program(n, p, arch);
    if (!code)
        code = take_code(n, p, t->ptx, &made);
    int r = code ? refuse(n, p, t, code, e) : describe(s, t, &made, e);
    if (p)
        n->nvrtcDestroyProgram(&p);
    if (r < 0)
        binary_finish(&made);
    else
        *ret = made;
    return r;
}
