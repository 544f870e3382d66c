/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of the CPU are memory of this process. Their functions need no open backend: its state may be null. */
#include "masks/base/memory.h"
#include "model/backend/cpu/train/train.h"
#include <stdlib.h>
#include <string.h>

enum { LARGE = 1 << 20 }; /* bytes from which on large pages are worth their rounding */

static uint64_t bytes_of(uint64_t count)
{
    const uint64_t bytes = count * sizeof(float);
    return bytes < LARGE ? bytes : memory_large_bytes(bytes);
}

static float *new (struct backend_state *s, uint64_t count, struct error *e)
{
    size_t bytes = count * sizeof(float);
    (void)s, (void)e;
    if (bytes < LARGE)
        return memory_aligned(count, sizeof(float));
    float *ret = memory_large(&bytes);
    memset(ret, 0, bytes);
    return ret;
}

static void destroy(struct backend_state *s, float *array)
{
    (void)s;
    free(array);
}

static float *host(struct backend_state *s, float *array)
{
    (void)s;
    return array;
}

static int write(struct backend_state *s, float *to, uint64_t count, const void *value,
                 struct error *e)
{
    (void)s, (void)e;
    memcpy(to, value, count * sizeof *to);
    return 0;
}

static int read(struct backend_state *s, const float *from, uint64_t count, float *ret,
                struct error *e)
{
    (void)s, (void)e;
    memcpy(ret, from, count * sizeof *ret);
    return 0;
}

/* Threads share the array as the optimiser does: its pages are warm where they are needed. */
static int clear(struct backend_state *s, float *to, uint64_t count, uint32_t threads,
                 struct error *e)
{
    (void)s, (void)e;
#pragma omp parallel for simd num_threads(threads)
    for (uint64_t k = 0; k < count; k++)
        to[k] = 0;
    return 0;
}

static int drain(struct backend_state *s, float *to, float *from, uint64_t count,
                 uint32_t threads, struct error *e)
{
    (void)s, (void)e;
#pragma omp parallel for simd num_threads(threads)
    for (uint64_t k = 0; k < count; k++) {
        to[k] += from[k];
        from[k] = 0;
    }
    return 0;
}

static int is_finite(struct backend_state *s, const float *from, uint64_t count, bool *ret,
                     struct error *e)
{
    (void)s, (void)e;
    *ret = elements_not_finite(ELEMENT_F32, from, count) == count;
    return 0;
}

/* ---- weights ---- */

static int refill(struct backend_state *s, void *kept, enum element type, const float *value,
                  uint64_t count, struct error *e)
{
    (void)s, (void)e;
    elements_from_f32(type, value, count, kept);
    return 0;
}

static int repack(struct backend_state *s, const struct linear *l,
                  const struct weight_view *weight, const float *bias, struct error *e)
{
    return matmul_repack(s->matmul, l, weight, bias, e);
}

const struct training_backend cpu_training = {
    .array_new = new,
    .array_destroy = destroy,
    .array_bytes = bytes_of,
    .array_host = host,
    .array_write = write,
    .array_read = read,
    .array_clear = clear,
    .array_drain = drain,
    .array_is_finite = is_finite,
    .gradient_norm = cpu_gradient_norm,
    .gradient_squares = cpu_gradient_squares,
    .update = cpu_update,
    .refill = refill,
    .repack = repack,
    .first_rows = true,
    .workspace_new = cpu_training_new,
    .workspace_destroy = cpu_training_destroy,
    .compute = cpu_train,
    .identity = cpu_training_identity,
    .memory = cpu_training_memory,
    .attention = cpu_training_attention,
};
