/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/step/shards.h"
#include "masks/base/memory.h"
#include <stdlib.h>

/* Where the first piece that is not before an element begins. */
static uint64_t begin_of_piece(const struct train_state *s, uint64_t at)
{
    for (uint32_t k = 0; k < s->pieces; k++)
        if (s->piece[k].first >= at)
            return s->piece[k].first;
    return s->count;
}

/* Where the block of the norm that has an element begins. */
static uint64_t begin_of_block(const struct train_state *s, uint64_t at)
{
    uint64_t first = 0;
    for (uint32_t k = 0; k < s->pieces && s->piece[k].first <= at; k++)
        first = s->piece[k].first;
    return first + (at - first) / NORM_BLOCK * NORM_BLOCK;
}

static uint64_t begin_of(const struct train_state *s, bool whole_pieces, uint32_t rank,
                         uint32_t ranks)
{
    const uint64_t at = s->count / PIECE_ALIGN * rank / ranks * PIECE_ALIGN;
    if (rank == ranks)
        return s->count;
    return whole_pieces ? begin_of_piece(s, at) : begin_of_block(s, at);
}

struct span shard_of(const struct train_state *s, bool whole_pieces, uint32_t rank,
                     uint32_t ranks)
{
    const uint64_t first = begin_of(s, whole_pieces, rank, ranks);
    return (struct span){first, begin_of(s, whole_pieces, rank + 1, ranks) - first};
}

/* ---- moving ---- */

/* Rest of a count, at most a bucket. */
static uint64_t left(uint64_t count, uint64_t at)
{
    return at >= count ? 0 : count - at < COMM_BUCKET ? count - at : COMM_BUCKET;
}

/* True if ranks move arrays by way of copies on the host. */
static bool is_far(const struct comm *c, const struct train_state *s, float *array)
{
    return !c->move_array && !s->device.does->array_host(s->device.state, array);
}

/* Arrays that the host cannot reach go through copies [2][COMM_BUCKET]. */
static int move_bucket(const struct comm *c, const struct training_device *d,
                       const struct comm_move *m, uint64_t at, float *copies, struct error *e)
{
    const uint64_t sent = left(m->sent_count, at), received = left(m->received_count, at);
    const struct comm_move part = {sent ? m->to : c->size,
                                   received ? m->from : c->size,
                                   copies || !sent ? copies : m->sent + at,
                                   copies     ? copies + COMM_BUCKET
                                   : received ? m->received + at
                                              : NULL,
                                   sent,
                                   received};
    if (copies && sent && d->does->array_read(d->state, m->sent + at, sent, part.sent, e) < 0)
        return -1;
    if (c->exchange(c, &part, e) < 0)
        return -1;
    return copies && received
               ? d->does->array_write(d->state, m->received + at, received, part.received, e)
               : 0;
}

static int move(const struct comm *c, const struct training_device *d,
                const struct comm_move *m, bool far, struct error *e)
{
    if (c->move_array)
        return c->move_array(c, m, e);
    float *copies = far ? memory_new((size_t)2 * COMM_BUCKET, sizeof *copies) : NULL;
    const uint64_t most = m->sent_count > m->received_count ? m->sent_count : m->received_count;
    int r = 0;
    for (uint64_t at = 0; at < most && r == 0; at += COMM_BUCKET)
        r = move_bucket(c, d, m, at, copies, e);
    free(copies);
    return r;
}

int shards_gather(const struct comm *c, const struct train_state *s, bool whole_pieces,
                  struct error *e)
{
    const bool far = is_far(c, s, s->value);
    for (uint32_t step = 1; step < c->size; step++) {
        const uint32_t to = (c->rank + step) % c->size,
                       from = (c->rank + c->size - step) % c->size;
        const struct span his = shard_of(s, whole_pieces, from, c->size);
        const struct comm_move m = {
            to,       from, s->value + s->moments.first, s->value + his.first, s->moments.count,
            his.count};
        if (move(c, &s->device, &m, far, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- all moments on rank 0 ---- */

static int copy_own(const struct train_state *s, float *to, const float *from, struct error *e)
{
    const struct training_device *d = &s->device;
    float *copy = memory_new(COMM_BUCKET, sizeof *copy);
    int r = 0;
    for (uint64_t at = 0, n; (n = left(s->moments.count, at)) && r == 0; at += COMM_BUCKET) {
        r = d->does->array_read(d->state, from + at, n, copy, e);
        if (r == 0)
            r = d->does->array_write(d->state, to + s->moments.first + at, n, copy, e);
    }
    free(copy);
    return r;
}

static int collect(const struct comm *c, const struct train_state *s, bool whole_pieces,
                   float *all, float *own, struct error *e)
{
    const bool far = is_far(c, s, own);
    const bool first = c->rank == 0;
    if (first && copy_own(s, all, own, e) < 0)
        return -1;
    for (uint32_t k = 1; k < c->size; k++) {
        const struct span his = shard_of(s, whole_pieces, k, c->size);
        const bool sends = c->rank == k;
        const struct comm_move m = {
            sends ? 0 : c->size,   first ? k : c->size,  own, first ? all + his.first : NULL,
            sends ? his.count : 0, first ? his.count : 0};
        if (move(c, &s->device, &m, far, e) < 0)
            return -1;
    }
    return 0;
}

int shards_collect(const struct comm *c, const struct train_state *s, bool whole_pieces,
                   struct train_state *ret, struct error *e)
{
    float *own[] = {s->first_moment, s->second_moment}, *all[2] = {NULL};
    int r = 0;
    *ret = *s;
    ret->moments = (struct span){0, s->count};
    for (int k = 0; k < 2 && !c->rank && r == 0; k++) {
        all[k] = s->device.does->array_new(s->device.state, s->count, e);
        r = all[k] ? 0 : -1;
    }
    ret->first_moment = all[0];
    ret->second_moment = all[1];
    if (comm_agree(c, r, e) < 0)
        return -1;
    for (int k = 0; k < 2 && r == 0; k++)
        r = collect(c, s, whole_pieces, all[k], own[k], e);
    return r;
}

void shards_drop(struct train_state *s)
{
    if (s->first_moment)
        s->device.does->array_destroy(s->device.state, s->first_moment);
    if (s->second_moment)
        s->device.does->array_destroy(s->device.state, s->second_moment);
    *s = (struct train_state){0};
}
