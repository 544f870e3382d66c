/* SPDX-License-Identifier: Apache-2.0 */
#include "model/comm/nccl/nccl_rank.h"

enum { TREE_RANKS = 4 };

/* True where a step's sums have the bits of one rank's (model/train/part_sums.h). */
static bool adds_in_tree(const struct nccl *n)
{
    const uint32_t size = n->comm.size;
    return size > 1 && size <= TREE_RANKS && (size & (size - 1)) == 0;
}

static uint64_t share_of(const struct nccl *n, uint64_t count)
{
    const uint64_t each = (count + n->comm.size - 1) / n->comm.size;
    return (each + NCCL_SHARE_UNIT - 1) / NCCL_SHARE_UNIT * NCCL_SHARE_UNIT;
}

int nccl_reserve(struct nccl *n, struct error *e)
{
    const struct training_device *d = &n->device;
    if (adds_in_tree(n))
        n->workspace = d->does->array_new(d->state, n->comm.size * share_of(n, NCCL_BUCKET), e);
    return adds_in_tree(n) && !n->workspace ? -1 : 0;
}

/* ---- a bucket, by the tree ---- */

/* Cut into a share for each rank; the last ones may be short or empty. */
struct bucket {
    float *x;
    uint64_t count, share;
};

static uint64_t first_of(const struct bucket *b, uint32_t rank)
{
    const uint64_t at = rank * b->share;
    return at < b->count ? at : b->count;
}

static uint64_t count_of(const struct bucket *b, uint32_t rank)
{
    return first_of(b, rank + 1) - first_of(b, rank);
}

/* Rank k's part of the sum of this rank's share: this rank's is in the bucket, those of others in the workspace. */
static float *part_of(const struct nccl *n, const struct bucket *b, uint32_t k)
{
    return k == n->comm.rank ? b->x + first_of(b, k) : n->workspace + k * b->share;
}

/* A part of rank k's share goes there, and its part of this rank's share comes. */
static enum outcome trade_with(const struct nccl *n, const struct bucket *b, uint32_t k,
                               struct error *e)
{
    const uint64_t own = count_of(b, n->comm.rank), his = count_of(b, k);
    if (his && NCCL_CALL(ncclSend, b->x + first_of(b, k), his, NCCL_FLOAT32, (int)k, n->handle,
                         n->stream) != FINE)
        return FAILED;
    return own ? NCCL_CALL(ncclRecv, part_of(n, b, k), own, NCCL_FLOAT32, (int)k, n->handle,
                           n->stream)
               : FINE;
}

static enum outcome trade(const struct nccl *n, const struct bucket *b, struct error *e)
{
    enum outcome o = nccl_begin_group(n, e);
    if (o != FINE)
        return o;
    for (uint32_t k = 0; k < n->comm.size && o == FINE; k++)
        if (k != n->comm.rank)
            o = trade_with(n, b, k, e);
    return nccl_end_group(n, o, false, e);
}

/* Sums all ranks' parts of this rank's share, in the tree's order, to where rank 0's part was. */
static enum outcome add(const struct nccl *n, const struct bucket *b, struct error *e)
{
    const struct training_device *d = &n->device;
    const uint64_t own = count_of(b, n->comm.rank);
    for (uint32_t distance = 1; own && distance < n->comm.size; distance *= 2)
        for (uint32_t k = 0; k < n->comm.size; k += 2 * distance)
            if (d->does->drain_beside(d->state, part_of(n, b, k), part_of(n, b, k + distance),
                                      own, e) < 0)
                return FAILED;
    return FINE;
}

static enum outcome spread(const struct nccl *n, const struct bucket *b, struct error *e)
{
    enum outcome o = nccl_begin_group(n, e);
    if (o != FINE)
        return o;
    for (uint32_t k = 0; k < n->comm.size && o == FINE; k++) {
        float *to = b->x + first_of(b, k);
        if (count_of(b, k))
            o = NCCL_CALL(ncclBroadcast, k == n->comm.rank ? part_of(n, b, 0) : to, to,
                          count_of(b, k), NCCL_FLOAT32, (int)k, n->handle, n->stream);
    }
    return nccl_end_group(n, o, false, e);
}

static enum outcome sum_by_tree(const struct nccl *n, const struct bucket *b, struct error *e)
{
    enum outcome o = trade(n, b, e);
    if (o == FINE)
        o = add(n, b, e);
    return o == FINE ? spread(n, b, e) : o;
}

/* ---- the whole ---- */

static enum outcome sum_by_nccl(const struct nccl *n, const struct bucket *b, struct error *e)
{
    const enum outcome o = NCCL_CALL(ncclAllReduce, b->x, b->x, b->count, NCCL_FLOAT32,
                                     NCCL_SUM, n->handle, n->stream);
    return o == FINE ? nccl_settle(n, false, e) : o;
}

enum outcome nccl_begin_sum(struct nccl *n, float *x, uint64_t count, struct error *e)
{
    enum outcome o = FINE;
    for (uint64_t at = 0; at < count && o == FINE; at += NCCL_BUCKET) {
        const uint64_t left = count - at < NCCL_BUCKET ? count - at : NCCL_BUCKET;
        const struct bucket b = {x + at, left, share_of(n, left)};
        o = (adds_in_tree(n) ? sum_by_tree : sum_by_nccl)(n, &b, e);
    }
    return o;
}

enum outcome nccl_move(struct nccl *n, const struct comm_move *m, struct error *e)
{
    const bool sends = m->to < n->comm.size && m->sent_count,
               receives = m->from < n->comm.size && m->received_count;
    if (!sends && !receives)
        return FINE;
    enum outcome o = nccl_begin_group(n, e);
    if (o != FINE)
        return o;
    if (sends)
        o = NCCL_CALL(ncclSend, m->sent, m->sent_count, NCCL_FLOAT32, (int)m->to, n->handle,
                      n->stream);
    if (receives && o == FINE)
        o = NCCL_CALL(ncclRecv, m->received, m->received_count, NCCL_FLOAT32, (int)m->from,
                      n->handle, n->stream);
    return nccl_end_group(n, o, true, e);
}
