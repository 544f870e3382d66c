/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskc/calibrate/microbench.h"
#include "masks/base/memory.h"
#include "runtime/device/cpu_threads.h"
#include "runtime/launch/launch.h"
#include "tools/maskc/rounds.h"
#include "tools/reference/check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_RUNS = 1, MAX_RUNS = 50 };
static const double seconds_per_pass = 0.003, seconds_per_round = 0.002;
static const double seconds_settled =
    0.02; /* a launch this long needs no untimed one before it */

/* ---- buffers ---- */

static void fill(enum abi_dtype dtype, uint8_t *to, uint64_t count)
{
    uint32_t x = 1, bytes = dtype_bytes(dtype);
    for (uint64_t k = 0; k < count; k++) {
        x = x * 1664525 + 1013904223;
        dtype_encode(dtype, (double)x / 2147483648.0 - 1, to + k * bytes);
    }
}

static void *take(const struct microbench *l, uint64_t bytes, struct error *e)
{
    return l->owner ? l->owner->device->allocate(l->owner->code, bytes, e)
                    : memory_aligned(bytes, 1);
}

static void give_back(const struct microbench *l, void *p)
{
    if (l->owner)
        l->owner->device->release(l->owner->code, p);
    else
        free(p);
}

/* The image as often as it goes into so many bytes. */
static void *take_filled(const struct microbench *l, const uint8_t *image, uint64_t image_bytes,
                         uint64_t bytes, struct error *e)
{
    uint8_t *p = take(l, bytes, e);
    bool ok = true;
    for (uint64_t at = 0; p && ok && at < bytes; at += image_bytes)
        if (l->owner)
            ok = !l->owner->device->upload(l->owner->code, p + at, image, image_bytes, e);
        else
            memcpy(p + at, image, image_bytes);
    if (ok)
        return p;
    give_back(l, p);
    return NULL;
}

static int open_tensors(struct microbench *l, uint64_t tokens, struct error *e)
{
    const uint64_t count = (uint64_t)PROBE_LONGEST * MICROBENCH_HEADS * MICROBENCH_HEAD_DIM;
    const uint64_t image_bytes = count * dtype_bytes(l->request.dtype);
    uint8_t *image = memory_aligned(image_bytes, 1);
    bool ok = true;
    fill(l->request.dtype, image, count);
    for (int k = 0; k < 8 && ok; k++) {
        uint64_t bytes = image_bytes / PROBE_LONGEST * tokens;
        l->tensor[k] = k < 4 ? take_filled(l, image, image_bytes, bytes, e) : take(l, bytes, e);
        ok = l->tensor[k];
    }
    free(image);
    return ok ? 0 : -1;
}

int microbench_open(struct microbench *l, struct error *e)
{
    const uint64_t tokens = l->owner ? GPU_TOKENS : PROBE_LONGEST;
    if (open_tensors(l, tokens, e) ||
        !(l->lse = take(l, tokens * MICROBENCH_HEADS * sizeof *l->lse, e)))
        return -1;
    if (l->owner)
        return 0; /* a bias is measured on a CPU alone */
    uint64_t count = (uint64_t)BIAS_LONGEST * BIAS_LONGEST * MICROBENCH_HEADS;
    l->bias = memory_aligned(count, sizeof *l->bias);
    l->grad_soft = memory_aligned(count, sizeof *l->grad_soft);
    fill(ABI_F32, (uint8_t *)l->bias, count);
    return 0;
}

void microbench_close(struct microbench *l)
{
    for (int k = 0; k < 8; k++)
        give_back(l, l->tensor[k]);
    give_back(l, l->lse);
    give_back(l, l->workspace);
    free(l->bias);
    free(l->grad_soft);
}

static int make_capacity(struct microbench *l, uint64_t bytes, struct error *e)
{
    if (bytes <= l->workspace_capacity)
        return 0;
    give_back(l, l->workspace);
    l->workspace = take(l, bytes, e);
    l->workspace_capacity = l->workspace ? bytes : 0;
    return l->workspace ? 0 : -1;
}

static struct maskc_launch launch_of(const struct microbench *l, const struct maskc_kernel *k,
                                     enum maskc_pass pass, uint32_t batch)
{
    struct maskc_launch m = {
        .struct_size = sizeof m,
        .pass = pass,
        .batch = batch,
        .query = {.data = l->tensor[0]},
        .key = {.data = l->tensor[1]},
        .value = {.data = l->tensor[2]},
        .grad_out = {.data = l->tensor[3]},
        .out = {.data = l->tensor[4]},
        .grad_query = {.data = l->tensor[5]},
        .grad_key = {.data = l->tensor[6]},
        .grad_value = {.data = l->tensor[7]},
        .lse = l->lse,
        .threads = 1,
    };
    if (k->artifact->request.bias) {
        m.soft = l->bias;
        m.grad_soft = pass == MASKC_BACKWARD ? l->grad_soft : NULL;
    }
    m.workspace_bytes = maskc_workspace_bytes(k, &m);
    return m;
}

/* ---- time ---- */

double microbench_seconds(const struct microbench *l)
{
    return l->owner ? rounds_now() : rounds_thread_now();
}

