/* SPDX-License-Identifier: Apache-2.0 */
/* /fill-mask and /classify: answers have the JSON of the commands. */
#include "masks/base/memory.h"
#include "tools/maskbert/serve/replies.h"
#include "tools/maskbert/tasks/result_json.h"
#include <stdlib.h>
#include <string.h>

/* Appends to each request without an error a JSON array with one answer for each text. */
static void put_answers(struct request *first, json_t *(*answer)(void *context, uint32_t text),
                        void *context)
{
    uint32_t text = 0;
    for (struct request *r = first; r; r = r->next) {
        if (r->status)
            continue;
        json_t *all = json_array();
        for (uint32_t k = 0; k < r->texts; k++)
            json_array_append_new(all, answer(context, text++));
        char *words = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(9));
        text_add(&r->reply, "%s\n", words);
        free(words);
        json_decref(all);
    }
}

struct answers {
    const struct serving *s;
    const struct task_batches *b;
    const struct task_gaps *gaps;
    const struct task_labels *labels;
};

const char *words_missing(const struct serving *s)
{
    return s->engine->parts & PART_MLM ? NULL : "the model has no masked-word head";
}

static size_t count_masks(struct text_part part, const char *mask)
{
    const char *at = part.bytes, *end = at + part.size;
    size_t masks = 0, size = strlen(mask);
    while (at && (at = memmem(at, (size_t)(end - at), mask, size))) {
        masks++;
        at += size;
    }
    return masks;
}

/* Upper bound of the reply's bytes: each [MASK] gets up to s->top words. */
size_t words_bytes(const struct serving *s, const struct request *r)
{
    const struct tokenizer *t = s->engine->tokenizer;
    const char *mask = t->mask < 0 ? "[MASK]" : t->vocabulary.token[t->mask];
    size_t masks = 0;
    for (uint32_t k = 0; k < r->texts; k++)
        masks += count_masks(r->text[k].a, mask) + count_masks(r->text[k].b, mask);
    return masks * (s->top * (size_t)320 + 512) + r->texts * (size_t)32;
}

static json_t *one_fill(void *context, uint32_t text)
{
    const struct answers *a = context;
    return result_gaps(a->s->engine, a->b, a->gaps, text);
}

int words_run(struct serving *s, const struct task_batches *b, struct request *first,
              struct error *e)
{
    struct task_gaps gaps = {0};
    const struct task_runner runner = {s->engine, &s->task, &s->workspace};
    if (task_fill(&runner, b, s->top, &gaps, e) < 0)
        return -1;
    put_answers(first, one_fill, &(struct answers){s, b, &gaps, NULL});
    task_gaps_finish(&gaps);
    return 0;
}

const char *labels_missing(const struct serving *s)
{
    enum task_kind kind = task_kind(&s->engine->config);
    if (!(s->engine->parts & PART_CLASSIFIER))
        return "the model has no classifier";
    return kind == TASK_CHOICE || kind == TASK_NEXT
               ? "next sentences and multiple choice are not served; use maskbert classify"
               : NULL;
}

size_t labels_bytes(const struct serving *s, const struct request *r)
{
    bool tokens = task_kind(&s->engine->config) == TASK_TOKENS;
    size_t rows =
        tokens ? task_longest(s->engine, s->task.max_length) : s->engine->config.labels;
    return r->texts * (rows + 1) * (size_t)256;
}

static json_t *one_label(void *context, uint32_t text)
{
    const struct answers *a = context;
    return result_labels(a->s->engine, a->b, a->labels, text);
}

int labels_run(struct serving *s, const struct task_batches *b, struct request *first,
               struct error *e)
{
    struct task_labels labels = {0};
    const struct task_runner runner = {s->engine, &s->task, &s->workspace};
    if (task_classify(&runner, b, &labels, e) < 0)
        return -1;
    put_answers(first, one_label, &(struct answers){s, b, NULL, &labels});
    task_labels_finish(&labels);
    return 0;
}
