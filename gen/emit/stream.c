/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of halves, each followed by 16 bytes; columns 32 at a time, two operands each. */
#include "gen/emit/stream.h"

enum { COLUMNS = 32, ROW_PAD = 8, HALF = 2 };

static uint32_t steps(const struct features *f)
{
    return (f->head_dim + 15) / 16;
}

static uint32_t rows_bytes(const struct features *f, uint32_t rows)
{
    return HALF * rows * (16 * steps(f) + ROW_PAD);
}

uint32_t stream_forward_bytes(const struct target *t, const struct features *f)
{
    return rows_bytes(f, target_strip_rows(t, f) + 2 * 2 * COLUMNS);
}

uint32_t stream_backward_bytes(const struct target *t, const struct features *f)
{
    uint32_t buffers = steps(f) <= 8 ? 2 : 1;
    return rows_bytes(f, 2 * target_strip_rows(t, f) + buffers * 2 * COLUMNS);
}

uint32_t stream_soft_bytes(const struct target *t, const struct features *f)
{
    uint32_t groups = steps(f) <= 8 ? 2 : 1;
    return rows_bytes(f, 2 * target_strip_rows(t, f) + groups * 2 * COLUMNS);
}

bool stream_leaves_sums(const struct target *t, const struct features *f)
{
    return target_matrix(t, f) && (f->shared_rows || f->cut_rows);
}

uint64_t stream_partial_row(const struct target *t, const struct features *f)
{
    return stream_leaves_sums(t, f)
               ? sizeof(float) * ((1 + f->backward) * 16 * (uint64_t)steps(f) + 8)
               : 0;
}
