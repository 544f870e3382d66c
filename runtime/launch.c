/* SPDX-License-Identifier: Apache-2.0 */
/* One launch, the same on every device: what the caller gave is checked, defaults are filled in, the
   workspace is divided, and each slice of the batch goes to the device with all its phases.
   Nothing is allocated, nothing is waited for. */
#include "runtime/kernel.h"
#include <math.h>
#include <string.h>

/* Operands are packed once per slice of the batch and read back often: this much for each worker
   stays in its core's cache, together with the tensors' rows. */
static const uint64_t slice_bytes_of_worker = UINT64_C(512) << 10;

__extension__ typedef unsigned __int128
    wide; /* products of sizes before they are known to fit */

/* ---- sizes ---- */

struct shape {
    uint32_t batch, n, slice, workers, soft_chunks;
    uint64_t state_rows, seats, pack_stride, partial_at, scratch_stride;
    uint64_t state, soft, pack, scratch; /* bytes of each part; UINT64_MAX: does not fit */
    uint64_t total;
};

static uint64_t narrow(wide bytes)
{
    wide rounded = (bytes + 63) / 64 * 64;
    return rounded > UINT64_MAX / 4 ? UINT64_MAX : (uint64_t)rounded;
}

static uint32_t widest_item(const struct maskc_kernel *k, bool backward)
{
    const struct artifact_plan *p = &k->artifact->plan[k->target->plan];
    uint32_t forward = p->forward.max_cols, transposed = p->transposed.max_cols;
    return backward && transposed > forward ? transposed : forward;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Of the layer that has most. */
static uint64_t most_works(const struct maskc_kernel *k)
{
    const struct plan_pass *p = &k->artifact->plan[k->target->plan].forward;
    uint64_t most = 0;
    for (uint32_t l = 0; l < k->artifact->mask->layers; l++)
        most = p->layer_work[l][1] > most ? p->layer_work[l][1] : most;
    return most;
}

static bool has_partials(const struct maskc_kernel *k)
{
    const struct artifact_plan *p = &k->artifact->plan[k->target->plan];
    return (p->forward.uses | p->transposed.uses) & ABI_PARTIAL;
}

static uint64_t most_seats(const struct maskc_kernel *k)
{
    const struct artifact_plan *p = &k->artifact->plan[k->target->plan];
    uint32_t forward = p->forward.seats, transposed = p->transposed.seats;
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

/* ---- the gradient of a soft mask ---- */

/* A GPU's blocks each own a tile of dX and a chunk of the batch, and add up the chunks later. */
static bool has_tiles(const struct launch_record *r)
{
    for (uint32_t k = 0; k < r->n_backward; k++)
        if (r->backward[k].over == ABI_OVER_SOFT)
            return true;
    return false;
}

/* As many chunks as give every processor tiles, of two sequences at least: the same for all GPUs and any
   number of blocks, since sums are to be the same. At most 32 MiB then, or dX itself. */
static uint32_t soft_chunks(const struct mask *m, uint32_t batch)
{
    enum { TILE = 64, TILES = 1024 };
    uint64_t side = (m->n + TILE - 1) / TILE, tiles = side * side * m->heads;
    uint64_t chunks = (TILES + tiles - 1) / tiles;
    uint32_t most = batch / 2 + batch % 2;
    return chunks < most ? (uint32_t)chunks : most;
}

/* Bytes for what is to be added up; dX itself is such room where it is asked for and not divided. */
static uint64_t soft_bytes(const struct maskc_kernel *k, const struct maskc_launch *l,
                           uint32_t chunks)
{
    const struct mask *m = k->artifact->mask;
    if (!k->artifact->features.soft || l->pass != MASKC_BACKWARD)
        return 0;
    if (!has_tiles(&k->target->launch))
        return narrow((wide)most_works(k) * (m->n + ABI_TILE_COLS) * 4);
    return chunks == 1 && l->grad_soft ? 0 : narrow((wide)chunks * m->heads * m->n * m->n * 4);
}

static struct shape measure(const struct maskc_kernel *k, const struct maskc_launch *l)
{
    const struct launch_record *r = &k->target->launch;
    const bool backward = l->pass == MASKC_BACKWARD;
    const uint32_t heads = k->artifact->mask->heads;
    struct shape s = {
        .batch = l->batch ? l->batch : 1,
        .n = l->length ? l->length : k->artifact->mask->n,
        .workers = k->device->workers(k->code, l->threads),
    };
    s.state_rows = ((uint64_t)s.n + 31) / 32 * 32 + 32;
    s.pack_stride = s.partial_at = r->pack_row * s.state_rows;
    s.seats = most_seats(k);
    if (has_partials(k))
        s.pack_stride += (r->partial_row * (s.state_rows + s.seats) + 63) / 64 * 64;
    s.scratch_stride =
        narrow((wide)r->scratch_fixed + (wide)r->scratch_col * widest_item(k, backward));
    s.slice = slice_of(k, s.batch, s.workers, (wide)s.pack_stride * heads);
    s.state = backward ? narrow((wide)r->state_row * s.batch * heads * s.state_rows) : 0;
    s.soft_chunks = soft_chunks(k->artifact->mask, s.batch);
    s.soft = soft_bytes(k, l, s.soft_chunks);
    s.pack = narrow((wide)s.pack_stride * larger((uint64_t)s.slice * heads, s.workers));
    s.scratch = narrow((wide)s.scratch_stride * s.workers);
    s.total = narrow((wide)s.state + s.soft + s.pack + s.scratch);
    if ((wide)s.batch * heads > INT32_MAX) /* kernels count heads in 32 bits */
        s.total = UINT64_MAX;
    return s;
}

uint64_t launch_workspace(const struct maskc_kernel *k, const struct maskc_launch *l)
{
    return measure(k, l).total;
}

/* ---- checks ---- */

struct context {
    const struct maskc_kernel *k;
    const struct maskc_launch *l;
    struct shape shape;
    struct error *e;
};

static int refuse(const struct context *c, const char *what)
{
    return error_set(c->e, ERROR_INPUT, "launch: %s", what);
}

static int check_sizes(const struct context *c)
{
    const struct mask *m = c->k->artifact->mask;
    const struct maskc_launch *l = c->l;
    if (l->pass != MASKC_FORWARD && l->pass != MASKC_BACKWARD)
        return refuse(c, "pass is neither MASKC_FORWARD nor MASKC_BACKWARD");
    if (l->pass == MASKC_BACKWARD && !c->k->artifact->features.backward)
        return refuse(c, "the kernel was compiled forward only");
    if (c->shape.n > m->n)
        return error_set(c->e, ERROR_INPUT, "launch: length %u is larger than the mask's %u",
                         c->shape.n, m->n);
    if (l->layer >= m->layers)
        return error_set(c->e, ERROR_INPUT, "launch: layer %u is out of range, the mask has %u",
                         l->layer, m->layers);
    return c->shape.batch > INT32_MAX ? refuse(c, "batch is out of range") : 0;
}

static int check_packed(const struct context *c)
{
    const struct maskc_launch *l = c->l;
    if (!l->offsets)
        return l->tokens ? refuse(c, "tokens is for packed batches, but offsets is null") : 0;
    if (l->lengths)
        return refuse(c, "lengths and offsets exclude each other");
    if (l->tokens > INT32_MAX || l->tokens > (uint64_t)c->shape.batch * c->shape.n)
        return refuse(c, "tokens is more than batch sequences of this length hold");
    return 0;
}

/* Where the arrays can be read, wrong ones are refused; a GPU clamps them. */
static int check_lengths(const struct context *c)
{
    const struct maskc_launch *l = c->l;
    if (!c->k->device->host_memory)
        return 0;
    for (uint32_t b = 0; l->lengths && b < c->shape.batch; b++)
        if (l->lengths[b] < 0 || (uint32_t)l->lengths[b] > c->shape.n)
            return error_set(c->e, ERROR_INPUT, "launch: lengths[%u] = %d is not in 0..%u", b,
                             l->lengths[b], c->shape.n);
    if (!l->offsets)
        return 0;
    for (uint32_t b = 0; b < c->shape.batch; b++)
        if (l->offsets[b] < 0 || l->offsets[b + 1] < l->offsets[b] ||
            (uint32_t)(l->offsets[b + 1] - l->offsets[b]) > c->shape.n)
            return error_set(c->e, ERROR_INPUT,
                             "launch: offsets[%u..%u] = %d, %d is not a sequence of 0..%u rows",
                             b, b + 1, l->offsets[b], l->offsets[b + 1], c->shape.n);
    if (l->offsets[0] != 0 || (uint64_t)l->offsets[c->shape.batch] != l->tokens)
        return refuse(c, "offsets do not go from 0 to tokens");
    return 0;
}

static int check_numbers(const struct context *c)
{
    if (!isfinite(c->l->scale))
        return refuse(c, "scale is not a finite number");
    if (!(c->l->dropout >= 0 && c->l->dropout < 1))
        return refuse(c, "dropout is not in 0 <= p < 1");
    if (c->l->dropout > 0 && !c->k->artifact->features.dropout)
        return refuse(c, "dropout, but the kernel was compiled without it");
    if (c->l->dropout * 65536 >= 65535.5)
        return refuse(c, "dropout would drop everything");
    return 0;
}

static int check_workspace(const struct context *c)
{
    const struct maskc_launch *l = c->l;
    if (c->shape.total == UINT64_MAX)
        return refuse(c, "the batch is too large");
    if (l->workspace_bytes < c->shape.total)
        return error_set(
            c->e, ERROR_INPUT,
            "launch: workspace_bytes is %llu, maskc_workspace_bytes() asks for %llu",
            (unsigned long long)l->workspace_bytes, (unsigned long long)c->shape.total);
    if (c->shape.total && (!l->workspace || (uintptr_t)l->workspace % 64))
        return refuse(c, "workspace is null or not aligned to 64 bytes");
    return 0;
}

/* ---- tensors ---- */

enum { WRITTEN_FORWARD = 1, WRITTEN_BACKWARD = 2, READ_FORWARD = 4, READ_BACKWARD = 8 };

struct operand {
    const char *name;
    size_t given, args; /* where it stands in the two structs */
    int use;
};

/* clang-format off */
#define OPERAND(name, to) #name, offsetof(struct maskc_launch, name), offsetof(struct abi_args, to)
static const struct operand operands[] = {
    {OPERAND(query, q),        READ_FORWARD | READ_BACKWARD},
    {OPERAND(key, k),          READ_FORWARD | READ_BACKWARD},
    {OPERAND(value, v),        READ_FORWARD | READ_BACKWARD},
    {OPERAND(out, o),          WRITTEN_FORWARD | READ_BACKWARD},
    {OPERAND(grad_out, d_o),   READ_BACKWARD},
    {OPERAND(grad_query, d_q), WRITTEN_BACKWARD},
    {OPERAND(grad_key, d_k),   WRITTEN_BACKWARD},
    {OPERAND(grad_value, d_v), WRITTEN_BACKWARD},
};
/* clang-format on */

static uint64_t magnitude(int64_t stride)
{
    return stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
}

static struct abi_tensor with_defaults(const struct context *c, struct maskc_tensor t)
{
    const int64_t d = c->k->artifact->features.head_dim, heads = c->k->artifact->mask->heads;
    struct abi_tensor r = {t.data, t.batch, t.row, t.head};
    if (t.batch == 0 && t.row == 0 && t.head == 0) {
        r.head = d;
        r.row = d * heads;
        r.batch = r.row * c->shape.n;
    }
    if (c->l->offsets)
        r.batch = 0;
    return r;
}

/* Steps of one dimension: a whole number of 16 bytes, ends within 63 bits, and where the tensor is
   written no two elements in one place. */
static bool step_fits(const struct context *c, int64_t stride, uint64_t count, bool written)
{
    const uint32_t bytes = dtype_bytes(c->k->artifact->features.dtype);
    const uint64_t step = magnitude(stride);
    if (count < 2)
        return true;
    return (wide)step * bytes % 16 == 0 && (wide)step * bytes * count < (wide)1 << 60 &&
           (!written || step >= c->k->artifact->features.head_dim);
}

static int check_operand(const struct context *c, const struct operand *o, struct abi_tensor t,
                         bool written)
{
    const uint64_t rows = c->l->offsets ? c->l->tokens : c->shape.n;
    if (!t.data)
        return error_set(c->e, ERROR_INPUT, "launch: %s is null", o->name);
    if ((uintptr_t)t.data % 16)
        return error_set(c->e, ERROR_INPUT, "launch: %s is not aligned to 16 bytes", o->name);
    if (!step_fits(c, t.head, c->k->artifact->mask->heads, written) ||
        !step_fits(c, t.row, rows, written) ||
        !step_fits(c, t.batch, c->l->offsets ? 1 : c->shape.batch, written))
        return error_set(
            c->e, ERROR_INPUT,
            "launch: %s has strides (%lld, %lld, %lld) that are not multiples of 16 "
            "bytes, overlap or are out of range",
            o->name, (long long)t.batch, (long long)t.row, (long long)t.head);
    return 0;
}

static int fill_tensors(const struct context *c, struct abi_args *a)
{
    const bool backward = c->l->pass == MASKC_BACKWARD;
    const int read = backward ? READ_BACKWARD : READ_FORWARD;
    const int written = backward ? WRITTEN_BACKWARD : WRITTEN_FORWARD;
    for (size_t k = 0; k < sizeof operands / sizeof *operands; k++) {
        const struct operand *o = &operands[k];
        struct maskc_tensor given;
        if (!(o->use & (read | written)))
            continue;
        memcpy(&given, (const char *)c->l + o->given, sizeof given);
        struct abi_tensor t = with_defaults(c, given);
        if (check_operand(c, o, t, o->use & written) < 0)
            return -1;
        memcpy((char *)a + o->args, &t, sizeof t);
    }
    if (!c->l->lse || (uintptr_t)c->l->lse % sizeof(float))
        return refuse(c, "lse is null or not aligned to 4 bytes");
    return 0;
}

/* ---- the soft mask ---- */

static int fill_soft(const struct context *c, struct abi_args *a)
{
    const struct maskc_launch *l = c->l;
    const bool backward = l->pass == MASKC_BACKWARD;
    const void *given[] = {l->soft, l->grad_soft, l->grad_soft_diagonals};
    for (int k = 0; k < 3; k++)
        if ((uintptr_t)given[k] % sizeof(float))
            return refuse(c, "soft or its gradient is not aligned to 4 bytes");
    if (!c->k->artifact->features.soft) {
        return given[0] || given[1] || given[2]
                   ? refuse(c, "a soft mask, but the kernel was compiled without one")
                   : 0;
    }
    if (!l->soft)
        return refuse(c, "soft is null, but the kernel was compiled with a soft mask");
    a->soft = l->soft;
    a->d_soft = backward ? l->grad_soft : NULL;
    a->d_diagonal = backward ? l->grad_soft_diagonals : NULL;
    a->soft_chunks = a->d_soft || a->d_diagonal ? c->shape.soft_chunks : 0;
    return 0;
}

/* ---- arguments ---- */

static void fill_lse(const struct context *c, struct abi_args *a)
{
    a->lse = c->l->lse;
    a->lse_head = c->l->offsets ? (i64)c->l->tokens : (i64)c->shape.n;
    a->lse_batch = c->l->offsets ? 0 : a->lse_head * a->heads;
}

static void fill_workspace(const struct context *c, struct abi_args *a)
{
    u8 *at = c->l->workspace;
    a->state_rows = c->shape.state_rows;
    a->pack_stride = c->shape.pack_stride;
    a->partial_at = c->shape.partial_at;
    a->seats = c->shape.seats;
    a->scratch_stride = c->shape.scratch_stride;
    if (!c->shape.total)
        return;
    a->state = c->shape.state ? (float *)(void *)at : NULL;
    at += c->shape.state;
    a->soft_part = c->shape.soft ? (float *)(void *)at : a->d_soft;
    at += c->shape.soft;
    a->pack = c->shape.pack ? at : NULL;
    at += c->shape.pack;
    a->scratch = c->shape.scratch ? at : NULL;
}

static void fill_dropout(const struct context *c, struct abi_args *a)
{
    a->keep_below = (u32)lrintf(c->l->dropout * 65536);
    a->keep_scale = 65536.0f / (float)(65536 - a->keep_below);
    a->seed = c->l->seed;
}

static int fill_args(const struct context *c, struct abi_args *a)
{
    const struct artifact *f = c->k->artifact;
    *a = (struct abi_args){
        .length = c->l->lengths,
        .offsets = c->l->offsets,
        .batch = c->shape.batch,
        .heads = f->mask->heads,
        .n = c->shape.n,
        .scale = c->l->scale != 0 ? c->l->scale : 1 / sqrtf((float)f->features.head_dim),
        .lambda = f->features.lambda,
    };
    if (fill_tensors(c, a) < 0 || fill_soft(c, a) < 0)
        return -1;
    fill_lse(c, a);
    fill_workspace(c, a);
    fill_dropout(c, a);
    c->k->device->tables(c->k->code, false, c->l->layer, &a->forward);
    if (f->features.backward)
        c->k->device->tables(c->k->code, true, c->l->layer, &a->transposed);
    return 0;
}

/* ---- run ---- */

static int run_slices(const struct context *c, struct device_launch *d)
{
    const struct device *device = c->k->device;
    d->args.slice_batch = c->shape.batch;
    if (c->shape.slice < c->shape.batch && !(device->whole && device->whole(d)))
        d->args.slice_batch = c->shape.slice;
    for (uint32_t first = 0; first < c->shape.batch; first += d->args.slice_batch) {
        uint32_t left = c->shape.batch - first;
        d->args.first_batch = first;
        d->args.slice_batch = left < d->args.slice_batch ? left : d->args.slice_batch;
        if (device->launch(c->k->code, d, c->e) < 0)
            return -1;
    }
    return 0;
}

int launch_run(const struct maskc_kernel *k, const struct maskc_launch *l, struct error *e)
{
    const struct launch_record *r = &k->target->launch;
    const struct context c = {k, l, measure(k, l), e};
    if (check_sizes(&c) < 0 || check_packed(&c) < 0 || check_numbers(&c) < 0 ||
        check_lengths(&c) < 0 || check_workspace(&c) < 0)
        return -1;
    struct device_launch d = {
        .phases = l->pass == MASKC_BACKWARD ? r->backward : r->forward,
        .n_phases = l->pass == MASKC_BACKWARD ? r->n_backward : r->n_forward,
        .scratch_bytes = c.shape.scratch,
        .workers = c.shape.workers,
        .stream = l->stream,
    };
    return fill_args(&c, &d.args) < 0 ? -1 : run_slices(&c, &d);
}
