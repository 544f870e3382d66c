/* SPDX-License-Identifier: Apache-2.0 */
/* SenTube as Barnes et al. (2017) distribute it: neg.txt and pos.txt, a text a line. Rows of neg.txt come first. */
#include "model/data/tasks/reading.h"
#include <string.h>

static int read_side(struct dataset *d, const struct task_source *from, struct error *e)
{
    struct rows r;
    int more;
    rows_begin(&r, from, 0);
    while ((more = rows_next(&r, e)) > 0) {
        const char *text = rows_field(&r, 0);
        if (!text[strspn(text, " \t\r")])
            continue;
        struct task_example *x = dataset_add(d, 1, 1);
        x->line = r.field[0].line;
        x->column = 1;
        x->text[0] = dataset_keep(d, text);
        x->label[0] = dataset_keep(d, from->label);
    }
    rows_finish(&r);
    return more;
}

int read_sides(struct dataset *d, const struct task_source *from, struct error *e)
{
    for (; from; from = from->next)
        if (!from->label)
            return error_set(e, ERROR_INPUT,
                             "%s: a folder with neg.txt and pos.txt is expected", from->path);
        else if (read_side(d, from, e) < 0)
            return -1;
    return 0;
}
