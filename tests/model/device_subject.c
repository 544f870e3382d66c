/* SPDX-License-Identifier: Apache-2.0 */
/* See device_subject.h. */
#include "tests/model/device_subject.h"
#include "model/engine/encoder.h"
#include "model/kernels/train_ops.h"
#include "runtime/device/emulated/emulated_text.h"
#include "runtime/load/load.h"
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fake_gpu *device_fake;
const char *device_name;
bool device_idle;

struct engine *device_load_on(const char *on, const char *mask, const char *transform,
                              enum element dtype, uint32_t parts)
{
    struct error e = {0};
    struct engine_options o = {.mask = mask,
                               .transform = transform,
                               .dtype = dtype,
                               .threads = 2,
                               .device = on,
                               .parts = parts};
    struct engine *g = engine_load(random_folder, &o, &e);
    if (!g)
        fail_msg("%s", e.text);
    return g;
}

/* The text of an engine's kernels; of one engine at a time. */
static struct emulated_text *attention_text, *ops_text, *training_text;

static size_t args_bytes(const char *entry)
{
    return !strncmp(entry, "rows_", 5)         ? sizeof(struct rows_args)
           : !strncmp(entry, "train_", 6)      ? sizeof(struct train_args)
           : !strncmp(entry, "attention_", 10) ? sizeof(struct abi_args)
                                               : 0;
}

/* Encoder ops are right for any number of blocks; few are emulated in less time. */
static int run_entry(const char *entry, unsigned blocks, unsigned threads, unsigned shared,
                     const void *args)
{
    const bool trains = !strncmp(entry, "train_", 6),
               op = trains || !strncmp(entry, "rows_", 5);
    const struct emulated_text *text = trains ? training_text : op ? ops_text : attention_text;
    struct emulated_grid grid = {op && blocks > 4 ? 4 : blocks, threads, shared};
    struct error e = {0};
    if (!device_idle && emulated_run(text, entry, args, &grid, &e) < 0)
        fail_msg("%s", e.text);
    return 0;
}

static struct emulated_text *open_text(const char *text)
{
    struct error e = {0};
    struct emulated_text *t = emulated_open(text, "a kernel", &e);
    if (!t)
        fail_msg("%s", e.text);
    return t;
}

static struct emulated_text *open_ops(enum element dtype, uint32_t hidden, bool trains)
{
    const struct encoder_ops_shape shape = {dtype == ELEMENT_BF16 ? MASKC_BF16 : MASKC_F32,
                                            hidden, trains};
    char *text = encoder_ops_text(&shape);
    struct emulated_text *ret = open_text(text);
    free(text);
    return ret;
}

void device_use_ops(enum element dtype, uint32_t hidden, bool trains)
{
    emulated_close(ops_text);
    emulated_close(training_text);
    ops_text = open_ops(dtype, hidden, false);
    training_text = trains ? open_ops(dtype, hidden, true) : NULL;
}

void device_use_attention(const struct engine *g)
{
    emulated_close(attention_text);
    attention_text = open_text(g->encoder->attention.kernel->target->source);
}

/* From here on the fake GPU runs g's kernels. */
static void put_in(const struct engine *g)
{
    if (!device_fake)
        return;
    device_use_ops(g->dtype, g->config.hidden, g->trains);
    device_use_attention(g);
}

struct engine *device_load(const char *mask, const char *transform, enum element dtype,
                           uint32_t parts)
{
    struct engine *g = device_load_on(device_name, mask, transform, dtype, parts);
    put_in(g);
    return g;
}

struct fake_gpu *device_find_fake(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, "fake_gpu") : NULL;
}

bool device_begin_fake(void)
{
    device_fake = device_find_fake();
    if (!device_fake)
        return false;
    device_fake->run = run_entry;
    device_fake->args_bytes = args_bytes;
    return true;
}

void device_end_fake(void)
{
    emulated_close(attention_text);
    emulated_close(ops_text);
    emulated_close(training_text);
}
