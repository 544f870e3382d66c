/* SPDX-License-Identifier: Apache-2.0 */
/* The driver "emulated": the row kernels' CUDA text on this CPU, and products by plain loops. Its memory
   is the host's, and all is done when a call returns. */
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include "model/device/backend.h"
#include "runtime/device/emulated_text.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 4 };

struct driver_state {
    struct emulated_text *rows;
};

static int open(struct backend *b, int ordinal, const struct source *rows, struct error *e)
{
    struct text flat = {0};
    (void)ordinal;
    b->state = memory_new(1, sizeof *b->state);
    source_flatten(rows, &flat);
    b->state->rows = emulated_open(text_get(&flat), "the row kernels", e);
    text_finish(&flat);
    return b->state->rows ? 0 : -1;
}

static void close(struct backend *b)
{
    if (b->state)
        emulated_close(b->state->rows);
    free(b->state);
}

static int lane_open(const struct backend *b, struct lane *l, struct error *e)
{
    (void)b, (void)l, (void)e;
    return 0;
}

static void lane_close(const struct backend *b, struct lane *l)
{
    (void)b, (void)l;
}

/* ---- memory ---- */

static void *allocate(const struct backend *b, uint64_t bytes, struct error *e)
{
    (void)b, (void)e;
    return memory_aligned(bytes ? bytes : 1, 1);
}

static void release(const struct backend *b, void *p)
{
    (void)b;
    free(p);
}

static int clear(const struct backend *b, struct lane *l, void *p, uint64_t bytes,
                 struct error *e)
{
    (void)b, (void)l, (void)e;
    memset(p, 0, bytes);
    return 0;
}

static int copy(const struct backend *b, struct lane *l, void *to, const void *from,
                uint64_t bytes, struct error *e)
{
    (void)b, (void)l, (void)e;
    memcpy(to, from, bytes);
    return 0;
}

static int wait(const struct backend *b, struct lane *l, struct error *e)
{
    (void)b, (void)l, (void)e;
    return 0;
}

/* ---- products ---- */

static float dot(const float *a, const float *b, uint32_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (uint32_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

/* One row of W against all rows of x: columns of y. */
static void multiply_column(const struct linear *w, uint32_t column, uint32_t rows,
                            const float *x, float *row, void *y)
{
    const uint64_t element = element_bytes(w->y);
    elements_to_f32(w->x,
                    (const uint8_t *)w->packed + (uint64_t)column * w->in * element_bytes(w->x),
                    w->in, row);
    for (uint32_t r = 0; r < rows; r++) {
        float sum = dot(x + (uint64_t)r * w->in, row, w->in);
        elements_from_f32(w->y, &sum, 1,
                          (uint8_t *)y + ((uint64_t)r * w->out + column) * element);
    }
}

static int product(const struct backend *b, struct lane *l, const struct linear *w,
                   uint32_t rows, const void *x, void *y, bool *fused, struct error *e)
{
    float *wide = memory_new((uint64_t)rows * w->in, sizeof *wide);
    (void)b, (void)l, (void)e;
    elements_to_f32(w->x, x, (uint64_t)rows * w->in, wide);
#pragma omp parallel
    {
        float *row = memory_new(w->in, sizeof *row);
#pragma omp for
        for (uint32_t column = 0; column < w->out; column++)
            multiply_column(w, column, rows, wide, row, y);
        free(row);
    }
    free(wide);
    *fused = false;
    return 0;
}

/* ---- rows ---- */

static int rows(const struct backend *b, struct lane *l, enum rows_entry entry,
                const struct rows_args *args, uint64_t blocks, struct error *e)
{
    struct emulated_grid grid = {blocks < MOST_BLOCKS ? (uint32_t)blocks : MOST_BLOCKS,
                                 ROWS_THREADS, 0};
    (void)l;
    return emulated_run(b->state->rows, rows_entries[entry], args, &grid, e);
}

const struct backend_driver backend_emulated = {
    .name = "emulated",
    .target = "sm_80",
    .text_only = true,
    .open = open,
    .close = close,
    .lane_open = lane_open,
    .lane_close = lane_close,
    .allocate = allocate,
    .release = release,
    .clear = clear,
    .send = copy,
    .fetch = copy,
    .wait = wait,
    .product = product,
    .rows = rows,
};