/* One round: mean seconds of `launches` launches; a GPU is waited for once, at the end. */
static int time_round(const struct microbench *l, const struct maskc_kernel *k,
                      const struct maskc_launch *m, uint32_t launches, double *ret,
                      struct error *e)
{
    double start = microbench_seconds(l);
    for (uint32_t at = 0; at < launches; at++)
        if (launch_run(k, m, e))
            return -1;
    if (l->owner && k->device->sync(k->code, e))
        return -1;
    *ret = (microbench_seconds(l) - start) / launches;
    return 0;
}

/* On a GPU a launch is timed among many, as a training step would run it; the first brings the code. */
static int find_launches(const struct microbench *l, const struct maskc_kernel *k,
                         const struct maskc_launch *m, uint32_t *ret, struct error *e)
{
    double warm;
    *ret = 1;
    for (int round = 0; l->owner && round < 2; round++) {
        if (time_round(l, k, m, 1, &warm, e))
            return -1;
        *ret = rounds_launches(warm, seconds_per_round);
    }
    return 0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of several rounds: what a launch usually takes, as `bench` has it. */
static int time_pass(struct microbench *l, const struct maskc_kernel *k, uint32_t batch,
                     enum maskc_pass pass, double *ret, struct error *e)
{
    struct maskc_launch m = launch_of(l, k, pass, batch);
    double total = 0, seconds[MAX_RUNS];
    uint32_t launches;
    int runs = 0;
    if (make_capacity(l, m.workspace_bytes, e))
        return -1;
    m.workspace = l->workspace;
    if (find_launches(l, k, &m, &launches, e))
        return -1;
    for (bool warm = l->owner != NULL;
         runs < MIN_RUNS || (runs < MAX_RUNS && total < seconds_per_pass);) {
        if (time_round(l, k, &m, launches, &seconds[runs], e))
            return -1;
        if (warm || seconds[runs] >= seconds_settled)
            total += seconds[runs++] * launches;
        warm = true;
    }
    qsort(seconds, (size_t)runs, sizeof *seconds, ascending);
    *ret = seconds[runs / 2];
    return 0;
}

static struct launch_record *record_of(const struct maskc_kernel *k)
{
    return &k->artifact->target[k->target - k->artifact->target].launch;
}

/* The phases of the backward pass that make dQ. On a GPU those before the transposed plan: all, where
   one phase makes dQ, dK and dV together. */
static uint32_t query_phases(const struct maskc_kernel *k)
{
    enum { CPU_PHASES = 2 };
    const struct launch_record *r = record_of(k);
    uint32_t count = 0;
    while (count < r->n_backward && !over_transposed(r->backward[count].over))
        count++;
    return k->device == &device_cpu ? CPU_PHASES : count;
}

/* Backward with the first `phases` of its phases. */
static int time_backward(struct microbench *l, struct maskc_kernel *k, uint32_t batch,
                         uint32_t phases, double *ret, struct error *e)
{
    struct launch_record *r = record_of(k);
    uint32_t all = r->n_backward;
    r->n_backward = phases < all ? phases : all;
    int code = time_pass(l, k, batch, MASKC_BACKWARD, ret, e);
    r->n_backward = all;
    return code;
}

int microbench_time(struct microbench *l, struct maskc_kernel *k, uint32_t batch,
                    double seconds[PASSES], struct error *e)
{
    double now[PASSES];
    if (time_pass(l, k, batch, MASKC_FORWARD, &now[PASS_FORWARD], e) ||
        time_backward(l, k, batch, query_phases(k), &now[PASS_DQ], e) ||
        time_backward(l, k, batch, UINT32_MAX, &now[PASS_DKV], e))
        return -1;
    memcpy(seconds, now, sizeof now);
    return 0;
}

/* The least of many launches: others on the machine only add. */
static int least_launch(struct microbench *l, const struct maskc_kernel *k, uint32_t threads,
                        double *ret, struct error *e)
{
    enum { LAUNCHES = 500 };
    struct maskc_launch m = launch_of(l, k, MASKC_FORWARD, 1);
    m.threads = threads;
    m.workspace_bytes = maskc_workspace_bytes(k, &m);
    if (make_capacity(l, m.workspace_bytes, e))
        return -1;
    m.workspace = l->workspace;
    *ret = INFINITY;
    for (int at = 0; at < LAUNCHES; at++) {
        double start = rounds_now();
        if (launch_run(k, &m, e))
            return -1;
        double seconds = rounds_now() - start;
        *ret = seconds < *ret ? seconds : *ret;
    }
    return 0;
}

int microbench_wake(struct microbench *l, struct maskc_kernel *k, double *ret, struct error *e)
{
    const uint32_t cores = threads_cores();
    double one, all;
    *ret = 0;
    if (l->owner || cores < 2)
        return 0;
    if (least_launch(l, k, 1, &one, e) || least_launch(l, k, cores, &all, e))
        return -1;
    *ret = fmax(0, all - one / cores);
    return 0;
}

bool microbench_shares_gradients(const struct maskc_kernel *k)
{
    return query_phases(k) == record_of(k)->n_backward;
}
