/* SPDX-License-Identifier: Apache-2.0 */
#include "model/comm/comm.h"
#include "masks/base/memory.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A line of an error that others are told, with its kind. */
struct message {
    uint64_t kind;
    char text[504];
};

/* The error of one rank to all: zeros are added to it. */
static int share_error(const struct comm *c, uint32_t from, struct error *e)
{
    struct message m = {0};
    if (c->rank == from) {
        m.kind = (uint64_t)e->kind;
        memcpy(m.text, e->text, sizeof m.text - 1);
    }
    if (c->sum_u64(c, (uint64_t *)&m, sizeof m / sizeof(uint64_t), e) < 0)
        return -1;
    return error_set(e, (enum error_kind)m.kind, "%s", m.text);
}

/* The worst of the ranks: how many are as bad, and the first of them. */
struct worst {
    uint64_t severity;
    uint32_t count, first;
};

static int find_worst(const struct comm *c, uint32_t severity, struct worst *ret,
                      struct error *e)
{
    uint64_t *each = memory_new(c->size, sizeof *each);
    struct error of_comm = {0};
    each[c->rank] = severity;
    int r = c->sum_u64(c, each, c->size, &of_comm);
    if (r < 0)
        *e = of_comm;
    *ret = (struct worst){0};
    for (uint32_t k = 0; k < c->size; k++) {
        if (each[k] > ret->severity)
            *ret = (struct worst){each[k], 0, k};
        ret->count += each[k] == ret->severity;
    }
    free(each);
    return r;
}

int comm_agree_worst(const struct comm *c, uint32_t severity, struct error *e)
{
    struct worst w;
    struct error ignored = {0};
    e = e ? e : &ignored;
    if (c->size == 1)
        return severity ? -1 : 0;
    if (find_worst(c, severity, &w, e) < 0)
        return -1;
    if (!w.severity)
        return 0;
    share_error(c, w.first, e);
    if (w.count < c->size) {
        error_prefix(e, "rank %u", w.first);
        e->kind = ERROR_FALSE;
    }
    return -1;
}

int comm_agree(const struct comm *c, int result, struct error *e)
{
    return comm_agree_worst(c, result < 0, e);
}

int comm_follow(const struct comm *c, int result, struct error *e)
{
    uint64_t failed = c->rank == 0 && result < 0;
    if (c->size == 1)
        return result;
    if (c->sum_u64(c, &failed, 1, e) < 0)
        return -1;
    if (!failed)
        return 0;
    share_error(c, 0, e);
    if (e->kind == ERROR_UNAVAILABLE) {
        error_prefix(e, "rank 0");
        e->kind = ERROR_FALSE;
    }
    return -1;
}

char *comm_share_text(const struct comm *c, const char *text, struct error *e)
{
    uint64_t size = text && c->rank == 0 ? strlen(text) : 0;
    if (c->size == 1)
        return memory_text(text);
    if (c->sum_u64(c, &size, 1, e) < 0)
        return NULL;
    const uint64_t words = size / sizeof(uint64_t) + 1;
    uint64_t *ret = memory_new(words, sizeof *ret);
    if (c->rank == 0)
        memcpy(ret, text, size);
    if (c->sum_u64(c, ret, words, e) == 0)
        return (char *)ret;
    free(ret);
    return NULL;
}
