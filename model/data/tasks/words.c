/* SPDX-License-Identifier: Apache-2.0 */
/* The task tokens: a word, a tab, its label on each line; columns between them are passed over. A blank line ends a
   sentence, and a line -DOCSTART- counts as one. */
#include "masks/base/memory.h"
#include "model/data/tasks/reading.h"
#include <stdlib.h>
#include <string.h>

struct sentence {
    const char **cell; /* word, label, word, label, .. */
    size_t cells, capacity;
    uint32_t line;
};

static void close_sentence(struct dataset *d, struct sentence *s)
{
    uint32_t words = (uint32_t)(s->cells / 2);
    if (!words)
        return;
    struct task_example *x = dataset_add(d, words, words);
    x->line = s->line;
    x->column = 1;
    for (uint32_t k = 0; k < words; k++) {
        x->text[k] = s->cell[2 * k];
        x->label[k] = s->cell[2 * k + 1];
    }
    s->cells = 0;
}

static int take_row(struct dataset *d, const struct rows *r, struct sentence *s,
                    struct error *e)
{
    const char *word = rows_field(r, 0);
    if ((r->fields == 1 && !*word) || !strncmp(word, "-DOCSTART-", 10)) {
        close_sentence(d, s);
        return 0;
    }
    const char *label = rows_field(r, r->fields - 1);
    if (r->fields < 2 || !*word || !*label)
        return rows_fail(r, 0, e, "a word, a tab and its label are expected");
    if (dataset_check_label(r, r->fields - 1, e) < 0)
        return -1;
    if (!s->cells)
        s->line = r->field[0].line;
    *MEMORY_PUSH(s->cell, s->cells, s->capacity) = dataset_keep(d, word);
    *MEMORY_PUSH(s->cell, s->cells, s->capacity) = dataset_keep(d, label);
    return 0;
}

int read_words(struct dataset *d, const struct task_source *from, struct error *e)
{
    struct rows r;
    struct sentence s = {0};
    int more;
    rows_begin(&r, from, '\t');
    while ((more = rows_next(&r, e)) > 0)
        if (take_row(d, &r, &s, e) < 0) {
            more = -1;
            break;
        }
    close_sentence(d, &s);
    free(s.cell);
    rows_finish(&r);
    return more;
}
