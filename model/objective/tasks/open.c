/* SPDX-License-Identifier: Apache-2.0 */
/* A task's file to samples. Classes are numbered as the training data have them. */
#include "masks/base/hash.h"
#include "masks/base/memory.h"
#include "model/data/tasks/files.h"
#include "model/objective/tasks/task_samples.h"
#include "model/objective/tasks/tasks.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void task_samples_add(struct task_samples *s, const uint32_t *token_id, uint32_t count,
                      uint32_t first_part)
{
    const uint64_t at = s->base.tokens;
    if (at + count > s->tokens_capacity) {
        s->tokens_capacity = 2 * (at + count);
        s->token_id = memory_resize(s->token_id, s->tokens_capacity, sizeof *s->token_id);
    }
    memcpy(s->token_id + at, token_id, count * sizeof *token_id);
    for (uint32_t k = 0; k < count; k++)
        if (token_id[k] >= s->base.vocabulary)
            s->base.vocabulary = token_id[k] + 1;
    *MEMORY_PUSH(s->sequence, s->sequences, s->sequences_capacity) =
        (struct task_sequence){at, count, first_part, s->labels, 0};
    s->base.tokens += count;
    s->base.length = count > s->base.length ? count : s->base.length;
}

void task_samples_label(struct task_samples *s, struct task_label label)
{
    *MEMORY_PUSH(s->label, s->labels, s->labels_capacity) = label;
    s->sequence[s->sequences - 1].labels++;
}

/* ---- classes ---- */

static int number_of(const struct objective_data *like, const char *name)
{
    for (uint32_t k = 0; k < like->labels; k++)
        if (!strcmp(like->label[k], name))
            return (int)k;
    return -1;
}

/* The first label with a class that the training data do not have. */
static int refuse_class(const struct dataset *d, uint32_t class, const char *path,
                        struct error *e)
{
    for (size_t k = 0; k < d->count; k++)
        for (uint32_t j = 0; j < d->example[k].labels; j++)
            if (d->example[k].class_of[j] == class)
                return error_set(
                    e, ERROR_INPUT,
                    "%s:%u:%u: label \"%.60s\": the training data have no such one", path,
                    d->example[k].line, d->example[k].column, d->classes[class]);
    return 0;
}

static int number_classes(struct task_samples *s, const struct objective_data *like,
                          const char *path, uint32_t *ret, struct error *e)
{
    const struct dataset *d = &s->set;
    for (uint32_t k = 0; k < d->n_classes; k++) {
        const int number = like ? number_of(like, d->classes[k]) : (int)k;
        if (number < 0 && refuse_class(d, k, path, e) < 0)
            return -1;
        ret[k] = number < 0 ? 0 : (uint32_t)number;
    }
    return 0;
}

static void name_classes(struct task_samples *s, const struct objective_data *like)
{
    const struct dataset *d = &s->set;
    s->base.labels = like ? like->labels : d->n_classes;
    s->name = memory_new(s->base.labels, sizeof *s->name);
    for (uint32_t k = 0; k < s->base.labels; k++)
        s->name[k] = memory_text(like ? like->label[k] : d->classes[k]);
    s->base.label = s->name;
}

/* ---- samples ---- */

static const struct objective *objective_of(const struct dataset *d)
{
    switch (d->task->format) {
    case TASK_ENDINGS:
        return &objective_choose;
    case TASK_WORDS:
        return &objective_tokens;
    case TASK_ANSWERS:
        return &objective_span;
    default:
        return d->numbers ? &objective_regress : &objective_classify;
    }
}

static void encode_all(struct task_reader *r)
{
    static void (*const encoders[])(struct task_reader *, const struct task_example *) = {
        [TASK_GLUE] = encode_text,        [TASK_PLAIN] = encode_text,
        [TASK_ENDINGS] = encode_choices,  [TASK_WORDS] = encode_words,
        [TASK_ANSWERS] = encode_question, [TASK_TREES] = encode_text,
        [TASK_TWEETS] = encode_text,      [TASK_SIDES] = encode_text};
    for (size_t k = 0; k < r->set->count; k++)
        encoders[r->set->task->format](r, &r->set->example[k]);
}

static int count_samples(struct task_samples *s, const char *path, struct error *e)
{
    enum { MOST = 1 << 30 };
    s->group = s->set.task->format == TASK_ENDINGS ? TASK_CHOICES : 1;
    if (s->sequences > MOST)
        return error_set(e, ERROR_INPUT, "%s: more than 2^30 sequences", path);
    s->base.count = (uint32_t)s->sequences / s->group;
    return 0;
}

