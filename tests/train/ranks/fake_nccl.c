/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_nccl.h. Written against nccl.h's prototypes. $FAKE_NCCL_FAIL, RANK:NUMBER:CALL, has the call of that number and name
   fail in a program that does not know the mock: of the process whose $RANK that is. $FAKE_NCCL_FOLDER gets the file; after failures it may stay. */
#include "tests/train/ranks/fake_nccl.h"
#include "model/comm/nccl/nccl_symbols.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_RANKS = 4, CHANNEL_BYTES = 1 << 15, MOST_OPS = 64 };
enum { SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE_ERROR = 6 };

__attribute__((visibility("default"))) struct fake_nccl fake_nccl;

#define FAKE(name, ...)                                           \
    __attribute__((visibility("default"))) int name(__VA_ARGS__); \
    int name(__VA_ARGS__)
#define COUNTED               \
    if (count_call(__func__)) \
    return SYSTEM_ERROR

static bool count_call(const char *name)
{
    if (fake_nccl.only[0] && strcmp(fake_nccl.only, name) != 0)
        return false;
    if (++fake_nccl.calls != fake_nccl.fail_at)
        return false;
    snprintf(fake_nccl.failed, sizeof fake_nccl.failed, "%s", name);
    return true;
}

static int misuse(int result)
{
    fake_nccl.misuses++;
    return result;
}

/* ---- memory that the ranks share ---- */

/* From one rank to another: bytes in order. */
struct channel {
    atomic_uint_fast64_t written, read;
    uint8_t bytes[CHANNEL_BYTES];
};

struct shared {
    atomic_int here, gone;
    struct channel channel[MOST_RANKS][MOST_RANKS]; /* [from][to] */
};

/* Bytes to or from a peer. */
struct op {
    bool sends;
    int peer;
    uint8_t *at;
    size_t left;
};

struct nccl_comm {
    struct shared *shared;
    char path[128];
    int rank, ranks, ops;
    bool finalized;
    struct op op[MOST_OPS];
    /* Arrays of the other ranks in an all-reduce, added to `sum` in the order of the ranks when all have come. */
    float *arrays, *sum;
    size_t count;
};

static struct nccl_comm *of_group; /* whose operations the open group has */
static bool in_group;

static void step(struct nccl_comm *c, struct op *o)
{
    struct channel *ch = o->sends ? &c->shared->channel[c->rank][o->peer]
                                  : &c->shared->channel[o->peer][c->rank];
    const uint64_t written = atomic_load(&ch->written), read = atomic_load(&ch->read);
    const uint64_t at = o->sends ? written : read,
                   most = o->sends ? CHANNEL_BYTES - (written - read) : written - read,
                   to_end = CHANNEL_BYTES - at % CHANNEL_BYTES;
    size_t n = o->left < most ? o->left : most;
    n = n < to_end ? n : to_end;
    if (o->sends)
        memcpy(ch->bytes + at % CHANNEL_BYTES, o->at, n);
    else
        memcpy(o->at, ch->bytes + at % CHANNEL_BYTES, n);
    atomic_store(o->sends ? &ch->written : &ch->read, at + n);
    o->at += n;
    o->left -= n;
}

/* True if an earlier operation on the same channel is not done. */
static bool has_to_wait(const struct nccl_comm *c, int k)
{
    for (int i = 0; i < k; i++)
        if (c->op[i].left && c->op[i].peer == c->op[k].peer && c->op[i].sends == c->op[k].sends)
            return true;
    return false;
}

static void add_up(struct nccl_comm *c)
{
    for (size_t i = 0; i < c->count; i++) {
        float sum = c->rank == 0 ? c->sum[i] : c->arrays[i];
        for (int r = 1; r < c->ranks; r++)
            sum += r == c->rank ? c->sum[i] : c->arrays[(size_t)r * c->count + i];
        c->sum[i] = sum;
    }
    free(c->arrays);
    c->arrays = NULL;
}

/* True if all is done. */
static bool progress(struct nccl_comm *c)
{
    size_t left = 0;
    if (atomic_load(&c->shared->here) < c->ranks || fake_nccl.hangs)
        return false;
    for (int k = 0; k < c->ops; k++)
        if (c->op[k].left && !has_to_wait(c, k))
            step(c, &c->op[k]);
    for (int k = 0; k < c->ops; k++)
        left += c->op[k].left;
    if (left)
        return false;
    c->ops = 0;
    if (c->arrays)
        add_up(c);
    return true;
}

/* ---- communicators ---- */

FAKE(ncclGetUniqueId, struct nccl_id *id)
{
    COUNTED;
    snprintf(id->bytes, sizeof id->bytes, "%s/fake-nccl-XXXXXX", getenv("FAKE_NCCL_FOLDER"));
    const int f = mkstemp(id->bytes);
    if (f < 0 || ftruncate(f, sizeof(struct shared)) < 0)
        return SYSTEM_ERROR;
    close(f);
    return 0;
}

