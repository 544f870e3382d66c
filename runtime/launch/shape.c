/* SPDX-License-Identifier: Apache-2.0 */
/* Number of sequences of the batch that are done together, and bytes of workspace for them. LAUNCH.md has the
   formulas. */
#include "gen/key_shape.h"
#include "runtime/launch/steps.h"

/* Packed operands of a slice, for each worker: so much stays in a core's cache beside the tensors' rows.
   They are packed once and read often. */
static const uint64_t slice_bytes_of_worker = UINT64_C(512) << 10;

static uint64_t narrow(wide bytes)
{
    wide rounded = (bytes + 63) / 64 * 64;
    return rounded > UINT64_MAX / 4 ? UINT64_MAX : (uint64_t)rounded;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t widest_item(const struct maskc_kernel *k, bool backward)
{
    const struct artifact_plan *p = &k->artifact->plan[k->target->plan];
    uint64_t cols = larger(p->forward.max_cols, p->forward.panel_cols);
    return backward ? larger(cols, larger(p->transposed.max_cols, p->transposed.panel_cols))
                    : cols;
}

/* Works of the layer that has the most. */
static uint64_t most_works(const struct maskc_kernel *k, const struct plan_pass *p)
{
    uint64_t most = 0;
    for (uint32_t l = 0; l < k->artifact->mask->layers; l++)
        most = p->layer_work[l][1] > most ? p->layer_work[l][1] : most;
    return most;
}

/* The same, of the passes that the kernel has. */
static uint64_t most_items(const struct maskc_kernel *k)
{
    const struct artifact_plan *p = &k->artifact->plan[k->target->plan];
    const uint64_t forward = most_works(k, &p->forward);
    if (!k->artifact->request.backward)
        return forward;
    return larger(forward, most_works(k, &p->transposed));
}

static bool has_splits(const struct maskc_kernel *k)
{
    const struct artifact_plan *p = &k->artifact->plan[k->target->plan];
    return (p->forward.uses | p->transposed.uses) & ABI_SPLIT;
}

static uint64_t most_partial_slots(const struct maskc_kernel *k)
{
    const struct artifact_plan *p = &k->artifact->plan[k->target->plan];
    uint32_t forward = p->forward.partial_slots, transposed = p->transposed.partial_slots;
    return transposed > forward ? transposed : forward;
}

/* Sequences that are worked on together. */
static uint32_t slice_of(const struct maskc_kernel *k, uint32_t batch, uint32_t workers,
                         wide bytes_each)
{
    if (!k->device->slices || bytes_each == 0)
        return batch;
    wide fit = (wide)slice_bytes_of_worker * workers / bytes_each;
    return fit < 1 ? 1 : fit < batch ? (uint32_t)fit : batch;
}

/* ---- the gradient of a bias ---- */

/* On a GPU a block sums a tile of dX over one chunk of the batch; a later phase adds up the chunks. */
static bool has_tiles(const struct launch_record *r)
{
    for (uint32_t k = 0; k < r->n_backward; k++)
        if (r->backward[k].over == ABI_OVER_BIAS)
            return true;
    return false;
}

/* Chunks of the batch: enough that every processor has tiles, at most one for every two sequences, rounded up. The
   number follows from the shape alone, so that sums are the same on every GPU. Partial sums then take 32 MiB at
   most, or as much as dX. */
static uint32_t bias_chunks(const struct mask *m, uint32_t batch)
{
    enum { TILE = 64, TILES = 1024 };
    uint64_t side = (m->n + TILE - 1) / TILE, tiles = side * side * m->heads;
    uint64_t chunks = (TILES + tiles - 1) / tiles;
    uint32_t most = batch / 2 + batch % 2;
    return chunks < most ? (uint32_t)chunks : most;
}

/* Bytes of the partial sums of dX; none where dX itself is asked for and takes them. */
static uint64_t bias_bytes(const struct maskc_kernel *k, const struct maskc_launch *l,
                           uint32_t chunks)
{
    const struct mask *m = k->artifact->mask;
    if (!k->artifact->request.bias || l->pass != MASKC_BACKWARD)
        return 0;
    if (!has_tiles(&k->target->launch))
        return narrow((wide)most_works(k, &k->artifact->plan[k->target->plan].forward) *
                      (m->n + ABI_TILE_COLS) * 4);
    return chunks == 1 && l->grad_soft ? 0 : narrow((wide)chunks * m->heads * m->n * m->n * 4);
}

/* ---- dK and dV of query heads that share a key head ---- */

wide key_sum_elements(const struct maskc_kernel *k, const struct maskc_launch *l,
                      const struct shape *s)
{
    const wide rows = l->offsets ? (wide)l->tokens : (wide)s->batch * s->keys;
    return rows * k->artifact->mask->heads * k->artifact->request.head_dim;
}

static uint64_t key_sum_bytes(const struct maskc_kernel *k, const struct maskc_launch *l,
                              const struct shape *s)
{
    if (!k->artifact->request.kv_heads || l->pass != MASKC_BACKWARD)
        return 0;
    return narrow(2 * key_sum_elements(k, l, s) * sizeof(float));
}

/* Heads whose packed operands need space at once if each worker packs for itself: on a CPU, for
   each worker, the query heads of one key head. */
static uint64_t packing_heads(const struct maskc_kernel *k, uint32_t workers)
{
    const struct mask *m = k->artifact->mask;
    const uint32_t group = m->heads / request_kv_heads(&k->artifact->request, m);
    return (uint64_t)workers * (k->device->slices ? group : 1);
}

/* The lengths, and n: the larger one. */
static void fill_lengths(const struct maskc_kernel *k, const struct maskc_launch *l,
                         struct shape *s)
{
    const struct kernel_request *r = &k->artifact->request;
    s->queries = l->length ? l->length : request_queries(r, k->artifact->mask);
    s->keys = l->key_length ? l->key_length : r->keys ? r->keys : s->queries;
    s->n = s->keys > s->queries ? s->keys : s->queries;
}

struct shape shape_of(const struct maskc_kernel *k, const struct maskc_launch *l)
{
    const struct launch_record *r = &k->target->launch;
    const bool backward = l->pass == MASKC_BACKWARD;
    const uint32_t heads = k->artifact->mask->heads;
    struct shape s = {
        .batch = l->batch ? l->batch : 1,
        .workers = k->device->workers(k->code, l->threads),
    };
    fill_lengths(k, l, &s);
    s.delta_rows = ((uint64_t)s.n + 31) / 32 * 32 + 32;
    s.pack_stride = s.partial_at = r->pack_row * s.delta_rows;
    s.partial_slots = most_partial_slots(k);
    if (has_splits(k))
        s.pack_stride += (r->partial_row * (s.delta_rows + s.partial_slots) + 63) / 64 * 64;
    s.scratch_stride =
        narrow((wide)r->scratch_fixed + (wide)r->scratch_col * widest_item(k, backward));
    s.slice = slice_of(k, s.batch, s.workers, (wide)s.pack_stride * heads);
    s.state = backward ? narrow((wide)r->delta_row * s.batch * heads * s.delta_rows) : 0;
    s.bias_chunks = bias_chunks(k->artifact->mask, s.batch);
    s.bias = bias_bytes(k, l, s.bias_chunks);
    s.key_sums = key_sum_bytes(k, l, &s);
    s.pack = narrow((wide)s.pack_stride *
                    larger((uint64_t)s.slice * heads, packing_heads(k, s.workers)));
    s.scratch = narrow((wide)s.scratch_stride * s.workers);
    s.total = narrow((wide)s.state + s.bias + s.key_sums + s.pack + s.scratch);
    /* kernels count heads and items in 32 bits */
    if ((wide)s.batch * larger(heads, most_items(k)) > INT32_MAX)
        s.total = UINT64_MAX;
    return s;
}
