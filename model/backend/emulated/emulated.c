/* SPDX-License-Identifier: Apache-2.0 */
/* The backend "emulated": the encoder ops' CUDA text on this CPU, and products by plain loops. Its memory is
   the host's, and all is done when a call returns. */
#include "runtime/device/emulated/emulated.h"
#include "masks/base/memory.h"
#include "model/backend/emulated/products.h"
#include "model/backend/gpu/gpu.h"
#include "runtime/device/emulated/emulated_stream.h"
#include "runtime/device/emulated/emulated_text.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 4 };

struct gpu {
    struct emulated_text *ops, *training; /* training: or null */
};

static void close(struct gpu *g)
{
    emulated_close(g->ops);
    emulated_close(g->training);
    free(g);
}

static struct emulated_text *open_ops(const struct encoder_ops_shape *shape, bool trains,
                                      struct error *e)
{
    const struct encoder_ops_shape of = {shape->dtype, shape->hidden, trains};
    char *text = encoder_ops_text(&of);
    struct emulated_text *ops =
        emulated_open(text, trains ? "the kernels of training" : "the encoder ops", e);
    free(text);
    return ops;
}

static struct gpu *open(int ordinal, const struct encoder_ops_shape *shape, struct error *e)
{
    struct gpu *g = memory_new(1, sizeof *g);
    (void)ordinal;
    g->ops = open_ops(shape, false, e);
    if (g->ops && shape->trains)
        g->training = open_ops(shape, true, e);
    if (g->ops && (g->training || !shape->trains))
        return g;
    close(g);
    return NULL;
}

static int stream_open(const struct gpu *g, bool multiplies, struct gpu_stream *s,
                       struct error *e)
{
    (void)g, (void)multiplies, (void)e;
    *s = (struct gpu_stream){.emulated = emulated_stream_new()};
    return 0;
}

static void stream_close(const struct gpu *g, struct gpu_stream *s)
{
    (void)g;
    emulated_stream_destroy(s->emulated);
    *s = (struct gpu_stream){0};
}

/* ---- memory ---- */

static void *allocate(const struct gpu *g, uint64_t bytes, struct error *e)
{
    (void)g, (void)e;
    return memory_aligned(bytes ? bytes : 1, 1);
}

static void release(const struct gpu *g, void *p)
{
    (void)g;
    free(p);
}

/* Training records only kernels and products. */
static int must_run(const struct gpu_stream *s, struct error *e)
{
    return emulated_records(s->emulated)
               ? error_set(e, ERROR_UNAVAILABLE, "emulated: a recording has only launches")
               : 0;
}

static int clear(const struct gpu *g, struct gpu_stream *s, void *p, uint64_t bytes,
                 struct error *e)
{
    (void)g;
    if (must_run(s, e) < 0)
        return -1;
    memset(p, 0, bytes);
    return 0;
}

static int copy(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                uint64_t bytes, struct error *e)
{
    (void)g;
    if (must_run(s, e) < 0)
        return -1;
    memcpy(to, from, bytes);
    return 0;
}

static int wait(const struct gpu *g, struct gpu_stream *s, struct error *e)
{
    (void)g;
    return must_run(s, e);
}

static int is_idle(const struct gpu *g, struct gpu_stream *s, bool *ret, struct error *e)
{
    (void)g, (void)s, (void)e;
    *ret = true;
    return 0;
}

static int follow(const struct gpu *g, struct gpu_stream *s, const struct gpu_stream *before,
                  struct error *e)
{
    (void)g, (void)s, (void)before, (void)e;
    return 0;
}

static int mark(const struct gpu *g, struct gpu_event *event, const struct gpu_stream *s,
                struct error *e)
{
    (void)g, (void)event, (void)s, (void)e;
    return 0;
}

static int reach(const struct gpu *g, const struct gpu_event *event, struct error *e)
{
    (void)g, (void)event, (void)e;
    return 0;
}

static void event_close(const struct gpu *g, struct gpu_event *event)
{
    (void)g, (void)event;
}

/* ---- kernels ---- */

static int submit(struct gpu_stream *s, const struct emulated_launch *l, struct error *e)
{
    gpu_stream_count(s);
    return emulated_submit_launch(s->emulated, l, e);
}

