/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskc/bench/compile.h"
#include "gen/key_shape.h"
#include "runtime/compile/compile.h"
#include "tools/maskc/progress.h"
#include <stdlib.h>

static int load_bytes(const uint8_t *bytes, uint64_t size, const char *device,
                      struct maskc_kernel **ret, struct error *e)
{
    struct maskc_error failure;
    if (maskc_load_memory(bytes, size, device, ret, &failure))
        return error_set(e, (enum error_kind)failure.code, "%s", failure.text);
    return 0;
}

int bench_compile(const struct bench_compiler *c, const struct mask *m,
                  const struct target *target, const struct kernel_request *f,
                  struct maskc_kernel **ret, struct error *e)
{
    struct compile_request r = {.mask = m,
                                .targets = &target,
                                .n_targets = 1,
                                .request = *f,
                                .plan = c->plan,
                                .machine = c->o->machine,
                                .calibration = c->o->calibration,
                                .cache = c->cache,
                                .progress = progress_show};
    uint8_t *bytes = NULL;
    uint64_t size = 0;
    if (kernel_compile(&r, &bytes, &size, e))
        return -1;
    int code = load_bytes(bytes, size, c->o->device, ret, e);
    free(bytes);
    return code;
}

/* A number of keys or queries, where the larger one is `length` in the place of n; 0 stays 0. */
static uint32_t part_of(uint32_t count, uint32_t length, uint32_t n)
{
    const uint32_t part = (uint32_t)((uint64_t)count * length / n);
    return count && !part ? 1 : part;
}

int bench_compile_dense(const struct bench_compiler *c, const struct maskc_kernel *like,
                        uint32_t length, struct maskc_kernel **ret, struct error *e)
{
    const struct mask *m = like->artifact->mask;
    struct mask_request request = {
        .name = "dense", .n = length, .heads = m->heads, MASK_REQUEST_DEFAULTS};
    struct mask *dense = mask_load(&request, NULL, e);
    const struct target *target = target_find(like->target->name, e);
    struct kernel_request r = like->artifact->request;
    const struct key_shape shape = {r.kv_heads, part_of(r.keys, length, m->n),
                                    MASK_ALIGN_START};
    r.length = length;
    int code = dense && target &&
                       !key_shape_apply(&shape, part_of(r.queries, length, m->n), &dense, &r, e)
                   ? bench_compile(c, dense, target, &r, ret, e)
                   : -1;
    mask_destroy(dense);
    return code;
}

int bench_compile_as(const struct bench_compiler *c, const struct maskc_kernel *like,
                     const struct kernel_request *f, struct maskc_kernel **ret, struct error *e)
{
    const struct target *target = target_find(like->target->name, e);
    return target ? bench_compile(c, like->artifact->mask, target, f, ret, e) : -1;
}
