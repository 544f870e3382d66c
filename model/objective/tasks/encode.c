/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of each format as token ids and labelled rows. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/base/windows.h"
#include "model/objective/tasks/task_samples.h"
#include <string.h>

static struct text_part part_of(const char *text)
{
    return (struct text_part){text, text ? (uint32_t)strlen(text) : 0};
}

static void encode(struct task_reader *r, const char *a, const char *b)
{
    struct tokens *t = &r->tokens;
    tokenizer_encode(r->from->tokenizer, part_of(a), part_of(b), r->from->longest, t);
    task_samples_add(r->to, t->token_ids, t->count, t->first_part);
    r->to->cut += t->cut;
}

/* ---- a class or a number ---- */

void encode_text(struct task_reader *r, const struct task_example *x)
{
    encode(r, x->text[0], x->texts > 1 ? x->text[1] : NULL);
    if (!r->set->labelled)
        return;
    const bool number = r->set->numbers;
    task_samples_label(r->to,
                       (struct task_label){.label = number ? 0 : r->number[x->class_of[0]],
                                           .value = number ? (float)x->value : 0});
}

/* ---- choices ---- */

/* A choice's label says whether it is the right one. */
void encode_choices(struct task_reader *r, const struct task_example *x)
{
    for (uint32_t k = 1; k < x->texts; k++) {
        encode(r, x->text[0], x->text[k]);
        if (r->set->labelled)
            task_samples_label(r->to, (struct task_label){.label = x->class_of[0] == k - 1});
    }
}

/* ---- words ---- */

/* The label of a word is that of its first token; a word without one, or behind the greatest length, has none. */
void encode_words(struct task_reader *r, const struct task_example *x)
{
    const struct tokens *t = &r->tokens;
    struct text line = {0};
    uint32_t k = 0, row = 0;
    for (uint32_t w = 0; w < x->texts; w++)
        text_add(&line, w ? " %s" : "%s", x->text[w]);
    encode(r, text_get(&line), NULL);
    for (uint32_t w = 0, at = 0; r->set->labelled && w < x->texts; w++) {
        const uint32_t end = at + (uint32_t)strlen(x->text[w]);
        for (k = row;
             k < t->count && (t->span[k].end <= at || t->span[k].end == t->span[k].begin);)
            k++;
        if (k < t->count && t->span[k].begin < end) {
            task_samples_label(
                r->to, (struct task_label){.row = k, .label = r->number[x->class_of[w]]});
            row = k + 1;
        }
        at = end + 1;
    }
    text_finish(&line);
}

/* ---- answers ---- */

/* Bytes of the answer in its text. */
struct answer_place {
    uint32_t begin, end; /* equal: there is none */
};

/* The byte where code point `count` begins, or the text's end. */
static uint32_t byte_at(const char *text, uint32_t count)
{
    const char *c = text;
    for (; *c && count; count--)
        for (c++; (*c & 0xc0) == 0x80; c++)
            ;
    return (uint32_t)(c - text);
}

static struct answer_place find_answer(struct task_reader *r, const struct task_example *x)
{
    if (!x->answers)
        return (struct answer_place){0, 0};
    const char *text = x->text[1], *answer = x->answer[0];
    const uint32_t begin = byte_at(text, x->answer_at[0]), size = (uint32_t)strlen(answer);
    if (!size || strncmp(text + begin, answer, size) != 0) {
        r->to->lost++;
        return (struct answer_place){0, 0};
    }
    return (struct answer_place){begin, begin + size};
}

/* Rows of the window where the answer begins and ends: 0 and 0, its [CLS], where it has not all of it. */
static void find_rows(const struct token_span *span, uint32_t question, uint32_t count,
                      struct answer_place a, uint32_t *first, uint32_t *last)
{
    *first = *last = 0;
    if (a.begin == a.end || !count || span[0].begin > a.begin || span[count - 1].end < a.end)
        return;
    uint32_t i = 0, j = count - 1;
    while (i + 1 < count && span[i + 1].begin <= a.begin)
        i++;
    while (j > i && span[j - 1].end >= a.end)
        j--;
    *first = question + i;
    *last = question + j;
}

static void add_window(struct task_reader *r, uint32_t question, uint32_t first, uint32_t count,
                       struct answer_place a)
{
    const struct tokens *t = &r->tokens;
    const uint32_t all = question + count + t->tail, at = t->second + first;
    uint32_t begin, end, *token_id = memory_new(all, sizeof *token_id);
    memcpy(token_id, t->token_ids, (question - t->middle) * sizeof *token_id);
    memcpy(token_id + question - t->middle, t->token_ids + t->second - t->middle,
           t->middle * sizeof *token_id);
    memcpy(token_id + question, t->token_ids + at, count * sizeof *token_id);
    memcpy(token_id + question + count, t->token_ids + t->count - t->tail,
           t->tail * sizeof *token_id);
    task_samples_add(r->to, token_id, all, t->first_part < t->count ? question : all);
    find_rows(t->span + at, question, count, a, &begin, &end);
    for (uint32_t k = 0; r->set->labelled && k < all; k++)
        task_samples_label(
            r->to, (struct task_label){.row = k, .label = (k == begin) | (k == end) << 1});
    free(token_id);
}

void encode_question(struct task_reader *r, const struct task_example *x)
{
    struct tokens *t = &r->tokens;
    uint32_t first, count;
    tokenizer_encode(r->from->tokenizer, part_of(x->text[0]), part_of(x->text[1]), 0, t);
    struct windows w =
        windows_begin(r->from->longest - (t->tail - 1), r->from->overlap, t->second,
                      t->head + t->middle, t->count - t->second - t->tail);
    const struct answer_place a = find_answer(r, x);
    while (windows_next(&w, &first, &count))
        add_window(r, w.question, first, count, a);
}
