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

/* Counts the ranks that failed, and finds the first of them. */
static int count_failures(const struct comm *c, int result, uint32_t *ret_count,
                          uint32_t *ret_first, struct error *e)
{
    uint64_t *failed = memory_new(c->size, sizeof *failed);
    struct error of_comm = {0};
    failed[c->rank] = result < 0;
    int r = c->sum_u64(c, failed, c->size, &of_comm);
    if (r < 0)
        *e = of_comm;
    *ret_count = 0;
    for (uint32_t k = c->size; k-- > 0;)
        if (failed[k]) {
            *ret_first = k;
            ++*ret_count;
        }
    free(failed);
    return r;
}

int comm_agree(const struct comm *c, int result, struct error *e)
{
    uint32_t count, first = 0;
    struct error ignored = {0};
    e = e ? e : &ignored;
    if (c->size == 1)
        return result;
    if (count_failures(c, result, &count, &first, e) < 0)
        return -1;
    if (!count)
        return 0;
    share_error(c, first, e);
    if (count < c->size) {
        error_prefix(e, "rank %u", first);
        e->kind = ERROR_FALSE;
    }
    return -1;
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
