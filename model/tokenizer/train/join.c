/* SPDX-License-Identifier: Apache-2.0 */
/* A join touches only the words that hold the pair: every pair has a list of them. The heap of pairs by count
   is corrected lazily, when its top is out of date. See join.h. */
#include "model/tokenizer/train/join.h"
#include "masks/base/memory.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct pair {
    uint32_t a, b;
    int64_t count;
    uint32_t *word; /* words that have or had the pair; no word twice in a row */
    uint32_t n_words, capacity;
};

struct candidate {
    int64_t count;
    uint32_t pair;
};

struct joiner {
    struct counts *symbols;
    struct spelling *spelling;
    uint32_t n_spellings;
    struct pair *pair;
    uint32_t n_pairs, pairs_capacity;
    uint32_t *slot, n_slots; /* open hash table of pair + 1 */
    struct candidate *heap;
    uint32_t n_heap, heap_capacity;
};

/* The order of the heap: larger counts first; ties are broken by smaller symbols. */
static bool is_before(const struct joiner *t, struct candidate x, struct candidate y)
{
    const struct pair *p = &t->pair[x.pair], *q = &t->pair[y.pair];
    if (x.count != y.count)
        return x.count > y.count;
    return p->a != q->a ? p->a < q->a : p->b < q->b;
}

static void heap_push(struct joiner *t, struct candidate x)
{
    *MEMORY_PUSH(t->heap, t->n_heap, t->heap_capacity) = x;
    uint32_t at = t->n_heap - 1;
    for (; at && is_before(t, x, t->heap[(at - 1) / 2]); at = (at - 1) / 2)
        t->heap[at] = t->heap[(at - 1) / 2];
    t->heap[at] = x;
}

static struct candidate heap_pop(struct joiner *t)
{
    struct candidate top = t->heap[0], x = t->heap[--t->n_heap];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < t->n_heap; at = child) {
        if (child + 1 < t->n_heap && is_before(t, t->heap[child + 1], t->heap[child]))
            child++;
        if (!is_before(t, t->heap[child], x))
            break;
        t->heap[at] = t->heap[child];
    }
    t->heap[at] = x;
    return top;
}

static uint32_t *pair_slot(const struct joiner *t, uint32_t a, uint32_t b)
{
    uint64_t key = (uint64_t)a << 32 | b, at = XXH3_64bits(&key, sizeof key);
    for (;; at++) {
        uint32_t *slot = &t->slot[at & (t->n_slots - 1)];
        if (!*slot || (t->pair[*slot - 1].a == a && t->pair[*slot - 1].b == b))
            return slot;
    }
}

static void grow_pairs(struct joiner *t)
{
    free(t->slot);
    t->n_slots = t->n_slots ? 2 * t->n_slots : 1 << 12;
    t->slot = memory_new(t->n_slots, sizeof *t->slot);
    for (uint32_t k = 0; k < t->n_pairs; k++)
        *pair_slot(t, t->pair[k].a, t->pair[k].b) = k + 1;
}

/* Adds `change` times the word's count to the pair's count. The word holds the pair now if `change` is
   positive. */
static uint32_t change_pair(struct joiner *t, uint32_t a, uint32_t b, int64_t change,
                            uint32_t word)
{
    if (2 * (uint64_t)t->n_pairs >= t->n_slots)
        grow_pairs(t);
    uint32_t *slot = pair_slot(t, a, b);
    if (!*slot) {
        *MEMORY_PUSH(t->pair, t->n_pairs, t->pairs_capacity) = (struct pair){.a = a, .b = b};
        *slot = t->n_pairs;
    }
    struct pair *p = &t->pair[*slot - 1];
    p->count += change;
    if (change > 0 && (!p->n_words || p->word[p->n_words - 1] != word))
        *MEMORY_PUSH(p->word, p->n_words, p->capacity) = word;
    return *slot - 1;
}

