/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/tasks/predictions.h"
#include "masks/base/memory.h"
#include "model/data/tasks/json_label.h"
#include "model/data/tasks/reading.h"
#include "model/data/tasks/source.h"
#include <stdlib.h>
#include <string.h>

struct known {
    const char *id;
    size_t at; /* of the example; SKIPPED: of none */
};

static const size_t SKIPPED = (size_t)-1;

struct matching {
    const struct dataset *d;
    struct known *known; /* sorted */
    size_t n_known;
    struct predictions *p;
    const char *path;
    uint32_t line, column;
    struct error *e;
};

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct known *)a)->id, ((const struct known *)b)->id);
}

static int sort_ids(struct matching *m)
{
    const struct dataset *d = m->d;
    m->n_known = d->count + d->n_skipped;
    m->known = memory_new(m->n_known, sizeof *m->known);
    for (size_t k = 0; k < d->count; k++)
        m->known[k] = (struct known){d->example[k].id, k};
    for (size_t k = 0; k < d->n_skipped; k++)
        m->known[d->count + k] = (struct known){d->skipped[k], SKIPPED};
    qsort(m->known, m->n_known, sizeof *m->known, by_id);
    for (size_t k = 1; k < m->n_known; k++)
        if (!strcmp(m->known[k].id, m->known[k - 1].id))
            return error_set(m->e, ERROR_INPUT, "id \"%.60s\" stands twice in the gold file",
                             m->known[k].id);
    return 0;
}

static int fail(const struct matching *m, const char *what, const char *text,
                const char *expected)
{
    return error_set(m->e, ERROR_INPUT, "%s:%u:%u: %s \"%.60s\": %s", m->path, m->line,
                     m->column, what, text, expected);
}

/* ---- one prediction ---- */

static int check_part(const struct matching *m, const char *part)
{
    const struct dataset *d = m->d;
    double value;
    struct text names = {0};
    if (d->numbers && !dataset_number(part, &value))
        return fail(m, "prediction", part, "a finite number is expected");
    if (!d->task->classes[0] || dataset_class(d, part) >= 0)
        return 0;
    for (uint32_t k = 0; k < d->n_classes; k++)
        text_add(&names, "%s%s", k ? ", " : "one of ", d->classes[k]);
    text_add(&names, " is expected");
    fail(m, "prediction", part, text_get(&names));
    text_finish(&names);
    return -1;
}

/* *ret: where to put it, null for a row that was skipped. */
static int place_of(const struct matching *m, const char *id, struct prediction **ret)
{
    struct known wanted = {id, 0};
    const struct known *k = bsearch(&wanted, m->known, m->n_known, sizeof wanted, by_id);
    *ret = NULL;
    if (!k)
        return fail(m, "id", id, "not in the gold file");
    if (k->at == SKIPPED)
        return 0;
    *ret = &m->p->of[k->at];
    return (*ret)->line ? fail(m, "id", id, "a second prediction of it; one is expected") : 0;
}

static int take_one(const struct matching *m, const char *id, const char *text)
{
    struct prediction *to;
    if (place_of(m, id, &to) < 0)
        return -1;
    if (!to)
        return 0;
    if (check_part(m, text) < 0)
        return -1;
    const char **part = dataset_array(&m->p->texts, 1, sizeof *part);
    part[0] = dataset_keep(&m->p->texts, text);
    *to = (struct prediction){part, 1, m->line ? m->line : 1};
    return 0;
}

/* ---- files ---- */

static int take_words(const struct matching *m, const char *id, const json_t *list)
{
    struct prediction *to;
    if (place_of(m, id, &to) < 0)
        return -1;
    uint32_t words = m->d->example[to - m->p->of].labels;
    if (!json_is_array(list) || json_array_size(list) != words)
        return error_set(m->e, ERROR_INPUT,
                         "%s:%u:1: id \"%.60s\": a list \"prediction\" of %u labels is "
                         "expected, one for each word",
                         m->path, m->line, id, words);
    const char **part = dataset_array(&m->p->texts, words, sizeof *part);
    for (uint32_t k = 0; k < words; k++) {
        char buffer[JSON_LABEL_BYTES];
        const char *label = json_label(json_array_get(list, k), buffer);
        if (!label)
            return fail(m, "id", id, "a label that is neither a text nor a number");
        part[k] = dataset_keep(&m->p->texts, label);
    }
    *to = (struct prediction){part, words, m->line};
    return 0;
}

static int take_object(const struct matching *m, const json_t *object)
{
    char id_buffer[JSON_LABEL_BYTES], buffer[JSON_LABEL_BYTES];
    const json_t *prediction = json_object_get(object, "prediction");
    const char *id = json_label(json_object_get(object, "id"), id_buffer);
    if (!id)
        return error_set(m->e, ERROR_INPUT,
                         "%s:%u:1: an \"id\" is expected, a text or a whole number", m->path,
                         m->line);
    if (m->d->task->format == TASK_WORDS)
        return take_words(m, id, prediction);
    const char *text = json_label(prediction, buffer);
    if (!text)
        return error_set(m->e, ERROR_INPUT,
                         "%s:%u:1: a \"prediction\" is expected, a text or a number", m->path,
                         m->line);
    return take_one(m, id, text);
}

