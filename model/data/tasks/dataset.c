/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/tasks/dataset.h"
#include "masks/base/memory.h"
#include "masks/base/number.h"
#include "model/data/tasks/reading.h"
#include "model/data/tasks/source.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *own(struct dataset *d, void *memory)
{
    *MEMORY_PUSH(d->owned, d->n_owned, d->owned_capacity) = memory;
    return memory;
}

const char *dataset_keep(struct dataset *d, const char *text)
{
    return own(d, memory_text(text));
}

const char *dataset_keep_number(struct dataset *d, uint64_t number)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    return dataset_keep(d, digits);
}

void *dataset_array(struct dataset *d, size_t count, size_t size)
{
    return own(d, memory_new(count, size));
}

struct task_example *dataset_add(struct dataset *d, uint32_t texts, uint32_t labels)
{
    struct task_example *x = MEMORY_PUSH(d->example, d->count, d->capacity);
    *x = (struct task_example){.texts = texts, .labels = labels};
    x->id = dataset_keep_number(d, d->count - 1 + d->n_skipped);
    x->text = dataset_array(d, texts, sizeof *x->text);
    x->label = dataset_array(d, labels, sizeof *x->label);
    return x;
}

bool dataset_labels_agree(struct dataset *d, bool labelled)
{
    if (!d->count)
        d->labelled = labelled;
    return d->labelled == labelled;
}

void dataset_skip(struct dataset *d, uint32_t line)
{
    if (!d->n_skipped)
        d->first_skipped = line;
    char *id = (char *)dataset_keep_number(d, d->count + d->n_skipped);
    *MEMORY_PUSH(d->skipped, d->n_skipped, d->skipped_capacity) = id;
}

int dataset_check_label(const struct rows *r, size_t k, struct error *e)
{
    struct text_check c = {0};
    const char *label = rows_field(r, k);
    text_check_line(&c, label, strlen(label));
    return c.replaced
               ? rows_fail(r, k, e, "the label is not UTF-8; a label in UTF-8 is expected")
               : 0;
}

/* ---- classes ---- */

bool dataset_number(const char *text, double *ret)
{
    char *end;
    double value = number_read(text, &end);
    if (end == text || *end || !isfinite(value))
        return false;
    *ret = value;
    return true;
}

int dataset_class(const struct dataset *d, const char *name)
{
    for (uint32_t k = 0; k < d->n_classes; k++)
        if (!strcmp(d->classes[k], name))
            return (int)k;
    return -1;
}

