/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/memory.h"
#include "model/comm/nccl/nccl_rank.h"
#include <stdlib.h>

/* Of clusters with networks of 1 Gbit/s. */
const struct nccl_limits nccl_limits = {300, 15, 5e7};

static void begin_sum(const struct comm *c, float *x, uint64_t count)
{
    struct nccl *n = c->context;
    if (n->begun != FINE)
        return;
    nccl_set_limit(n, n->first_sums > 0);
    n->floats += count;
    n->begun = nccl_enter(n, true, &n->error);
    if (n->begun != FINE)
        return;
    n->begun = nccl_begin_sum(n, x, count, &n->error);
    n->device.does->leave(n->device.state);
}

static enum outcome wait_for_sums(struct nccl *n, struct error *e)
{
    enum outcome o = nccl_enter(n, false, e);
    if (o == FINE) {
        o = nccl_settle(n, true, e);
        n->device.does->leave(n->device.state);
    }
    return o;
}

/* First all ranks learn whether each has begun all sums: none waits for sums that another one will never begin. */
static int end_sums(const struct comm *c, int result, struct error *e)
{
    struct nccl *n = c->context;
    enum outcome o = result < 0 ? FAILED : n->begun;
    if (result == 0 && o != FINE)
        *e = n->error;
    n->begun = FINE;
    if (nccl_agree(n, o, e) < 0)
        return -1;
    const int r = nccl_agree(n, wait_for_sums(n, e), e);
    n->floats = 0;
    n->first_sums -= n->first_sums > 0;
    return r;
}

static int move_array(const struct comm *c, const struct comm_move *m, struct error *e)
{
    struct nccl *n = c->context;
    enum outcome o = nccl_enter(n, true, e);
    nccl_set_limit(n, n->first_moves > 0);
    n->first_moves -= n->first_moves > 0;
    n->floats = m->sent_count + m->received_count;
    if (o == FINE) {
        o = nccl_move(n, m, e);
        n->device.does->leave(n->device.state);
    }
    n->floats = 0;
    return nccl_agree(n, o, e);
}

/* Sums of host numbers, by the host communicator. */
#define DEFINE_SUM(name, type)                                                      \
    static int name(const struct comm *c, type *x, uint64_t count, struct error *e) \
    {                                                                               \
        const struct comm *host = ((const struct nccl *)c->context)->host;          \
        return host->name(host, x, count, e);                                       \
    }
DEFINE_SUM(sum_f32, float)
DEFINE_SUM(sum_f64, double)
DEFINE_SUM(sum_u64, uint64_t)

void comm_nccl_close(const struct comm *c, bool failed)
{
    struct nccl *n = c->context;
    nccl_drop(n, !failed);
    n->device.does->array_destroy(n->device.state, n->workspace);
    free(n);
}

static void close(const struct comm *c)
{
    comm_nccl_close(c, false);
}

/* ---- begin ---- */

static int share_id(const struct nccl *n, struct nccl_id *ret, struct error *e)
{
    enum outcome o = FINE;
    if (n->host->rank == 0)
        o = NCCL_CALL(ncclGetUniqueId, ret);
    return comm_follow(n->host, o == FINE ? 0 : -1, e) < 0
               ? -1
               : n->host->sum_u64(n->host, (uint64_t *)(void *)ret->bytes,
                                  sizeof ret->bytes / sizeof(uint64_t), e);
}

static enum outcome begin(struct nccl *n, const struct nccl_id *id, struct error *e)
{
    struct nccl_config config = {sizeof config, NCCL_CONFIG_MAGIC, NCCL_CONFIG_VERSION, 0};
    if (n->device.does->enter(n->device.state, &n->stream, e) < 0)
        return FAILED;
    enum outcome o = NCCL_CALL(ncclCommInitRankConfig, &n->handle, (int)n->host->size, *id,
                               (int)n->host->rank, &config);
    if (o == FINE)
        o = nccl_settle(n, false, e);
    n->device.does->leave(n->device.state);
    return o;
}

/* A small sum connects all ranks. Otherwise the first sum of a step would do so, and wait for the slowest rank. NCCL may connect them
   otherwise for sums of other sizes, in the first step. */
static int connect(struct nccl *n, struct error *e)
{
    const struct training_device *d = &n->device;
    const uint64_t count = (uint64_t)n->comm.size * NCCL_SHARE_UNIT;
    float *x = d->does->array_new(d->state, count, e);
    if (x)
        n->comm.begin_sum(&n->comm, x, count);
    const int r = n->comm.end_sums(&n->comm, x ? 0 : -1, e);
    d->does->array_destroy(d->state, x);
    return r;
}

static int find_library(struct nccl *n, struct error *e)
{
    return n->device.does->enter
               ? nccl_library_open(&n->does, e)
               : error_set(e, ERROR_UNAVAILABLE, "NCCL: needs arrays of a GPU");
}

static int open(struct nccl *n, struct error *e)
{
    _Alignas(uint64_t) struct nccl_id id = {{0}};
    int r = find_library(n, e);
    if (r == 0)
        r = nccl_reserve(n, e);
    if (comm_agree(n->host, r, e) < 0 || share_id(n, &id, e) < 0 ||
        nccl_agree(n, begin(n, &id, e), e) < 0)
        return -1;
    return connect(n, e);
}

const struct comm *comm_nccl(const struct comm *host, const struct training_device *device,
                             const struct nccl_limits *limits, struct error *e)
{
    struct nccl *n = memory_new(1, sizeof *n);
    *n = (struct nccl){.comm = *host,
                       .host = host,
                       .device = *device,
                       .limits = *limits,
                       .first_sums = 2,
                       .first_moves = host->size};
    nccl_set_limit(n, true);
    n->comm.name = "nccl";
    n->comm.context = n;
    n->comm.sum_f32 = sum_f32;
    n->comm.sum_f64 = sum_f64;
    n->comm.sum_u64 = sum_u64;
    n->comm.exchange = NULL;
    n->comm.begin_sum = begin_sum;
    n->comm.end_sums = end_sums;
    n->comm.move_array = move_array;
    n->comm.warn = NULL;
    n->comm.is_warned = NULL;
    n->comm.close = close;
    if (open(n, e) == 0)
        return &n->comm;
    device->does->array_destroy(device->state, n->workspace);
    free(n);
    return NULL;
}