static int read_lines(struct matching *m, const struct task_source *from)
{
    struct json_lines l = {.from = from};
    int more;
    m->column = 1;
    while ((more = json_lines_next(&l, m->e)) > 0) {
        m->line = l.line;
        if (take_object(m, l.object) < 0) {
            more = -1;
            break;
        }
    }
    json_decref(l.object);
    return more;
}

static int take_row(struct matching *m, const struct rows *r)
{
    m->line = r->field[0].line;
    m->column = r->field[0].column;
    if (r->fields == 1 && !*rows_field(r, 0))
        return 0;
    if (r->fields != 2)
        return rows_fail(r, 0, m->e, "an index, a tab and a prediction are expected");
    bool header = m->line == 1 && !strcmp(rows_field(r, 1), "prediction");
    return header ? 0 : take_one(m, rows_field(r, 0), rows_field(r, 1));
}

static int read_submission(struct matching *m, const struct task_source *from)
{
    struct rows r;
    int more;
    rows_begin(&r, from, '\t');
    while ((more = rows_next(&r, m->e)) > 0)
        if (take_row(m, &r) < 0) {
            more = -1;
            break;
        }
    rows_finish(&r);
    return more;
}

static int read_texts(struct matching *m, const struct task_source *from)
{
    json_error_t why;
    json_t *all =
        json_loadb((const char *)from->bytes, from->size, JSON_REJECT_DUPLICATES, &why);
    const char *id;
    json_t *value;
    int result = 0;
    if (!json_is_object(all))
        result = error_set(m->e, ERROR_INPUT, "%s:%d:%d: an object {id: text} is expected: %s",
                           from->path, all ? 1 : why.line, all ? 1 : why.column,
                           all ? "this is something else" : why.text);
    m->line = m->column = 1;
    json_object_foreach(all, id, value)
    {
        if (result == 0 && !json_is_string(value))
            result = fail(m, "id", id, "its prediction is no text");
        if (result == 0)
            result = take_one(m, id, json_string_value(value));
    }
    json_decref(all);
    return result;
}

/* JSONL, where the first line is an object with these two keys and they are not two questions of SQuAD. */
static bool are_lines(const struct matching *m, const struct task_source *from)
{
    struct error ignored;
    struct json_lines l = {.from = from};
    const struct known id = {"id", 0}, prediction = {"prediction", 0};
    bool both = json_lines_next(&l, &ignored) > 0 && json_object_get(l.object, "id") &&
                json_object_get(l.object, "prediction");
    json_decref(l.object);
    return both && !(bsearch(&id, m->known, m->n_known, sizeof id, by_id) &&
                     bsearch(&prediction, m->known, m->n_known, sizeof prediction, by_id));
}

/* ---- the whole ---- */

static int check_missing(const struct matching *m)
{
    size_t missing = 0, first = 0;
    for (size_t k = m->d->count; k-- > 0;)
        if (!m->p->of[k].line) {
            missing++;
            first = k;
        }
    return missing ? error_set(m->e, ERROR_INPUT,
                               "%s: no prediction of id \"%.60s\"; %zu of %zu are missing",
                               m->path, m->d->example[first].id, missing, m->d->count)
                   : 0;
}

static int read_any(struct matching *m, const struct task_source *from)
{
    if (m->d->task->format == TASK_ANSWERS && !are_lines(m, from))
        return read_texts(m, from);
    if (is_json(from) || m->d->task->format == TASK_WORDS)
        return read_lines(m, from);
    return read_submission(m, from);
}

int predictions_read(const struct dataset *d, const struct task_source *from,
                     struct predictions *ret, struct error *e)
{
    struct predictions p;
    predictions_begin(&p, d);
    struct matching m = {.d = d, .p = &p, .path = from->path, .e = e};
    int result = sort_ids(&m);
    if (result == 0)
        result = read_any(&m, from);
    if (result == 0)
        result = check_missing(&m);
    free(m.known);
    if (result < 0)
        predictions_finish(&p);
    else
        *ret = p;
    return result;
}

int predictions_load(const struct dataset *d, const char *path, struct predictions *ret,
                     struct error *e)
{
    struct loaded_source s;
    if (source_load(path, &s, e) < 0)
        return -1;
    int result = predictions_read(d, &s.from, ret, e);
    source_unload(&s);
    return result;
}

void predictions_begin(struct predictions *p, const struct dataset *d)
{
    *p = (struct predictions){.of = memory_new(d->count, sizeof *p->of), .count = d->count};
}

void predictions_set(struct predictions *p, size_t k, const char *const *part, uint32_t parts)
{
    const char **kept = dataset_array(&p->texts, parts, sizeof *kept);
    for (uint32_t j = 0; j < parts; j++)
        kept[j] = dataset_keep(&p->texts, part[j]);
    p->of[k] = (struct prediction){kept, parts, 1};
}

void predictions_finish(struct predictions *p)
{
    free(p->of);
    dataset_finish(&p->texts);
    *p = (struct predictions){0};
}
