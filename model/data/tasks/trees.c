/* SPDX-License-Identifier: Apache-2.0 */
/* SST-1: a tree a line, "(3 (2 It) (4 works))". Each phrase has a label from 0 to 4. Examples are the sentence, then its
   phrases in the order in which they begin. Escapes of the Penn treebank are replaced by their characters. */
#include "masks/base/memory.h"
#include "model/data/tasks/reading.h"
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 65536 };

struct phrase {
    char label[2];
    uint32_t column;
    size_t begin, end; /* in the sentence */
};

struct tree {
    const char *path, *line, *at;
    uint32_t row;
    struct text sentence;
    struct phrase *phrase; /* in the order in which they begin */
    size_t phrases, capacity;
    size_t *open; /* phrases that are not closed yet, outer ones first */
    size_t opened, open_capacity;
};

static int fail(const struct tree *t, const char *what, struct error *e)
{
    return error_set(e, ERROR_INPUT, "%s:%u:%zu: %s", t->path, t->row,
                     (size_t)(t->at - t->line) + 1, what);
}

static void skip_blanks(struct tree *t)
{
    t->at += strspn(t->at, " \t");
}

static int open_phrase(struct tree *t, struct error *e)
{
    t->at++;
    if (*t->at < '0' || *t->at > '4' || !strchr(" (", t->at[1]) || !t->at[1])
        return fail(t, "a label from 0 to 4 is expected, and a word or phrases", e);
    *MEMORY_PUSH(t->open, t->opened, t->open_capacity) = t->phrases;
    *MEMORY_PUSH(t->phrase, t->phrases, t->capacity) =
        (struct phrase){{*t->at, 0}, (uint32_t)(t->at - t->line) + 1, t->sentence.length, 0};
    t->at++;
    return 0;
}

/* Closes the innermost phrase; fails if it has no word. */
static int close_phrase(struct tree *t, struct error *e)
{
    struct phrase *p = &t->phrase[t->open[t->opened - 1]];
    p->begin += p->begin > 0; /* the blank */
    if (t->sentence.length <= p->begin)
        return fail(t, "a word or a phrase in parentheses is expected", e);
    p->end = t->sentence.length;
    t->opened--;
    t->at++;
    return 0;
}

static const struct {
    const char *written, *word;
} escapes[] = {{"-LRB-", "("}, {"-RRB-", ")"}, {"-LSB-", "["},
               {"-RSB-", "]"}, {"-LCB-", "{"}, {"-RCB-", "}"}};

static void take_word(struct tree *t)
{
    size_t size = strcspn(t->at, " \t()");
    if (t->sentence.length)
        text_append(&t->sentence, " ", 1);
    for (size_t k = 0; k < sizeof escapes / sizeof *escapes; k++)
        if (size == strlen(escapes[k].written) && !memcmp(t->at, escapes[k].written, size)) {
            text_append(&t->sentence, escapes[k].word, 1);
            t->at += size;
            return;
        }
    for (const char *end = t->at + size; t->at < end; t->at++) {
        bool escaped = *t->at == '\\' && t->at + 1 < end && strchr("/*", t->at[1]);
        t->at += escaped;
        text_append(&t->sentence, t->at, 1);
    }
}

/* True if the innermost open phrase already has its word: a phrase has one word or phrases, not both. */
static bool has_word(const struct tree *t)
{
    return t->opened && t->phrases == t->open[t->opened - 1] + 1 &&
           t->sentence.length > t->phrase[t->phrases - 1].begin;
}

static bool has_nothing(const struct tree *t)
{
    return t->opened && t->phrases == t->open[t->opened - 1] + 1 &&
           t->sentence.length == t->phrase[t->phrases - 1].begin;
}

static int take_tree(struct tree *t, struct error *e)
{
    do {
        skip_blanks(t);
        if (*t->at == '(' && !has_word(t)) {
            if (open_phrase(t, e) < 0)
                return -1;
        } else if (*t->at == ')' && t->opened) {
            if (close_phrase(t, e) < 0)
                return -1;
        } else if (*t->at && *t->at != '(' && has_nothing(t)) {
            take_word(t);
        } else {
            return fail(
                t, t->opened ? ") is expected, or a phrase in parentheses" : "( is expected",
                e);
        }
    } while (t->opened);
    skip_blanks(t);
    return *t->at ? fail(t, "the end of the line is expected", e) : 0;
}

static void add_phrases(struct dataset *d, const struct tree *t)
{
    size_t count = d->phrases ? t->phrases : 1;
    for (size_t k = 0; k < count; k++) {
        const struct phrase *p = &t->phrase[k];
        struct text words = {0};
        struct task_example *x = dataset_add(d, 1, 1);
        text_append(&words, text_get(&t->sentence) + p->begin, p->end - p->begin);
        x->line = t->row;
        x->column = p->column;
        x->text[0] = dataset_keep(d, text_get(&words));
        x->label[0] = dataset_keep(d, p->label);
        text_finish(&words);
    }
}

static int read_line(struct dataset *d, struct tree *t, const struct rows *r, struct error *e)
{
    t->line = t->at = rows_field(r, 0);
    t->row = r->field[0].line;
    t->phrases = t->opened = t->sentence.length = 0;
    skip_blanks(t);
    if (!*t->at)
        return 0;
    if (strlen(t->line) > LINE_BYTES)
        return fail(t, "a line of more than 65536 bytes", e);
    if (take_tree(t, e) < 0)
        return -1;
    add_phrases(d, t);
    return 0;
}

int read_trees(struct dataset *d, const struct task_source *from, struct error *e)
{
    struct rows r;
    struct tree t = {.path = from->path};
    int more;
    rows_begin(&r, from, 0);
    while ((more = rows_next(&r, e)) > 0)
        if (read_line(d, &t, &r, e) < 0) {
            more = -1;
            break;
        }
    free(t.phrase);
    free(t.open);
    text_finish(&t.sentence);
    rows_finish(&r);
    return more;
}