/* "un" and "##able" give "unable". */
static uint32_t join_texts(struct counts *symbols, uint32_t a, uint32_t b)
{
    const struct counted x = symbols->item[a], y = symbols->item[b];
    uint32_t skip = sizeof "##" - 1, size = x.size + y.size - skip;
    char *text = memory_new(size, 1);
    memcpy(text, symbols->bytes + x.begin, x.size);
    memcpy(text + x.size, symbols->bytes + y.begin + skip, y.size - skip);
    uint32_t symbol = counts_add(symbols, text, size, 1);
    free(text);
    return symbol;
}

/* Joins a and b wherever they stand together in the word. New neighbours are counted; each new pair is
   offered to the heap once, later. */
static void join_word(struct joiner *t, uint32_t word, uint32_t a, uint32_t b, uint32_t joined,
                      struct counts *offered)
{
    struct spelling *s = &t->spelling[word];
    int64_t count = (int64_t)s->count;
    uint32_t to = 0;
    for (uint32_t k = 0; k < s->length; k++) {
        bool here = k + 1 < s->length && s->symbol[k] == a && s->symbol[k + 1] == b;
        if (!here) {
            s->symbol[to++] = s->symbol[k];
            continue;
        }
        uint32_t pair;
        if (to) {
            change_pair(t, s->symbol[to - 1], a, -count, word);
            pair = change_pair(t, s->symbol[to - 1], joined, count, word);
            counts_add(offered, (const char *)&pair, sizeof pair, 1);
        }
        if (k + 2 < s->length) {
            change_pair(t, b, s->symbol[k + 2], -count, word);
            pair = change_pair(t, joined, s->symbol[k + 2], count, word);
            counts_add(offered, (const char *)&pair, sizeof pair, 1);
        }
        s->symbol[to++] = joined;
        k++;
    }
    s->length = to;
}

static void join_pair(struct joiner *t, uint32_t pair)
{
    const struct pair p =
        t->pair[pair]; /* a copy that owns the words: join_word() changes t->pair */
    struct counts offered = {0};
    uint32_t joined = join_texts(t->symbols, p.a, p.b);
    t->pair[pair].word = NULL;
    t->pair[pair].n_words = t->pair[pair].capacity = 0;
    t->pair[pair].count = 0;
    for (uint32_t k = 0; k < p.n_words; k++)
        join_word(t, p.word[k], p.a, p.b, joined, &offered);
    free(p.word);
    t->pair[pair].count = 0;
    for (uint32_t k = 0; k < offered.n_items; k++) {
        uint32_t other;
        memcpy(&other, offered.bytes + offered.item[k].begin, sizeof other);
        if (t->pair[other].count > 0)
            heap_push(t, (struct candidate){t->pair[other].count, other});
    }
    counts_finish(&offered);
}

static void count_pairs(struct joiner *t)
{
    for (uint32_t w = 0; w < t->n_spellings; w++)
        for (uint32_t k = 0; k + 1 < t->spelling[w].length; k++)
            change_pair(t, t->spelling[w].symbol[k], t->spelling[w].symbol[k + 1],
                        (int64_t)t->spelling[w].count, w);
    for (uint32_t k = 0; k < t->n_pairs; k++)
        heap_push(t, (struct candidate){t->pair[k].count, k});
}

void join_pairs(struct counts *symbols, struct spelling *spelling, uint32_t n_spellings,
                uint32_t size, uint32_t min_frequency)
{
    struct joiner t = {.symbols = symbols, .spelling = spelling, .n_spellings = n_spellings};
    count_pairs(&t);
    while (symbols->n_items < size && t.n_heap) {
        struct candidate top = heap_pop(&t);
        int64_t now = t.pair[top.pair].count;
        if (top.count != now) {
            if (now > 0)
                heap_push(&t, (struct candidate){now, top.pair});
            continue;
        }
        if (now < (int64_t)min_frequency || now <= 0)
            break;
        join_pair(&t, top.pair);
    }
    for (uint32_t k = 0; k < t.n_pairs; k++)
        free(t.pair[k].word);
    free(t.pair);
    free(t.slot);
    free(t.heap);
}
