/* SPDX-License-Identifier: Apache-2.0 */
/* Packs arrays into weights for the products. After a step of the optimiser packings wait in a list; a launch runs up to
   TRAIN_PACKS, a graph replays all launches. */
#include "masks/base/memory.h"
#include "model/backend/gpu/train/train.h"
#include <stdlib.h>

/* One packing; `now`: it runs at once instead of waiting. */
struct packing {
    struct backend_state *s;
    bool now;
};

static int run(struct backend_state *s, const struct train_pack *list, uint32_t count,
               struct error *e)
{
    struct train_args args = {.packs = count};
    for (uint32_t k = 0; k < count; k++) {
        struct train_pack *p = &args.pack[k];
        *p = list[k];
        p->tiles = (p->rows + TRAIN_TILE - 1) / TRAIN_TILE *
                   ((p->columns + TRAIN_TILE - 1) / TRAIN_TILE);
        args.count += p->tiles;
    }
    return s->driver->run_train(s->gpu, &s->stream, TRAIN_OP_PACK, &args, e);
}

static int put(const struct packing *k, const struct train_pack *p, struct error *e)
{
    struct gpu_packs *w = &k->s->packs;
    if (k->now)
        return run(k->s, p, 1, e);
    pthread_mutex_lock(&w->lock);
    *MEMORY_PUSH(w->waiting, w->count, w->capacity) = *p;
    pthread_mutex_unlock(&w->lock);
    return 0;
}

/* ---- what waits ---- */

/* Any order gives the same weights, but recordings need a fixed order. */
static int compare_packs(const void *a, const void *b)
{
    const uintptr_t first = (uintptr_t)((const struct train_pack *)a)->y,
                    second = (uintptr_t)((const struct train_pack *)b)->y;
    return (first > second) - (first < second);
}

static int run_waiting(void *state, uint32_t index, struct error *e)
{
    struct backend_state *s = state;
    const struct gpu_packs *w = &s->packs;
    int r = 0;
    (void)index;
    for (uint32_t k = 0; k < w->count && r == 0; k += TRAIN_PACKS) {
        const uint32_t left = w->count - k;
        r = run(s, w->waiting + k, left < TRAIN_PACKS ? left : TRAIN_PACKS, e);
    }
    return r;
}

static struct recorded *find_recorded(struct backend_state *s)
{
    struct gpu_packs *w = &s->packs;
    if (!w->recorded) {
        w->recorded = memory_new(1, sizeof *w->recorded);
        w->recorded->segments = 1;
    }
    return gpu_recordings_find(s, w->recorded, w->waiting, w->count * sizeof *w->waiting);
}

/* All steps pack the same arrays, so that one graph serves a run. */
static int run_or_replay(struct backend_state *s, struct error *e)
{
    const struct segment all = {find_recorded(s), 0, run_waiting, s};
    struct error why;
    if (!all.of->repeats)
        return run_waiting(s, 0, e);
    const struct recording *recording = gpu_recording_of(s, &s->stream, &all, &why);
    if (recording)
        return s->driver->replay(s->gpu, &s->stream, recording, e);
    gpu_give_up_graphs(s, &why);
    return run_waiting(s, 0, e);
}

int gpu_repack_end(struct backend_state *s, bool failed, struct error *e)
{
    struct gpu_packs *w = &s->packs;
    int r = 0;
    if (w->count && !failed) {
        qsort(w->waiting, w->count, sizeof *w->waiting, compare_packs);
        r = s->records ? run_or_replay(s, e) : run_waiting(s, 0, e);
    }
    w->count = 0;
    return r;
}

void gpu_packs_finish(struct backend_state *s)
{
    struct gpu_packs *w = &s->packs;
    if (w->recorded)
        gpu_recordings_forget(s, w->recorded);
    free(w->recorded);
    free(w->waiting);
    pthread_mutex_destroy(&w->lock);
}

/* ---- what is packed ---- */

/* Row length for `count` elements: the largest power of two from TRAIN_TILE to 4096 that divides it, else `count`. */
static uint32_t columns_of(uint64_t count)
{
    uint32_t columns = 4096;
    while (columns > TRAIN_TILE && count % columns)
        columns /= 2;
    return count % columns ? (uint32_t)count : columns;
}

/* Packs `count` f32 numbers as elements of a type. */
static int convert(const struct packing *k, enum element type, const float *value,
                   uint64_t count, void *to, struct error *e)
{
    const uint32_t columns = columns_of(count);
    return put(k,
               &(struct train_pack){.rows = (uint32_t)(count / columns),
                                    .columns = columns,
                                    .wide_y = type == ELEMENT_F32,
                                    .row = columns,
                                    .column = 1,
                                    .x = value,
                                    .y = to},
               e);
}

int gpu_refill(struct backend_state *s, void *kept, enum element type, const float *value,
               uint64_t count, struct error *e)
{
    return convert(&(struct packing){s, false}, type, value, count, kept, e);
}

/* Packs a matrix and its bias. Without a bias the zeros of gpu_pack() stay: a linear never gains a bias. */
static int pack(const struct packing *k, const struct linear *l,
                const struct weight_view *weight, const float *bias, struct error *e)
{
    const uint32_t out = l->shape.out;
    const struct train_pack matrix = {.rows = out,
                                      .columns = l->shape.in,
                                      .wide_y = l->shape.x == ELEMENT_F32,
                                      .row = weight->row,
                                      .column = weight->column,
                                      .x = weight->value,
                                      .y = l->packed};
    if (put(k, &matrix, e) < 0)
        return -1;
    if (!bias)
        return 0;
    if (convert(k, ELEMENT_F32, bias, out, l->bias, e) < 0)
        return -1;
    return l->fused_bias == l->bias ? 0 : convert(k, l->shape.y, bias, out, l->fused_bias, e);
}

/* Packs from the host through an array on the device, which is freed before this returns. */
static int pack_from_host(struct backend_state *s, const struct linear *l,
                          const struct weight_view *weight, const float *bias, struct error *e)
{
    const struct training_backend *does = &gpu_training;
    const uint64_t count = (uint64_t)l->shape.in * l->shape.out;
    float *array = does->array_new(s, count + l->shape.out, e);
    const struct weight_view view = {array, weight->row, weight->column, false};
    int r = array ? does->array_write(s, array, count, weight->value, e) : -1;
    if (r == 0 && bias)
        r = does->array_write(s, array + count, l->shape.out, bias, e);
    if (r == 0)
        r = pack(&(struct packing){s, true}, l, &view, bias ? array + count : NULL, e);
    does->array_destroy(s, array);
    return r;
}

int gpu_repack(struct backend_state *s, const struct linear *l,
               const struct weight_view *weight, const float *bias, struct error *e)
{
    return weight->on_host ? pack_from_host(s, l, weight, bias, e)
                           : pack(&(struct packing){s, false}, l, weight, bias, e);
}
