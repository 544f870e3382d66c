/* SPDX-License-Identifier: Apache-2.0 */
/* Words are counted, sorted (so that the order of the text does not matter), cut into characters, and joined
   (join.h). */
#include "model/tokenizer/train/train.h"
#include "masks/base/memory.h"
#include "model/tokenizer/train/join.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_WORD_CHARS = 100, N_SPECIAL = 5 };

static const char *const special[N_SPECIAL] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

struct vocabulary_trainer {
    struct vocabulary_trainer_options options;
    struct word_rules rules;
    const struct unicode *unicode;
    struct words words;
    struct counts counts;  /* of words */
    struct counts symbols; /* texts, "##" included; their count is not used */
    struct spelling *spelling;
    uint32_t n_spellings;
};

struct vocabulary_trainer *vocabulary_trainer_new(const struct vocabulary_trainer_options *o)
{
    struct vocabulary_trainer *t = memory_new(1, sizeof *t);
    t->options = *o;
    t->unicode = unicode_get(UNICODE_HF);
    t->rules = (struct word_rules){.clean = true,
                                   .ideographs = true,
                                   .strip_accents = !o->cased,
                                   .lowercase = !o->cased,
                                   .max_chars = MAX_WORD_CHARS};
    return t;
}

void vocabulary_trainer_destroy(struct vocabulary_trainer *t)
{
    if (!t)
        return;
    for (uint32_t k = 0; k < t->n_spellings; k++)
        free(t->spelling[k].symbol);
    words_finish(&t->words);
    counts_finish(&t->counts);
    counts_finish(&t->symbols);
    free(t->spelling);
    free(t);
}

static void count_word(void *context, const struct word *w)
{
    struct vocabulary_trainer *t = context;
    if (w->chars <= MAX_WORD_CHARS)
        counts_add(&t->counts, w->bytes, w->size, 1);
}

void vocabulary_trainer_add(struct vocabulary_trainer *t, const char *text, uint32_t size)
{
    const struct word_splitter splitter = {t->unicode, &t->rules, count_word, t};
    words_split(&t->words, &splitter, text, 0, size);
}

struct listed {
    const char *bytes;
    uint32_t size;
    uint64_t count;
};

static int by_bytes(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    uint32_t n = x->size < y->size ? x->size : y->size;
    int order = memcmp(x->bytes, y->bytes, n);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

static int by_count(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : by_bytes(a, b);
}

static struct listed *list(const struct counts *c, int (*order)(const void *, const void *))
{
    struct listed *l = memory_new(c->n_items, sizeof *l);
    for (uint32_t k = 0; k < c->n_items; k++)
        l[k] = (struct listed){c->bytes + c->item[k].begin, c->item[k].size, c->item[k].count};
    qsort(l, c->n_items, sizeof *l, order);
    return l;
}

static uint32_t char_size(const char *bytes, uint32_t size)
{
    uint32_t point;
    return unicode_decode((const uint8_t *)bytes, (const uint8_t *)bytes + size, &point);
}

/* The characters that are kept become the first symbols, by code point (which is UTF-8's order). */
static void choose_alphabet(struct vocabulary_trainer *t, const struct listed *word,
                            uint32_t n_words)
{
    struct counts chars = {0};
    for (uint32_t k = 0; k < n_words; k++)
        for (uint32_t at = 0, n; at < word[k].size; at += n) {
            n = char_size(word[k].bytes + at, word[k].size - at);
            counts_add(&chars, word[k].bytes + at, n, word[k].count);
        }
    struct listed *l = list(&chars, by_count);
    uint32_t kept =
        chars.n_items < t->options.alphabet_limit ? chars.n_items : t->options.alphabet_limit;
    qsort(l, kept, sizeof *l, by_bytes);
    for (uint32_t k = 0; k < kept; k++)
        counts_add(&t->symbols, l[k].bytes, l[k].size, 1);
    free(l);
    counts_finish(&chars);
}

/* "##" and the character. */
static uint32_t follow_text(const char *bytes, uint32_t size, char ret[8])
{
    ret[0] = ret[1] = '#';
    memcpy(ret + 2, bytes, size);
    return size + 2;
}

/* True if every character is in the alphabet, which is all symbols so far. */
static bool is_spelled(const struct vocabulary_trainer *t, const struct listed *w)
{
    for (uint32_t at = 0, n; at < w->size; at += n) {
        n = char_size(w->bytes + at, w->size - at);
        if (counts_find(&t->symbols, w->bytes + at, n) < 0)
            return false;
    }
    return true;
}

/* Keeps the words that can be spelled, and makes symbols of the characters that continue a word. */
static uint32_t choose_words(struct vocabulary_trainer *t, struct listed *word,
                             uint32_t n_words)
{
    struct counts follow = {0};
    uint32_t kept = 0;
    char text[8];
    for (uint32_t k = 0; k < n_words; k++) {
        if (!is_spelled(t, &word[k]))
            continue;
        for (uint32_t at = char_size(word[k].bytes, word[k].size), n; at < word[k].size;
             at += n) {
            n = char_size(word[k].bytes + at, word[k].size - at);
            counts_add(&follow, text, follow_text(word[k].bytes + at, n, text), 1);
        }
        word[kept++] = word[k];
    }
    struct listed *l = list(&follow, by_bytes);
    for (uint32_t k = 0; k < follow.n_items; k++)
        counts_add(&t->symbols, l[k].bytes, l[k].size, 1);
    free(l);
    counts_finish(&follow);
    return kept;
}

static struct spelling spell(const struct vocabulary_trainer *t, const struct listed *w)
{
    struct spelling s = {.symbol = memory_new(MAX_WORD_CHARS, sizeof *s.symbol),
                         .count = w->count};
    char text[8];
    for (uint32_t at = 0, n; at < w->size; at += n) {
        n = char_size(w->bytes + at, w->size - at);
        uint32_t size = follow_text(w->bytes + at, n, text), skip = at ? 0 : 2;
        s.symbol[s.length++] = (uint32_t)counts_find(&t->symbols, text + skip, size - skip);
    }
    s.symbol = memory_resize(s.symbol, s.length, sizeof *s.symbol);
    return s;
}

static void print(const struct vocabulary_trainer *t, struct text *out)
{
    for (int k = 0; k < N_SPECIAL; k++)
        text_add(out, "%s\n", special[k]);
    for (uint32_t k = 0; k < t->symbols.n_items; k++) {
        text_append(out, t->symbols.bytes + t->symbols.item[k].begin, t->symbols.item[k].size);
        text_append(out, "\n", 1);
    }
}

int vocabulary_trainer_finish(struct vocabulary_trainer *t, struct text *out, struct error *e)
{
    uint32_t n_words = t->counts.n_items;
    struct listed *word = list(&t->counts, by_bytes);
    choose_alphabet(t, word, n_words);
    n_words = choose_words(t, word, n_words);
    t->spelling = memory_new(n_words, sizeof *t->spelling);
    for (; t->n_spellings < n_words; t->n_spellings++)
        t->spelling[t->n_spellings] = spell(t, &word[t->n_spellings]);
    free(word);
    uint32_t least = t->symbols.n_items + N_SPECIAL;
    if (t->symbols.n_items == 0)
        return error_set(e, ERROR_INPUT, "the text has no words");
    if (t->options.size < least)
        return error_set(
            e, ERROR_INPUT,
            "%u tokens do not hold the text's characters: at least %u are expected",
            t->options.size, least);
    join_pairs(&t->symbols, t->spelling, t->n_spellings, t->options.size - N_SPECIAL,
               t->options.min_frequency);
    print(t, out);
    return 0;
}
