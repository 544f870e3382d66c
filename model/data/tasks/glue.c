/* SPDX-License-Identifier: Apache-2.0 */
/* GLUE's TSV: columns by the names of the header, no quotes. CoLA has no header, its test file has one. SciTail has none. */
#include "model/data/tasks/reading.h"
#include <string.h>

struct columns {
    int text[2], label; /* -1: none */
    size_t least;       /* fields of a row */
};

static size_t text_columns(const struct data_task *task)
{
    return task->text[1] ? 2 : 1;
}

static int find_columns(const struct data_task *task, const struct rows *r, struct columns *ret,
                        struct error *e)
{
    *ret = (struct columns){{-1, -1}, rows_find(r, task->label), 0};
    int last = ret->label;
    for (size_t k = 0; k < text_columns(task); k++) {
        ret->text[k] = rows_find(r, task->text[k]);
        if (ret->text[k] < 0)
            return rows_fail(r, 0, e, "a header line with a column \"%s\" is expected",
                             task->text[k]);
        last = ret->text[k] > last ? ret->text[k] : last;
    }
    ret->least = (size_t)last + 1;
    return 0;
}

static bool label_is_fine(const struct data_task *task, const char *label)
{
    double value;
    if (task->numbers)
        return dataset_number(label, &value);
    for (size_t k = 0; k < TASK_CLASSES && task->classes[k]; k++)
        if (!strcmp(task->classes[k], label))
            return true;
    return false;
}

static int refuse_label(const struct data_task *task, const struct rows *r, int column,
                        struct error *e)
{
    struct text names = {0};
    for (size_t k = 0; k < TASK_CLASSES && task->classes[k]; k++)
        text_add(&names, "%s%s", k ? ", " : "one of ", task->classes[k]);
    rows_fail(r, (size_t)column, e, "label \"%.60s\": %s is expected",
              rows_field(r, (size_t)column), task->numbers ? "a number" : text_get(&names));
    text_finish(&names);
    return -1;
}

static int take_row(struct dataset *d, const struct rows *r, const struct columns *c,
                    struct error *e)
{
    const struct data_task *task = d->task;
    bool whole = r->fields >= c->least;
    bool fine = whole && (c->label < 0 || label_is_fine(task, rows_field(r, (size_t)c->label)));
    if (!fine && task->skips) {
        dataset_skip(d, r->field[0].line);
        return 0;
    }
    if (!whole)
        return rows_fail(r, r->fields - 1, e, "the last of %zu columns; %zu are expected",
                         r->fields, c->least);
    if (!fine)
        return refuse_label(task, r, c->label, e);
    size_t texts = text_columns(task);
    struct task_example *x = dataset_add(d, (uint32_t)texts, c->label >= 0);
    for (size_t k = 0; k < texts; k++)
        x->text[k] = dataset_keep(d, rows_field(r, (size_t)c->text[k]));
    x->line = r->field[0].line;
    if (c->label < 0)
        return 0;
    x->label[0] = dataset_keep(d, rows_field(r, (size_t)c->label));
    x->column = r->field[c->label].column;
    return 0;
}

static int take_first(struct dataset *d, struct rows *r, struct columns *c, struct error *e)
{
    const struct task_columns *at = d->task->headless;
    if (!at || rows_find(r, d->task->text[0]) >= 0)
        return find_columns(d->task, r, c, e);
    *c = (struct columns){{(int)at->text[0], (int)at->text[1]}, (int)at->label, 0};
    for (size_t k = 0; k < text_columns(d->task); k++)
        c->least = c->text[k] >= (int)c->least ? (size_t)c->text[k] + 1 : c->least;
    c->least = at->label >= c->least ? at->label + 1 : c->least;
    return take_row(d, r, c, e);
}

int read_glue(struct dataset *d, const struct task_source *from, struct error *e)
{
    struct rows r;
    struct columns c = {{0}, 0, 0};
    rows_begin(&r, from, '\t');
    int more = rows_next(&r, e);
    if (more > 0 && take_first(d, &r, &c, e) < 0)
        more = -1;
    while (more > 0 && (more = rows_next(&r, e)) > 0) {
        bool blank = r.fields == 1 && !*rows_field(&r, 0);
        if (!blank && take_row(d, &r, &c, e) < 0)
            more = -1;
    }
    d->labelled = c.label >= 0;
    rows_finish(&r);
    return more;
}
