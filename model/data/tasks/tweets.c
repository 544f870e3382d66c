/* SPDX-License-Identifier: Apache-2.0 */
/* SemEval's tweets: the tweet's id, the user's id (2013), the label (2013: in quotes), the text, without a header. The labels
   objective and objective-OR-neutral of 2013 mean neutral. A deleted tweet has the text "Not Available" and is skipped.
   Test files without labels have unknwn. */
#include "model/data/tasks/reading.h"
#include <string.h>

static const struct {
    const char *written, *class; /* null: no label */
} labels[] = {
    {"negative", "negative"},
    {"neutral", "neutral"},
    {"positive", "positive"},
    {"objective", "neutral"},
    {"objective-OR-neutral", "neutral"},
    {"unknwn", NULL},
};

/* The row of labels[], or -1. */
static int find_label(const char *text)
{
    size_t size = strlen(text);
    if (size > 1 && *text == '"' && text[size - 1] == '"') {
        text++;
        size -= 2;
    }
    for (size_t k = 0; k < sizeof labels / sizeof *labels; k++)
        if (strlen(labels[k].written) == size && !memcmp(labels[k].written, text, size))
            return (int)k;
    return -1;
}

/* Columns before the label, or 0 with *e set. */
static size_t label_column(const struct rows *r, size_t fields, struct error *e)
{
    if (fields < 3 || fields > 4)
        rows_fail(r, fields - 1, e, "the last of %zu columns; 3 or 4 are expected", fields);
    else if (find_label(rows_field(r, fields - 2)) < 0)
        rows_fail(r, fields - 2, e,
                  "label \"%.60s\": negative, neutral or positive is expected",
                  rows_field(r, fields - 2));
    else
        return fields - 2;
    return 0;
}

static int take_row(struct dataset *d, const struct rows *r, struct error *e)
{
    size_t fields = r->fields;
    while (fields > 3 && !*rows_field(r, fields - 1)) /* rows of some years end in a tab */
        fields--;
    size_t column = label_column(r, fields, e);
    if (!column)
        return -1;
    const char *class = labels[find_label(rows_field(r, column))].class;
    const char *text = rows_field(r, column + 1);
    if (!dataset_labels_agree(d, class != NULL))
        return rows_fail(r, column, e,
                         "some rows have a label and some unknwn; all or none is expected");
    if (!strcmp(text, "Not Available")) {
        dataset_skip(d, r->field[0].line);
        return 0;
    }
    struct task_example *x = dataset_add(d, 1, (uint32_t)d->labelled);
    x->line = r->field[column].line;
    x->column = r->field[column].column;
    x->text[0] = dataset_keep(d, text);
    if (d->labelled)
        x->label[0] = dataset_keep(d, class);
    return 0;
}

int read_tweets(struct dataset *d, const struct task_source *from, struct error *e)
{
    struct rows r;
    int more;
    rows_begin(&r, from, '\t');
    while ((more = rows_next(&r, e)) > 0) {
        bool blank = r.fields == 1 && !*rows_field(&r, 0);
        if (!blank && take_row(d, &r, e) < 0) {
            more = -1;
            break;
        }
    }
    rows_finish(&r);
    return more;
}
