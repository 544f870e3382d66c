/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates wait in a heap, lowest rank first, then leftmost. One whose pair has changed since is skipped, unless the new
   pair gives the same token, as in the library tokenizers. */
#include "model/tokenizer/bpe/merge.h"
#include "masks/base/memory.h"
#include <stdlib.h>

static uint32_t hash(uint32_t first, uint32_t second)
{
    uint64_t key = (uint64_t)first << 32 | second;
    key = (key ^ key >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(key >> 32);
}

struct bpe_merge *bpe_slot(const struct bpe *b, uint32_t first, uint32_t second)
{
    uint32_t mask = b->capacity - 1, at = hash(first, second) & mask;
    while (b->merge[at].first != BPE_FREE &&
           (b->merge[at].first != first || b->merge[at].second != second))
        at = (at + 1) & mask;
    return &b->merge[at];
}

const struct bpe_merge *bpe_find(const struct bpe *b, uint32_t first, uint32_t second)
{
    const struct bpe_merge *m = bpe_slot(b, first, second);
    return m->first == BPE_FREE ? NULL : m;
}

static bool is_before(struct bpe_candidate x, struct bpe_candidate y)
{
    return x.rank != y.rank ? x.rank < y.rank : x.at < y.at;
}

static void push(struct bpe_memory *m, struct bpe_candidate x)
{
    *MEMORY_PUSH(m->heap, m->n_heap, m->heap_capacity) = x;
    uint32_t at = m->n_heap - 1;
    for (; at && is_before(x, m->heap[(at - 1) / 2]); at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = x;
}

static struct bpe_candidate pop(struct bpe_memory *m)
{
    struct bpe_candidate top = m->heap[0], x = m->heap[--m->n_heap];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < m->n_heap; at = child) {
        if (child + 1 < m->n_heap && is_before(m->heap[child + 1], m->heap[child]))
            child++;
        if (!is_before(m->heap[child], x))
            break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = x;
    return top;
}

/* Offers the pair of the part and the one after it. */
static void offer(const struct bpe *b, struct bpe_memory *m, int32_t at)
{
    if (at < 0 || m->part[at].after < 0)
        return;
    const struct bpe_merge *merge =
        bpe_find(b, m->part[at].token_id, m->part[m->part[at].after].token_id);
    if (merge)
        push(m, (struct bpe_candidate){merge->rank, (uint32_t)at, merge->token_id});
}

static void merge_next(const struct bpe *b, struct bpe_memory *m, struct bpe_candidate top)
{
    struct bpe_part *left = &m->part[top.at];
    if (!left->size || left->after < 0)
        return;
    struct bpe_part *right = &m->part[left->after];
    const struct bpe_merge *merge = bpe_find(b, left->token_id, right->token_id);
    if (!merge || merge->token_id != top.token_id)
        return;
    left->token_id = top.token_id;
    left->size += right->size;
    left->after = right->after;
    right->size = 0;
    if (left->after >= 0)
        m->part[left->after].before = (int32_t)top.at;
    offer(b, m, left->before);
    offer(b, m, (int32_t)top.at);
}

void bpe_merge_parts(const struct bpe *b, struct bpe_memory *m)
{
    m->n_heap = 0;
    for (uint32_t k = 0; k < m->count; k++) {
        m->part[k].before = (int32_t)k - 1;
        m->part[k].after = k + 1 < m->count ? (int32_t)k + 1 : -1;
    }
    for (uint32_t k = 0; k + 1 < m->count; k++)
        offer(b, m, (int32_t)k);
    while (m->n_heap)
        merge_next(b, m, pop(m));
}
