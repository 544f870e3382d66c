/* SPDX-License-Identifier: Apache-2.0 */
#include "model/score/answers.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/tokenizer/base/sigma.h"
#include "model/tokenizer/base/unicode.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* Python's str.isspace(): white space by its direction, or of category Zs. */
static bool is_space(uint32_t c)
{
    return (c >= 0x9 && c <= 0xd) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

/* \w: Python's str.isalnum() or an underscore. */
static bool is_word(uint32_t c)
{
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return true;
    default:
        return c == '_';
    }
}

/* ---- normalisation ---- */

static void add_point(struct text *to, uint32_t point)
{
    char bytes[4];
    text_append(to, bytes, unicode_encode(point, bytes));
}

/* The sigma's neighbours are those of the whole text, so that punctuation goes afterwards. */
static void lower_plain(const char *text, struct text *to)
{
    const uint8_t *bytes = (const uint8_t *)text;
    uint32_t size = (uint32_t)strlen(text), point, lower[UNICODE_MAX_LOWER];
    for (uint32_t at = 0, step; at < size; at += step) {
        step = unicode_decode(bytes + at, bytes + size, &point);
        if (point < 0x80 && ispunct((int)point))
            continue;
        if (point == SIGMA_CAPITAL) {
            add_point(to, sigma_lower(text, 0, size, at, NULL));
            continue;
        }
        uint32_t n = unicode_lower(point, lower);
        for (uint32_t k = 0; k < n; k++)
            add_point(to, lower[k]);
    }
}

static bool is_article(const char *word, size_t length)
{
    return (length == 1 && *word == 'a') || (length == 2 && !memcmp(word, "an", 2)) ||
           (length == 3 && !memcmp(word, "the", 3));
}

/* The end of the run of points from `at` on that are word characters, or of those that are none. */
static const uint8_t *run_end(const uint8_t *at, const uint8_t *end, bool *ret_word)
{
    uint32_t point, step = unicode_decode(at, end, &point);
    *ret_word = is_word(point);
    for (at += step; at < end; at += step) {
        step = unicode_decode(at, end, &point);
        if (is_word(point) != *ret_word)
            break;
    }
    return at;
}

static void drop_articles(const char *text, size_t size, struct text *to)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + size, *next;
    for (bool word; at < end; at = next) {
        next = run_end(at, end, &word);
        if (word && is_article((const char *)at, (size_t)(next - at)))
            text_append(to, " ", 1);
        else
            text_append(to, (const char *)at, (size_t)(next - at));
    }
}

static void join_words(const char *text, size_t size, struct text *to)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + size;
    bool waits = false;
    for (uint32_t point, step; at < end; at += step) {
        step = unicode_decode(at, end, &point);
        if (is_space(point)) {
            waits = true;
            continue;
        }
        if (waits && to->length)
            text_append(to, " ", 1);
        waits = false;
        text_append(to, (const char *)at, step);
    }
}

char *answer_normalize(const char *text)
{
    struct text lower = {0}, kept = {0}, joined = {0};
    lower_plain(text, &lower);
    drop_articles(text_get(&lower), lower.length, &kept);
    join_words(text_get(&kept), kept.length, &joined);
    text_finish(&lower);
    text_finish(&kept);
    text_append(&joined, "", 0);
    return joined.bytes ? text_take(&joined) : memory_text("");
}

/* ---- two answers ---- */

struct bag {
    char *text; /* its words end in zeros */
    char **word;
    size_t words, capacity;
};

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct bag bag_of(const char *normalized)
{
    struct bag b = {.text = memory_text(normalized)};
    for (char *state, *word = strtok_r(b.text, " ", &state); word;
         word = strtok_r(NULL, " ", &state))
        *MEMORY_PUSH(b.word, b.words, b.capacity) = word;
    if (b.words)
        qsort(b.word, b.words, sizeof *b.word, by_bytes);
    return b;
}

static void bag_finish(struct bag *b)
{
    free(b->text);
    free(b->word);
}

static size_t common_words(const struct bag *a, const struct bag *b)
{
    size_t common = 0;
    for (size_t i = 0, j = 0; i < a->words && j < b->words;) {
        int order = strcmp(a->word[i], b->word[j]);
        common += order == 0;
        i += order <= 0;
        j += order >= 0;
    }
    return common;
}

static double bag_f1(const struct bag *found, const struct bag *gold, enum answer_rules rules)
{
    if (rules == ANSWERS_V2 && (!found->words || !gold->words))
        return found->words == gold->words;
    double common = (double)common_words(found, gold);
    if (common == 0)
        return 0;
    double precision = common / (double)found->words, recall = common / (double)gold->words;
    return 2 * precision * recall / (precision + recall);
}

static void take_gold(const char *found, const char *gold, enum answer_rules rules,
                      struct answer_score *best)
{
    struct bag f = bag_of(found), g = bag_of(gold);
    double exact = strcmp(found, gold) == 0, f1 = bag_f1(&f, &g, rules);
    best->exact = exact > best->exact ? exact : best->exact;
    best->f1 = f1 > best->f1 ? f1 : best->f1;
    bag_finish(&f);
    bag_finish(&g);
}

struct answer_score answer_score(const char *found, const char *const *gold, uint32_t count,
                                 enum answer_rules rules)
{
    struct answer_score best = {0};
    char *mine = answer_normalize(found);
    bool taken = false;
    for (uint32_t k = 0; k < count; k++) {
        char *theirs = answer_normalize(gold[k]);
        if (rules == ANSWERS_V1 || *theirs) {
            take_gold(mine, theirs, rules, &best);
            taken = true;
        }
        free(theirs);
    }
    if (!taken)
        take_gold(mine, "", rules, &best);
    free(mine);
    return best;
}
