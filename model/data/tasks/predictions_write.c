/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/file.h"
#include "model/data/tasks/predictions.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_EXACT = JSON_COMPACT | JSON_REAL_PRECISION(17) };

struct writing {
    const struct dataset *d;
    const struct predictions *p;
    const struct prediction_scores *of; /* null: none */
    const char *path;
    struct error *e;
};

static int fail(const struct writing *w, size_t k, const char *what)
{
    return error_set(w->e, ERROR_INPUT, "%s: id \"%.60s\": %s", w->path, w->d->example[k].id,
                     what);
}

static int check_all(const struct writing *w)
{
    for (size_t k = 0; k < w->d->count; k++) {
        if (!w->p->of[k].line)
            return fail(w, k, "there is no prediction to be written");
        for (uint32_t j = 0; w->of && j < w->of[k].count; j++)
            if (!isfinite(w->of[k].value[j]))
                return fail(w, k, "its score or a probability is not finite");
    }
    return 0;
}

/* ---- JSON ---- */

static bool is_utf8(const char *text)
{
    json_t *string = json_string(text);
    json_decref(string);
    return string != NULL;
}

static int check_utf8(const struct writing *w, size_t k)
{
    for (uint32_t j = 0; j < w->p->of[k].parts; j++)
        if (!is_utf8(w->p->of[k].part[j]))
            return fail(w, k, "its prediction is not UTF-8, which JSON needs");
    return 0;
}

static json_t *json_of_part(const struct dataset *d, const char *part)
{
    double value;
    if (!d->numbers || !dataset_number(part, &value))
        return json_string(part);
    bool whole = !strpbrk(part, ".eE") && fabs(value) < 0x1p53;
    return whole ? json_integer((json_int_t)value) : json_real(value);
}

static json_t *json_of_prediction(const struct dataset *d, const struct prediction *p)
{
    if (d->task->format != TASK_WORDS)
        return json_of_part(d, p->part[0]);
    json_t *list = json_array();
    for (uint32_t j = 0; j < p->parts; j++)
        json_array_append_new(list, json_of_part(d, p->part[j]));
    return list;
}

static json_t *json_of_values(const double *value, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t j = 0; j < count; j++)
        json_array_append_new(list, json_real(value[j]));
    return list;
}

/* JSON of the scores; for tokens a list for each word. */
static json_t *json_of_scores(const struct writing *w, size_t k)
{
    const struct prediction_scores *of = &w->of[k];
    uint32_t words = w->p->of[k].parts, classes = words ? of->count / words : 0;
    if (w->d->task->format != TASK_WORDS || classes * words != of->count)
        return json_of_values(of->value, of->count);
    json_t *list = json_array();
    for (uint32_t j = 0; j < words; j++)
        json_array_append_new(list, json_of_values(of->value + j * classes, classes));
    return list;
}

/* Its id is the number of a row. */
static void add_line(const struct writing *w, size_t k, struct text *to)
{
    json_t *line = json_pack("{s:I, s:o}", "id", (json_int_t)atoll(w->d->example[k].id),
                             "prediction", json_of_prediction(w->d, &w->p->of[k]));
    uint32_t scores = w->of ? w->of[k].count : 0;
    if (scores == 1)
        json_object_set_new(line, "score", json_real(w->of[k].value[0]));
    else if (scores)
        json_object_set_new(line, "probabilities", json_of_scores(w, k));
    char *bytes = json_dumps(line, JSON_EXACT);
    text_add(to, "%s\n", bytes);
    free(bytes);
    json_decref(line);
}

static int write_lines(const struct writing *w, struct text *to)
{
    for (size_t k = 0; k < w->d->count; k++) {
        if (check_utf8(w, k) < 0)
            return -1;
        add_line(w, k, to);
    }
    return 0;
}

/* SQuAD's {id: text}. */
static int write_texts(const struct writing *w, struct text *to)
{
    json_t *all = json_object();
    int result = 0;
    for (size_t k = 0; k < w->d->count && result == 0; k++) {
        const char *id = w->d->example[k].id;
        result = check_utf8(w, k);
        if (result == 0 && json_object_get(all, id))
            result = fail(w, k, "it stands twice in the data");
        if (result == 0)
            json_object_set_new(all, id, json_string(w->p->of[k].part[0]));
    }
    char *bytes = json_dumps(all, JSON_INDENT(1));
    text_add(to, "%s\n", bytes);
    free(bytes);
    json_decref(all);
    return result;
}

/* ---- TSV ---- */

static int write_rows(const struct writing *w, struct text *to)
{
    text_add(to, "index\tprediction\n");
    for (size_t k = 0; k < w->d->count; k++) {
        const char *part = w->p->of[k].part[0];
        if (strpbrk(part, "\t\n\r"))
            return fail(w, k, "its prediction has a tab or a newline, which a TSV cannot hold");
        text_add(to, "%s\t%s\n", w->d->example[k].id, part);
    }
    return 0;
}

static bool ends_with(const char *path, const char *ending)
{
    size_t size = strlen(path), length = strlen(ending);
    return size > length && !strcmp(path + size - length, ending);
}

static int write_all(const struct writing *w, struct text *to)
{
    const struct data_task *task = w->d->task;
    bool rows = ends_with(w->path, ".tsv");
    if (rows && (task->format == TASK_ANSWERS || task->format == TASK_WORDS))
        return error_set(w->e, ERROR_INPUT,
                         "%s: predictions of %s are JSON; a name that ends in %s is expected",
                         w->path, task->name, task->format == TASK_WORDS ? ".jsonl" : ".json");
    if (check_all(w) < 0)
        return -1;
    if (task->format == TASK_ANSWERS)
        return write_texts(w, to);
    return rows ? write_rows(w, to) : write_lines(w, to);
}

int predictions_format(const char *path, const struct dataset *d, const struct predictions *p,
                       const struct prediction_scores *of, struct text *to, struct error *e)
{
    return write_all(&(struct writing){d, p, of, path, e}, to);
}

int predictions_save(const char *path, const struct dataset *d, const struct predictions *p,
                     const struct prediction_scores *of, struct error *e)
{
    struct text bytes = {0};
    int result = predictions_format(path, d, p, of, &bytes, e);
    if (result == 0)
        result = file_write(path, text_get(&bytes), bytes.length, e);
    text_finish(&bytes);
    return result;
}
