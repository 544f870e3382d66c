/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks text and pair: TSV with a header, or JSONL with the same names. Labels of JSON may be texts, whole numbers,
   numbers or truth values. */
#include "masks/base/json_load.h"
#include "model/data/tasks/json_label.h"
#include "model/data/tasks/reading.h"
#include <ctype.h>
#include <string.h>

/* ---- TSV ---- */

struct columns {
    int text[2], label;
};

static size_t text_columns(const struct data_task *task)
{
    return task->text[1] ? 2 : 1;
}

static int find_columns(struct dataset *d, const struct rows *r, struct columns *c,
                        struct error *e)
{
    for (size_t k = 0; k < text_columns(d->task); k++)
        if ((c->text[k] = rows_find(r, d->task->text[k])) < 0)
            return rows_fail(r, 0, e, "a header line with a column \"%s\" is expected",
                             d->task->text[k]);
    c->label = rows_find(r, d->task->label);
    d->labelled = c->label >= 0;
    return 0;
}

static int take_row(struct dataset *d, const struct rows *r, size_t columns,
                    const struct columns *c, struct error *e)
{
    if (r->fields != columns)
        return rows_fail(r, r->fields - 1, e, "the last of %zu columns; %zu are expected",
                         r->fields, columns);
    if (d->labelled && !*rows_field(r, (size_t)c->label))
        return rows_fail(r, (size_t)c->label, e, "the label is empty");
    if (d->labelled && dataset_check_label(r, (size_t)c->label, e) < 0)
        return -1;
    struct task_example *x =
        dataset_add(d, (uint32_t)text_columns(d->task), (uint32_t)d->labelled);
    for (size_t k = 0; k < x->texts; k++)
        x->text[k] = dataset_keep(d, rows_field(r, (size_t)c->text[k]));
    x->line = r->field[0].line;
    if (!d->labelled)
        return 0;
    x->label[0] = dataset_keep(d, rows_field(r, (size_t)c->label));
    x->column = r->field[c->label].column;
    return 0;
}

static int read_tsv(struct dataset *d, const struct task_source *from, struct error *e)
{
    struct rows r;
    struct columns c = {{0}, 0};
    rows_begin(&r, from, '\t');
    int more = rows_next(&r, e);
    size_t columns = r.fields;
    if (more > 0 && find_columns(d, &r, &c, e) < 0)
        more = -1;
    while (more > 0 && (more = rows_next(&r, e)) > 0) {
        bool blank = r.fields == 1 && !*rows_field(&r, 0);
        if (!blank && take_row(d, &r, columns, &c, e) < 0)
            more = -1;
    }
    rows_finish(&r);
    return more;
}

/* ---- JSONL ---- */

static int take_object(struct dataset *d, const json_t *object, const char *path, uint32_t line,
                       struct error *e)
{
    json_t *label = json_object_get(object, d->task->label);
    if (!dataset_labels_agree(d, label != NULL))
        return error_set(
            e, ERROR_INPUT,
            "%s:%u:1: some lines have a \"%s\" and some none; all or none is expected", path,
            line, d->task->label);
    struct task_example *x =
        dataset_add(d, (uint32_t)text_columns(d->task), (uint32_t)d->labelled);
    x->line = line;
    x->column = 1;
    for (size_t k = 0; k < x->texts; k++) {
        const char *text = json_string_value(json_object_get(object, d->task->text[k]));
        if (!text)
            return error_set(e, ERROR_INPUT, "%s:%u:1: a text \"%s\" is expected", path, line,
                             d->task->text[k]);
        x->text[k] = dataset_keep(d, text);
    }
    if (!d->labelled)
        return 0;
    char buffer[JSON_LABEL_BYTES];
    const char *text = json_label(label, buffer);
    if (!text || !*text)
        return error_set(e, ERROR_INPUT, "%s:%u:1: a \"%s\" is expected, a text or a number",
                         path, line, d->task->label);
    x->label[0] = dataset_keep(d, text);
    return 0;
}

static int read_jsonl(struct dataset *d, const struct task_source *from, struct error *e)
{
    struct json_lines l = {.from = from};
    int more;
    while ((more = json_lines_next(&l, e)) > 0)
        if (take_object(d, l.object, from->path, l.line, e) < 0) {
            more = -1;
            break;
        }
    json_decref(l.object);
    return more;
}

int read_plain(struct dataset *d, const struct task_source *from, struct error *e)
{
    return is_json(from) ? read_jsonl(d, from, e) : read_tsv(d, from, e);
}