FAKE(ncclCommInitRankConfig, struct nccl_comm **comm, int ranks, struct nccl_id id, int rank,
     struct nccl_config *config)
{
    COUNTED;
    if (config->size != 24 || config->magic != 0xcafebeefu || config->version != 21400 ||
        config->blocking != 0 || ranks < 1 || ranks > MOST_RANKS || rank < 0 || rank >= ranks)
        return misuse(INVALID_ARGUMENT);
    const int f = open(id.bytes, O_RDWR);
    if (f < 0)
        return SYSTEM_ERROR;
    struct nccl_comm *c = calloc(1, sizeof *c);
    c->shared = mmap(NULL, sizeof *c->shared, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
    c->rank = rank;
    c->ranks = ranks;
    close(f);
    fake_nccl.communicators++;
    memcpy(c->path, id.bytes, sizeof c->path);
    atomic_fetch_add(&c->shared->here, 1);
    *comm = c;
    return NCCL_IN_PROGRESS;
}

static int end(struct nccl_comm *c)
{
    fake_nccl.communicators--;
    if (atomic_fetch_add(&c->shared->gone, 1) == c->ranks - 1)
        unlink(c->path);
    munmap(c->shared, sizeof *c->shared);
    free(c->arrays);
    free(c);
    return 0;
}

FAKE(ncclCommFinalize, struct nccl_comm *c)
{
    COUNTED;
    c->finalized = true;
    return NCCL_IN_PROGRESS;
}

/* NCCL's own waits for the other ranks if it was not finalized. */
FAKE(ncclCommDestroy, struct nccl_comm *c)
{
    if (c->ops || !c->finalized)
        misuse(0);
    end(c);
    COUNTED;
    return 0;
}

FAKE(ncclCommAbort, struct nccl_comm *c)
{
    end(c);
    COUNTED;
    return 0;
}

FAKE(ncclCommGetAsyncError, struct nccl_comm *c, int *ret)
{
    if (count_call(__func__)) {
        *ret = REMOTE_ERROR;
        return fake_nccl.state_fails ? 0 : SYSTEM_ERROR;
    }
    *ret = progress(c) ? NCCL_SUCCESS : NCCL_IN_PROGRESS;
    return 0;
}

__attribute__((visibility("default"))) const char *ncclGetErrorString(int result);
const char *ncclGetErrorString(int result)
{
    return result == SYSTEM_ERROR    ? "unhandled system error"
           : result == REMOTE_ERROR  ? "remote process exited or there was a network error"
           : result == INVALID_USAGE ? "invalid usage"
                                     : "invalid argument";
}

/* ---- operations ---- */

FAKE(ncclGroupStart, void)
{
    COUNTED;
    if (in_group)
        return misuse(INVALID_USAGE);
    in_group = true;
    fake_nccl.groups++;
    return 0;
}

FAKE(ncclGroupEnd, void)
{
    struct nccl_comm *c = of_group;
    if (!in_group)
        return misuse(INVALID_USAGE);
    in_group = false;
    of_group = NULL;
    fake_nccl.groups--;
    COUNTED;
    return !c || progress(c) ? NCCL_SUCCESS : NCCL_IN_PROGRESS;
}

static int add(struct nccl_comm *c, bool sends, const void *at, size_t count, int peer)
{
    if (c->ops == MOST_OPS || peer < 0 || peer >= c->ranks || peer == c->rank || !at || !count)
        return misuse(INVALID_ARGUMENT);
    c->op[c->ops++] = (struct op){sends, peer, (uint8_t *)(uintptr_t)at, count * sizeof(float)};
    if (!in_group)
        return NCCL_IN_PROGRESS;
    of_group = c;
    return 0;
}

static void report(const char *call, const void *at, void *stream)
{
    if (fake_nccl.moves)
        fake_nccl.moves(call, at, stream);
}

FAKE(ncclSend, const void *from, size_t count, int type, int peer, struct nccl_comm *c,
     void *stream)
{
    COUNTED;
    report(__func__, from, stream);
    return type == NCCL_FLOAT32 ? add(c, true, from, count, peer) : misuse(INVALID_ARGUMENT);
}

FAKE(ncclRecv, void *to, size_t count, int type, int peer, struct nccl_comm *c, void *stream)
{
    COUNTED;
    report(__func__, to, stream);
    return type == NCCL_FLOAT32 ? add(c, false, to, count, peer) : misuse(INVALID_ARGUMENT);
}

FAKE(ncclBroadcast, const void *from, void *to, size_t count, int type, int root,
     struct nccl_comm *c, void *stream)
{
    COUNTED;
    report(__func__, from, stream);
    if (type != NCCL_FLOAT32)
        return misuse(INVALID_ARGUMENT);
    if (root != c->rank)
        return add(c, false, to, count, root);
    memmove(to, from, count * sizeof(float));
    for (int k = 0, r; k < c->ranks; k++)
        if (k != c->rank && (r = add(c, true, to, count, k)) == INVALID_ARGUMENT)
            return r;
    return 0;
}

FAKE(ncclAllReduce, const void *from, void *to, size_t count, int type, int op,
     struct nccl_comm *c, void *stream)
{
    COUNTED;
    report(__func__, from, stream);
    if (type != NCCL_FLOAT32 || op != NCCL_SUM || from != to || c->arrays)
        return misuse(INVALID_ARGUMENT);
    c->arrays = calloc((size_t)c->ranks * count, sizeof *c->arrays);
    c->sum = to;
    c->count = count;
    for (int k = 0; k < c->ranks; k++)
        if (k != c->rank) {
            add(c, true, from, count, k);
            add(c, false, c->arrays + (size_t)k * count, count, k);
        }
    return NCCL_IN_PROGRESS;
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("FAKE_NCCL_FAIL"), *rank = getenv("RANK");
    int of, call, at = 0;
    if (!text || !rank || sscanf(text, "%d:%d:%n", &of, &call, &at) != 2 || of != atoi(rank))
        return;
    fake_nccl.fail_at = call;
    snprintf(fake_nccl.only, sizeof fake_nccl.only, "%s", text + at);
}
