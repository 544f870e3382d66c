/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA text to cubins or to PTX through NVRTC. Each unit of the source is a program of its own, and they
   are compiled side by side: most of what NVRTC does with one program it does on one core. Headers go in
   from memory. */
#include "runtime/compile/nvrtc.h"
#include "masks/base/memory.h"
#include "runtime/base/thread_pool.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/cubin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All units of a source, and their results. */
struct compilation {
    const struct nvrtc *n;
    const struct source *s;
    const struct target *t;
    struct code_image image[SOURCE_MAX_UNITS];
    int result[SOURCE_MAX_UNITS];
    char remark[SOURCE_MAX_UNITS][128];
    struct error error[SOURCE_MAX_UNITS];
};

/* ---- one unit ---- */

/* A program of one of the source's files; all others are headers that it may include. */
static int create(const struct nvrtc *n, const struct source *s, uint32_t file,
                  struct nvrtc_program **ret)
{
    const char **text = memory_new(s->n_files, sizeof *text),
               **name = memory_new(s->n_files, sizeof *name);
    uint32_t count = 0;
    for (uint32_t k = 0; k < s->n_files; k++)
        if (k != file) {
            text[count] = s->files[k].text;
            name[count++] = s->files[k].name;
        }
    int r = n->nvrtcCreateProgram(ret, s->files[file].text, s->files[file].name, (int)count,
                                  text, name);
    free(text);
    free(name);
    return r;
}

static char *read_log(const struct nvrtc *n, struct nvrtc_program *p)
{
    size_t size = 0;
    if (p)
        n->nvrtcGetProgramLogSize(p, &size);
    char *log = memory_new(size + 1, 1);
    if (size)
        n->nvrtcGetProgramLog(p, log);
    return log;
}

/* Remarks C75xx of ptxas say that it serialises products; with C7519 it only adds a fence. */
static void take_remark(const struct nvrtc *n, struct nvrtc_program *p, char ret[128])
{
    char *log = read_log(n, p);
    for (const char *at = strstr(log, "(C75"); at; at = strstr(at + 1, "(C75"))
        if (strncmp(at, "(C7519", strlen("(C7519")) && !ret[0])
            snprintf(ret, 128, "%.*s", (int)strcspn(at, "\n"), at);
    free(log);
}

/* The error's text: one line, then the first lines of the compiler's log. */
static int refuse(const struct nvrtc *n, struct nvrtc_program *p, const struct target *t,
                  int code, struct error *e)
{
    char *log = read_log(n, p);
    error_set(e, ERROR_FALSE, "NVRTC %s cannot compile the kernel for %s: %s%s%.2000s",
              n->version, t->name, n->nvrtcGetErrorString(code), log[0] ? "\n" : "", log);
    free(log);
    return -1;
}

static int take_code(const struct nvrtc *n, struct nvrtc_program *p, bool ptx,
                     struct code_image *ret)
{
    size_t size = 0;
    int r = ptx ? n->nvrtcGetPTXSize(p, &size) : n->nvrtcGetCUBINSize(p, &size);
    char *bytes = memory_new(size + 1, 1);
    *ret = (struct code_image){(const uint8_t *)bytes, size};
    return r ? r : (ptx ? n->nvrtcGetPTX : n->nvrtcGetCUBIN)(p, bytes);
}

static void compile_unit(void *context, uint32_t k)
{
    struct compilation *c = context;
    const struct nvrtc *n = c->n;
    char arch[64];
    const char *options[] = {arch};
    struct nvrtc_program *p = NULL;
    snprintf(arch, sizeof arch, "--gpu-architecture=%s", c->t->arch);
    int code = create(n, c->s, c->s->n_units ? 1 + k : 0, &p);
    if (!code)
        code = n->nvrtcCompileProgram(p, 1, options);
    if (!code)
        code = take_code(n, p, c->t->ptx, &c->image[k]);
    take_remark(n, p, c->remark[k]);
    if (code)
        c->result[k] = refuse(n, p, c->t, code, &c->error[k]);
    if (p)
        n->nvrtcDestroyProgram(&p);
}

/* ---- what the kernels need ---- */

/* True for the first phase with its entry. */
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

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct kernel_resources *)a)->entry,
                  ((const struct kernel_resources *)b)->entry);
}

static int describe(const struct source *s, const struct target *t, struct binary *b,
                    struct error *e)
{
    if (t->ptx)
        return 0; /* registers are the driver's choice later */
    for (uint32_t k = 0; k < b->n_images; k++)
        if (cubin_resources(b->image[k].bytes, b->image[k].size, b->kernel,
                            ARTIFACT_MAX_KERNELS, &b->n_kernels, e) < 0)
            return -1;
    qsort(b->kernel, b->n_kernels, sizeof *b->kernel, by_name);
    add_shared(s->launch.forward, s->launch.n_forward, b);
    add_shared(s->launch.backward, s->launch.n_backward, b);
    return 0;
}

/* ---- all of them ---- */

/* Fills *b; of errors returns the first, in the units' order. */
static int collect(const struct compilation *c, uint32_t units, struct binary *b,
                   struct error *e)
{
    int r = 0;
    b->n_images = units;
    memcpy(b->image, c->image, sizeof b->image);
    for (uint32_t k = 0; k < units && !b->remark[0]; k++)
        memcpy(b->remark, c->remark[k], sizeof b->remark);
    for (uint32_t k = 0; k < units && r == 0; k++)
        if (c->result[k] < 0)
            r = error_set(e, c->error[k].kind, "%s", c->error[k].text);
    return r < 0 ? r : describe(c->s, c->t, b, e);
}

int nvrtc_compile(const struct source *s, const struct target *t, struct binary *ret,
                  struct error *e)
{
    const uint32_t units = s->n_units ? s->n_units : 1;
    struct binary made = {0};
    if (!nvrtc_version(e)[0])
        return -1;
    struct compilation *c = memory_new(1, sizeof *c);
    *c = (struct compilation){.n = nvrtc_library(), .s = s, .t = t};
    snprintf(made.compiler, sizeof made.compiler, "nvrtc %s", c->n->version);
    thread_pool_share(units, compile_unit, c);
    int r = collect(c, units, &made, e);
    free(c);
    if (r < 0)
        binary_finish(&made);
    else
        *ret = made;
    return r;
}
