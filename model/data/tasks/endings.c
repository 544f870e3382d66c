/* SPDX-License-Identifier: Apache-2.0 */
/* SWAG's CSV: which of four endings follows. Each ending stands behind the beginning of its sentence. */
#include "model/data/tasks/reading.h"
#include <string.h>

enum { FIRST, BEGINNING, ENDINGS, LABEL = ENDINGS + 4, COLUMNS };

static const char *const names[COLUMNS] = {"sent1",   "sent2",   "ending0", "ending1",
                                           "ending2", "ending3", "label"};

static int find_columns(const struct rows *r, int at[COLUMNS], struct error *e)
{
    for (int k = 0; k < COLUMNS; k++)
        if ((at[k] = rows_find(r, names[k])) < 0 && k != LABEL)
            return rows_fail(r, 0, e, "a header line with a column \"%s\" is expected",
                             names[k]);
    return 0;
}

static const char *join(struct dataset *d, const char *beginning, const char *ending)
{
    struct text t = {0};
    text_add(&t, "%s%s%s", beginning, *beginning ? " " : "", ending);
    const char *kept = dataset_keep(d, text_get(&t));
    text_finish(&t);
    return kept;
}

static int take_row(struct dataset *d, const struct rows *r, size_t columns,
                    const int at[COLUMNS], struct error *e)
{
    if (r->fields != columns)
        return rows_fail(r, r->fields - 1, e, "the last of %zu columns; %zu are expected",
                         r->fields, columns);
    size_t label = (size_t)at[LABEL];
    if (d->labelled &&
        (strlen(rows_field(r, label)) != 1 || !strchr("0123", *rows_field(r, label))))
        return rows_fail(r, label, e, "label \"%.60s\": one of 0, 1, 2, 3 is expected",
                         rows_field(r, label));
    struct task_example *x = dataset_add(d, 5, (uint32_t)d->labelled);
    x->line = r->field[0].line;
    x->text[0] = dataset_keep(d, rows_field(r, (size_t)at[FIRST]));
    for (int k = 0; k < 4; k++)
        x->text[1 + k] = join(d, rows_field(r, (size_t)at[BEGINNING]),
                              rows_field(r, (size_t)at[ENDINGS + k]));
    if (!d->labelled)
        return 0;
    x->label[0] = dataset_keep(d, rows_field(r, label));
    x->line = r->field[label].line;
    x->column = r->field[label].column;
    return 0;
}

int read_endings(struct dataset *d, const struct task_source *from, struct error *e)
{
    struct rows r;
    int at[COLUMNS] = {0};
    rows_begin(&r, from, ',');
    int more = rows_next(&r, e);
    size_t columns = r.fields;
    if (more > 0 && find_columns(&r, at, e) < 0)
        more = -1;
    d->labelled = at[LABEL] >= 0;
    while (more > 0 && (more = rows_next(&r, e)) > 0)
        if (!(r.fields == 1 && !*rows_field(&r, 0)) && take_row(d, &r, columns, at, e) < 0)
            more = -1;
    rows_finish(&r);
    return more;
}