/* True for a regression: each label is a number, and at least one has a decimal point. */
static bool are_numbers(const struct dataset *d)
{
    bool point = false;
    double value;
    for (size_t k = 0; k < d->count; k++) {
        const char *label = d->example[k].label[0];
        if (!dataset_number(label, &value))
            return false;
        point |= strchr(label, '.') != NULL;
    }
    return point;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int collect_classes(struct dataset *d, const char *path, struct error *e)
{
    d->classes = dataset_array(d, DATASET_CLASSES, sizeof *d->classes);
    for (size_t k = 0; k < d->count; k++)
        for (uint32_t j = 0; j < d->example[k].labels; j++) {
            if (dataset_class(d, d->example[k].label[j]) >= 0)
                continue;
            if (d->n_classes == DATASET_CLASSES)
                return error_set(e, ERROR_INPUT,
                                 "%s:%u: more than %d different labels; numbers of a "
                                 "regression need a decimal point in one of them",
                                 path, d->example[k].line, DATASET_CLASSES);
            d->classes[d->n_classes++] = d->example[k].label[j];
        }
    qsort(d->classes, d->n_classes, sizeof *d->classes, by_name);
    return 0;
}

static int set_classes(struct dataset *d, const char *path, struct error *e)
{
    const char *const *fixed = d->task->classes;
    if (!fixed[0] && collect_classes(d, path, e) < 0)
        return -1;
    if (fixed[0])
        d->classes = dataset_array(d, TASK_CLASSES, sizeof *d->classes);
    for (; fixed[0] && d->n_classes < TASK_CLASSES && fixed[d->n_classes]; d->n_classes++)
        d->classes[d->n_classes] = fixed[d->n_classes];
    for (size_t k = 0; d->labelled && k < d->count; k++) {
        struct task_example *x = &d->example[k];
        x->class_of = dataset_array(d, x->labels, sizeof *x->class_of);
        for (uint32_t j = 0; j < x->labels; j++)
            x->class_of[j] = (uint32_t)dataset_class(d, x->label[j]);
    }
    return 0;
}

static int set_values(struct dataset *d, const char *path, struct error *e)
{
    for (size_t k = 0; d->labelled && k < d->count; k++) {
        struct task_example *x = &d->example[k];
        if (!dataset_number(x->label[0], &x->value))
            return error_set(e, ERROR_INPUT, "%s:%u:%u: label \"%.60s\": a number is expected",
                             path, x->line, x->column, x->label[0]);
        if (fabs(x->value) > FLT_MAX) /* models answer in float32 */
            return error_set(e, ERROR_INPUT,
                             "%s:%u:%u: label \"%.60s\": a number within +-3.4e38 is expected",
                             path, x->line, x->column, x->label[0]);
    }
    return 0;
}

static int set_labels(struct dataset *d, const struct dataset_options *how, const char *path,
                      struct error *e)
{
    if (d->task->format == TASK_ANSWERS)
        return 0;
    if (d->task->format == TASK_PLAIN)
        d->numbers =
            (how && how->numbers) || (d->labelled && !(how && how->classes) && are_numbers(d));
    return d->numbers ? set_values(d, path, e) : set_classes(d, path, e);
}

/* ---- reading ---- */

/* Refuses files of another format by their first bytes. */
static int check_heads(const struct task_source *from, struct error *e)
{
    for (; from; from = from->next)
        if (from->size && text_check_head(from->path, (const char *)from->bytes, from->size,
                                          "a name that ends in ", e) < 0)
            return -1;
    return 0;
}

/* Counts the bytes that are not UTF-8; of several files, lines are those of each. */
static int check_lines(struct text_check *c, const struct task_source *from, struct error *e)
{
    for (const struct task_source *s = from; s; s = s->next) {
        c->lines = 0;
        for (size_t at = 0, next; at < s->size; at = next + 1) {
            const uint8_t *newline = memchr(s->bytes + at, '\n', s->size - at);
            next = newline ? (size_t)(newline - s->bytes) : s->size;
            text_check_line(c, (const char *)s->bytes + at, next - at);
        }
    }
    return text_check_end(c, from->path, e);
}

int dataset_read(const struct data_task *task, const struct task_source *from,
                 const struct dataset_options *how, struct dataset *ret, struct error *e)
{
    static int (*const readers[])(struct dataset *, const struct task_source *,
                                  struct error *) = {
        [TASK_GLUE] = read_glue,       [TASK_PLAIN] = read_plain,
        [TASK_ENDINGS] = read_endings, [TASK_WORDS] = read_words,
        [TASK_ANSWERS] = read_answers, [TASK_TREES] = read_trees,
        [TASK_TWEETS] = read_tweets,   [TASK_SIDES] = read_sides};
    struct dataset d = {.task = task, .labelled = true, .numbers = task->numbers};
    d.phrases = how && how->phrases && task->format == TASK_TREES;
    int result = check_heads(from, e);
    if (result == 0)
        result = readers[task->format](&d, from, e);
    if (result == 0)
        result = check_lines(&d.check, from, e);
    if (result == 0 && !d.count)
        result = error_set(e, ERROR_INPUT, "%s:1:1: no example; examples of %s are expected",
                           from->path, task->name);
    if (result == 0)
        result = set_labels(&d, how, from->path, e);
    if (result < 0)
        dataset_finish(&d);
    else
        *ret = d;
    return result;
}

/* Reads a task with one file for each class. */
static int load_sides(const struct data_task *task, const char *folder,
                      const struct dataset_options *how, struct dataset *ret, struct error *e)
{
    static const char *const name[] = {"neg.txt", "pos.txt"};
    struct loaded_source side[2] = {{.unpacked = NULL}};
    struct text path[2] = {{0}};
    int result = 0;
    for (int k = 0; k < 2; k++) {
        text_add(&path[k], "%s/%s", folder, name[k]);
        if (result == 0)
            result = source_load(text_get(&path[k]), &side[k], e);
        side[k].from.label = task->classes[k];
    }
    side[0].from.next = &side[1].from;
    if (result == 0)
        result = dataset_read(task, &side[0].from, how, ret, e);
    for (int k = 0; k < 2; k++) {
        source_unload(&side[k]);
        text_finish(&path[k]);
    }
    return result;
}

int dataset_load(const struct data_task *task, const char *path,
                 const struct dataset_options *how, struct dataset *ret, struct error *e)
{
    struct loaded_source s;
    if (task->format == TASK_SIDES)
        return load_sides(task, path, how, ret, e);
    if (source_load(path, &s, e) < 0)
        return -1;
    int result = dataset_read(task, &s.from, how, ret, e);
    source_unload(&s);
    return result;
}

void dataset_finish(struct dataset *d)
{
    for (size_t k = 0; k < d->n_owned; k++)
        free(d->owned[k]);
    free(d->owned);
    free(d->skipped);
    free(d->example);
    *d = (struct dataset){0};
}
