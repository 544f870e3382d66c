/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/memory.h"
#include "model/comm/nccl/nccl_rank.h"
#include <stdlib.h>

static int sum_array(const struct comm *c, float *x, uint64_t count, struct error *e)
{
    struct nccl *n = c->context;
    enum outcome o = nccl_enter(n, e);
    if (o == FINE) {
        o = nccl_sum(n, x, count, e);
        n->device.does->leave(n->device.state);
    }
    return nccl_agree(n, o, e);
}

static int move_array(const struct comm *c, const struct comm_move *m, struct error *e)
{
    struct nccl *n = c->context;
    enum outcome o = nccl_enter(n, e);
    if (o == FINE) {
        o = nccl_move(n, m, e);
        n->device.does->leave(n->device.state);
    }
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

static int open(struct nccl *n, struct error *e)
{
    _Alignas(uint64_t) struct nccl_id id = {{0}};
    const struct training_device *d = &n->device;
    int r = d->does->enter ? nccl_library_open(&n->does, e)
                           : error_set(e, ERROR_UNAVAILABLE, "NCCL: needs arrays of a GPU");
    return comm_agree(n->host, r, e) < 0 || share_id(n, &id, e) < 0
               ? -1
               : nccl_agree(n, begin(n, &id, e), e);
}

const struct comm *comm_nccl(const struct comm *host, const struct training_device *device,
                             double seconds, struct error *e)
{
    struct nccl *n = memory_new(1, sizeof *n);
    *n = (struct nccl){.comm = *host, .host = host, .device = *device, .seconds = seconds};
    n->comm.name = "nccl";
    n->comm.context = n;
    n->comm.sum_f32 = sum_f32;
    n->comm.sum_f64 = sum_f64;
    n->comm.sum_u64 = sum_u64;
    n->comm.exchange = NULL;
    n->comm.sum_array = sum_array;
    n->comm.move_array = move_array;
    n->comm.close = close;
    if (open(n, e) == 0)
        return &n->comm;
    free(n);
    return NULL;
}
