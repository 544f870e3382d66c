/* SPDX-License-Identifier: Apache-2.0 */
/* See code.h. */
#include "tests/sass/hopper/code.h"
#include "masks/base/file.h"
#include "masks/base/folder.h"
#include "masks/base/text.h"
#include "runtime/base/process.h"
#include "runtime/compile/nvrtc.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_INSTRUCTIONS = 20000000 };

static void must(int result, const struct error *e)
{
    if (result)
        fail_msg("%s", e->text);
}

static void read_text(const char *file, struct text *ret)
{
    char path[512];
    struct file f = {0};
    struct error e = {0};
    snprintf(path, sizeof path, "%s/tests/sass/%s", getenv("MASKC_SOURCE"), file);
    must(file_open(path, &f, &e), &e);
    text_append(ret, (const char *)f.bytes, f.size);
    file_close(&f);
}

static void load(struct code *c, const uint8_t *cubin, uint64_t bytes)
{
    c->cubin = malloc(bytes);
    c->bytes = bytes;
    memcpy(c->cubin, cubin, bytes);
    if (image_load(&c->image, cubin, bytes, c->why, sizeof c->why))
        fail_msg("%s", c->why);
}

/* ---- NVRTC ---- */

static void compile(const struct nvrtc *n, struct nvrtc_program *p, const char *option)
{
    const char *const options[] = {"-arch=sm_90a", option};
    size_t size = 0;
    if (!n->nvrtcCompileProgram(p, option ? 2 : 1, options))
        return;
    n->nvrtcGetProgramLogSize(p, &size);
    char *log = calloc(size + 1, 1);
    n->nvrtcGetProgramLog(p, log);
    fail_msg("%s", log);
}

void code_open_cuda(struct code *c, const char *file, const char *option)
{
    const struct nvrtc *n = nvrtc_library();
    struct nvrtc_program *p = NULL;
    struct text t = {0};
    size_t size = 0;
    *c = (struct code){.seed = 1, .most = MOST_INSTRUCTIONS};
    read_text(file, &t);
    assert_int_equal(n->nvrtcCreateProgram(&p, text_get(&t), file, 0, NULL, NULL), 0);
    compile(n, p, option);
    n->nvrtcGetCUBINSize(p, &size);
    char *cubin = malloc(size);
    assert_int_equal(n->nvrtcGetCUBIN(p, cubin), 0);
    load(c, (const uint8_t *)cubin, size);
    n->nvrtcDestroyProgram(&p);
    free(cubin);
    text_finish(&t);
}

/* ---- ptxas ---- */

const char *code_find_ptxas(void)
{
    static char path[512];
    const char *const home = getenv("CUDA_HOME");
    const char *const places[] = {home ? home : "/usr/local/cuda", "/usr/local/cuda"};
    for (size_t k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/bin/ptxas", places[k]);
        if (!access(path, X_OK))
            return path;
    }
    return NULL;
}

static void write_ptx(const char *path, const struct ptx *p)
{
    static const char mark[] = "// mends: ";
    struct text t = {0};
    struct error e = {0};
    read_text(p->file, &t);
    assert_non_null(strstr(text_get(&t), mark));
    for (char *at = t.bytes; p->mended && (at = strstr(at, mark));)
        memset(at, ' ', strlen(mark));
    must(file_write(path, t.bytes, t.length, &e), &e);
    text_finish(&t);
}

void code_open_ptx(struct code *c, const char *ptxas, const struct ptx *p)
{
    struct error e = {0};
    struct text said = {0};
    struct file f = {0};
    char *folder = folder_temporary(&e), ptx[512], cubin[512], target[32];
    assert_non_null(folder);
    *c = (struct code){.seed = 1, .most = MOST_INSTRUCTIONS};
    snprintf(ptx, sizeof ptx, "%s/text.ptx", folder);
    snprintf(cubin, sizeof cubin, "%s/text.cubin", folder);
    snprintf(target, sizeof target, "-arch=%s", p->target);
    write_ptx(ptx, p);
    const char *const command[] = {ptxas, target, p->level, "-o", cubin, ptx, NULL};
    if (process_run(command, &said, &e))
        fail_msg("ptxas: %s%s", e.text, text_get(&said));
    must(file_open(cubin, &f, &e), &e);
    load(c, f.bytes, f.size);
    file_close(&f);
    folder_remove(folder);
    free(folder);
    text_finish(&said);
}

/* ---- the machine ---- */

void code_close(struct code *c)
{
    while (c->memory.count)
        memory_free(&c->memory, c->memory.allocation[0].bytes);
    image_finish(&c->image);
    free(c->cubin);
}

int code_change(struct code *c, const char *text)
{
    image_finish(&c->image);
    return image_load_text(&c->image, c->cubin, c->bytes, text, c->why, sizeof c->why);
}

void *code_put(struct code *c, const void *bytes, uint64_t size)
{
    void *to = memory_allocate(&c->memory, size);
    memcpy(to, bytes, size);
    memory_wrote(&c->memory, (uint64_t)(uintptr_t)to, size);
    return to;
}

int code_run(struct code *c, uint32_t blocks, uint32_t threads, uint32_t shared,
             void *const *arguments)
{
    struct program *p = &c->image.entry[0];
    int r = 0;
    program_arguments(p, threads, (const uint32_t[]){blocks, 1, 1}, arguments);
    for (uint32_t k = 0; k < blocks && r == 0; k++) {
        struct block b = {.program = p,
                          .memory = &c->memory,
                          .warps = threads / 32,
                          .index = k,
                          .grid = blocks,
                          .shared_bytes = p->shared_base + p->shared_static + shared,
                          .early = c->early,
                          .counts = c->counts,
                          .left = c->most,
                          .random = c->seed * 0x9e3779b97f4a7c15u + k,
                          .fault = c->why};
        r = block_run(&b);
    }
    return r;
}
