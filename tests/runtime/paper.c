/* SPDX-License-Identifier: Apache-2.0 */
/* See paper.h. */
#include "tests/runtime/paper.h"
#include "masks/base/memory.h"
#include "tests/runtime/launches.h"
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint32_t workers(const struct device_code *c, uint32_t threads)
{
    (void)c;
    return threads ? threads : 2;
}

static void tables(const struct device_code *c, bool transposed, uint32_t layer,
                   struct abi_plan *ret)
{
    (void)c;
    *ret = (struct abi_plan){.works = transposed ? 100 + layer : layer};
}

static int write_down(const struct device_code *c, const struct device_launch *l,
                      struct error *e)
{
    (void)e;
    struct device_code *mine = (struct device_code *)c;
    assert_true(mine->count < MOST_LAUNCHES);
    mine->seen[mine->count++] = *l;
    return 0;
}

static const struct device device_paper = {
    .name = "paper",
    .tables = tables,
    .workers = workers,
    .slices = true,
    .host_memory = true,
    .launch = write_down,
};

struct paper *paper_new(bool backward)
{
    struct paper *b = memory_new(1, sizeof *b);
    b->file = fixture_new("window(3)|global(0)", N, HEADS, backward);
    b->kernel = (struct maskc_kernel){.artifact = &b->file->artifact,
                                      .target = &b->file->artifact.target[0],
                                      .device = &device_paper,
                                      .code = &b->code};
    b->storage = memory_aligned(1 << 20, 1);
    struct maskc_tensor t = {.data = b->storage};
    b->launch = launch_over_one(t, (float *)(void *)b->storage);
    b->launch.pass = backward ? MASKC_BACKWARD : MASKC_FORWARD;
    b->launch.batch = BATCH;
    b->launch.workspace = b->storage;
    b->launch.workspace_bytes = maskc_workspace_bytes(&b->kernel, &b->launch);
    return b;
}

void paper_free(struct paper *b)
{
    fixture_free(b->file);
    free(b->storage);
    free(b);
}

void paper_run(struct paper *b)
{
    struct maskc_error error;
    if (maskc_run(&b->kernel, &b->launch, &error))
        fail_msg("%s", error.text);
}

void paper_more_workspace(struct paper *b)
{
    b->launch.workspace_bytes = maskc_workspace_bytes(&b->kernel, &b->launch);
}