static struct emulated_grid grid_of(uint64_t blocks, uint32_t threads, uint32_t shared)
{
    return (struct emulated_grid){blocks < MOST_BLOCKS ? (uint32_t)blocks : MOST_BLOCKS,
                                  threads, shared};
}

static int run_op(const struct gpu *g, struct gpu_stream *s, enum encoder_op op,
                  const struct rows_args *args, uint64_t blocks, struct error *e)
{
    const struct emulated_launch l = {g->ops, encoder_op_entries[op],
                                      grid_of(blocks, ROWS_THREADS, 0), args, sizeof *args};
    return submit(s, &l, e);
}

static int ascending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Blocks of a GPU write at the same time: a row that two of them write or add to would lose one of the sums. */
static int targets_differ(const struct train_args *args, struct error *e)
{
    uint32_t *sorted = memory_copy(args->target, args->rows * sizeof *sorted), k = 1;
    qsort(sorted, args->rows, sizeof *sorted, ascending);
    while (k < args->rows && (sorted[k] != sorted[k - 1] || sorted[k] == TRAIN_NOWHERE))
        k++;
    const uint32_t twice = k < args->rows ? sorted[k] : TRAIN_NOWHERE;
    free(sorted);
    return twice == TRAIN_NOWHERE
               ? 0
               : error_set(e, ERROR_UNAVAILABLE,
                           "emulated: row %u is written twice by one launch", twice);
}

static int run_train(const struct gpu *g, struct gpu_stream *s, enum train_op op,
                     const struct train_args *args, struct error *e)
{
    if (op == TRAIN_OP_SEGMENTS && args->target && targets_differ(args, e) < 0)
        return -1;
    const uint64_t blocks = train_op_blocks(op, args);
    const struct emulated_launch l = {g->training, train_op_entry(op),
                                      grid_of(blocks, TRAIN_THREADS, TRAIN_SHARED), args,
                                      sizeof *args};
    return blocks ? submit(s, &l, e) : 0;
}

/* ---- recordings ---- */

struct recording {
    struct emulated_recording *work;
};

static int record(const struct gpu *g, struct gpu_stream *s, struct error *e)
{
    (void)g;
    return emulated_record(s->emulated, e);
}

static struct recording *record_end(const struct gpu *g, struct gpu_stream *s, struct error *e)
{
    struct emulated_recording *work = emulated_record_end(s->emulated, e);
    (void)g;
    if (!work)
        return NULL;
    struct recording *ret = memory_new(1, sizeof *ret);
    ret->work = work;
    return ret;
}

static int replay(const struct gpu *g, struct gpu_stream *s, const struct recording *r,
                  struct error *e)
{
    (void)g;
    gpu_stream_count(s);
    return emulated_replay(s->emulated, r->work, e);
}

static void forget(const struct gpu *g, struct recording *r)
{
    (void)g;
    emulated_recording_destroy(r->work);
    free(r);
}

const struct gpu_driver gpu_driver_emulated = {
    .open = open,
    .close = close,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .allocate = allocate,
    .release = release,
    .allocate_pinned = allocate,
    .release_pinned = release,
    .clear = clear,
    .send = copy,
    .fetch = copy,
    .read = copy,
    .copy = copy,
    .wait = wait,
    .is_idle = is_idle,
    .follow = follow,
    .mark = mark,
    .reach = reach,
    .event_close = event_close,
    .product = emulated_product,
    .run_op = run_op,
    .weight_gradient = emulated_weight_gradient,
    .run_train = run_train,
    .record = record,
    .record_end = record_end,
    .replay = replay,
    .forget = forget,
};

const struct backend backend_emulated = {
    .device = &device_emulated,
    .target = "sm_80",
    .text_only = true,
    .phases_cost = true,
    .keeps_words = true,
    .driver = &gpu_driver_emulated,
    .open = gpu_open,
    .close = gpu_close,
    .feed_form = gpu_feed_form,
    .keep = gpu_keep,
    .pack = gpu_pack,
    .encode = gpu_encode,
    .fetch = gpu_fetch,
    .head = gpu_head,
    .mean = gpu_mean,
    .workspace_finish = gpu_workspace_finish,
    .training = &gpu_training,
};
