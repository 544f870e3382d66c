/* SPDX-License-Identifier: Apache-2.0 */
/* bf16 products on CPUs without instructions for them. Weights are kept as f32, rounded to bf16; rows are widened
   before a product and its output is rounded after it. The sums are f32 in either case. */
#include "model/backend/cpu/matmul/matmul_engine.h"

enum { PART = 4096, LINE = 64 };

bool matmul_widens(const struct matmul *m, enum element t)
{
    return t == ELEMENT_BF16 && m->widens_bf16;
}

dnnl_data_type_t matmul_type(const struct matmul *m, enum element t)
{
    return t == ELEMENT_BF16 && !m->widens_bf16 ? dnnl_bf16 : dnnl_f32;
}

size_t matmul_widened_bytes(const struct matmul *m, enum element t, uint64_t count)
{
    return matmul_widens(m, t) ? (count * sizeof(float) + LINE - 1) / LINE * LINE : 0;
}

static uint64_t part_of(uint64_t count, uint64_t at)
{
    return count - at < PART ? count - at : PART;
}

void matmul_widen(const struct matmul *m, uint32_t threads, uint64_t count, const uint16_t *x,
                  float *y)
{
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (uint64_t at = 0; at < count; at += PART)
        m->rows->widen_bf16(part_of(count, at), x + at, y + at);
}

void matmul_round(const struct matmul *m, uint32_t threads, uint64_t count, const float *x,
                  uint16_t *y)
{
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (uint64_t at = 0; at < count; at += PART)
        m->rows->round_bf16(part_of(count, at), x + at, y + at);
}
