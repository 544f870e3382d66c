/* SPDX-License-Identifier: Apache-2.0 */
/* See hopper_subject.h. */
#include "tests/kernels/driver/hopper_subject.h"
#include "tests/support/test.h"
#include <sched.h>
#include <string.h>

atomic_uint subject_encoded;
const void *subject_refused;

static int encode(const struct map_shape *s, struct tensor_map *ret, struct error *e)
{
    _Static_assert(sizeof *s <= sizeof *ret, "a shape fits a map");
    subject_encoded++;
    sched_yield(); /* to another launch, which has to wait */
    if (subject_refused && s->address == subject_refused)
        return error_set(e, ERROR_UNAVAILABLE, "no such map");
    memset(ret, 0, sizeof *ret);
    memcpy(ret, s, sizeof *s);
    return 0;
}

struct map_shape subject_shape(const struct tensor_map *m)
{
    struct map_shape s;
    memcpy(&s, m, sizeof s);
    return s;
}

const struct phase subject_phases[PASSES] = {
    {.over = ABI_OVER_FORWARD, .arguments = PHASE_HOPPER_FORWARD},
    {.over = ABI_OVER_FORWARD, .arguments = PHASE_HOPPER_DQ},
    {.over = ABI_OVER_TRANSPOSED, .arguments = PHASE_HOPPER_DKV},
};
static uint64_t layers[2][2] = {{0, 5}, {5, 2}};
const uint32_t subject_slots[PASSES] = {4, 2, 1};
const struct abi_work subject_work[7];

void subject_init(struct subject *s, struct kernel_request r)
{
    memset(s, 0, sizeof *s);
    s->artifact.request = r;
    for (int k = 0; k < PASSES; k++) {
        s->artifact.plan[0].steps[k].slots = subject_slots[k];
        s->artifact.plan[0].steps[k].layer_work = layers;
        s->steps[k].work = subject_work;
    }
    s->maps = hopper_maps_new(&s->artifact, &s->artifact.target[0], encode, NULL);
    struct abi_args *a = &s->launch.args;
    struct abi_tensor *t[] = {&a->q, &a->k, &a->v, &a->o, &a->d_o, &a->d_q, &a->d_k, &a->d_v};
    for (uintptr_t k = 0; k < sizeof t / sizeof *t; k++)
        *t[k] = (struct abi_tensor){(void *)(0x10000 * (k + 1)), HEADS * ROWS * DIM, DIM,
                                    ROWS * DIM};
    a->batch = a->slice_batch = BATCH;
    a->heads = HEADS;
    a->group = r.kv_heads ? HEADS / r.kv_heads : 1;
    a->n = a->queries = a->keys = ROWS;
    a->lse_head = ROWS;
    subject_encoded = 0;
}

void subject_finish(struct subject *s)
{
    hopper_maps_destroy(s->maps);
}

struct hopper_args subject_fill(struct subject *s, enum machine_pass pass)
{
    struct error e = {0};
    struct hopper_args ret;
    memset(&ret, 0xee, sizeof ret);
    if (hopper_fill(s->maps, &subject_phases[pass], &s->launch, s->steps, &ret, &e) < 0)
        fail_msg("%s", e.text);
    return ret;
}