static int make_samples(struct task_samples *s, const struct objective_source *from,
                        const char *path, struct error *e)
{
    const struct dataset *d = &s->set;
    uint32_t *number = memory_new(d->n_classes, sizeof *number);
    struct task_reader r = {.to = s, .from = from, .number = number, .set = d};
    s->base.natural = objective_of(d);
    int result = number_classes(s, from->like, path, number, e);
    if (result == 0) {
        encode_all(&r);
        if (!d->numbers)
            name_classes(s, from->like);
        else
            s->base.labels = 1;
        result = count_samples(s, path, e);
    }
    tokens_finish(&r.tokens);
    free(number);
    return result;
}

/* ---- files ---- */

/* Labels and answers that predictions are compared with, of a dev file: max_length does not cut them. */
static void add_gold(XXH3_state_t *state, const struct dataset *d)
{
    for (size_t k = 0; k < d->count; k++) {
        const struct task_example *x = &d->example[k];
        for (uint32_t i = 0; i < x->labels; i++)
            XXH3_128bits_update(state, x->label[i], strlen(x->label[i]) + 1);
        for (uint32_t i = 0; i < x->golds; i++)
            XXH3_128bits_update(state, x->gold[i], strlen(x->gold[i]) + 1);
    }
}

static void set_sum(struct task_samples *s)
{
    XXH3_state_t *state = XXH3_createState();
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, s->token_id, s->base.tokens * sizeof *s->token_id);
    for (size_t k = 0; k < s->sequences; k++) {
        const struct task_sequence *q = &s->sequence[k];
        const uint32_t each[] = {q->tokens, q->first_part, q->labels};
        XXH3_128bits_update(state, each, sizeof each);
    }
    XXH3_128bits_update(state, s->label, s->labels * sizeof *s->label);
    add_gold(state, &s->set);
    const XXH128_hash_t sum = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    snprintf(s->base.sum, sizeof s->base.sum, "%016" PRIx64 "%016" PRIx64, sum.high64,
             sum.low64);
}

static int check_set(const struct task_samples *s, const struct objective_source *from,
                     const char *path, struct error *e)
{
    const struct dataset *d = &s->set;
    if (!d->labelled)
        return error_set(e, ERROR_INPUT, "%s: it has no labels", path);
    if (d->task->format == TASK_ANSWERS || d->numbers || from->like || d->n_classes > 1)
        return 0;
    return error_set(e, ERROR_INPUT, "%s: %u different labels; 2 or more are expected", path,
                     d->n_classes);
}

static int read_file(struct task_samples *s, const struct objective_source *from,
                     const char *path, struct error *e)
{
    const bool numbers =
        from->regression || (from->like && from->like->natural == &objective_regress);
    const struct dataset_options how = {
        .numbers = numbers, .classes = from->like && !numbers, .phrases = !from->held_out};
    if (dataset_load(from->task, path, &how, &s->set, e) < 0 ||
        check_set(s, from, path, e) < 0 || make_samples(s, from, path, e) < 0)
        return -1;
    s->check = s->set.check;
    if (!from->held_out)
        dataset_finish(&s->set); /* samples are all that training reads */
    set_sum(s);
    return 0;
}

void task_close(struct objective_data *base)
{
    struct task_samples *s = (struct task_samples *)base;
    if (!s)
        return;
    for (uint32_t k = 0; s->name && k < s->base.labels; k++)
        free(s->name[k]);
    free(s->name);
    free(s->sequence);
    free(s->token_id);
    free(s->label);
    dataset_finish(&s->set);
    free(s);
}

const struct dataset *task_dataset(const struct objective_data *d)
{
    const struct task_samples *s = (const struct task_samples *)d;
    return s->set.task ? &s->set : NULL;
}

struct objective_data *task_open(const struct objective_source *from, struct error *e)
{
    if (!from->tokenizer) {
        error_set(e, ERROR_INPUT, "%s: the model has no tokenizer for its texts", from->path);
        return NULL;
    }
    char *path =
        task_file(from->task, from->path, from->held_out ? TASK_DEV : TASK_TRAIN, false, e);
    if (!path)
        return NULL;
    struct task_samples *s = memory_new(1, sizeof *s);
    int r = read_file(s, from, path, e);
    free(path);
    if (r == 0)
        return &s->base;
    task_close(&s->base);
    return NULL;
}
