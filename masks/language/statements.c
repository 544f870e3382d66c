/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a .mask file. All lines are parsed and checked first; then each place (layer, head)
   takes the last line that covers it, and only lines that hold a place are evaluated. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/language/evaluate.h"
#include "masks/language/language.h"
#include "masks/language/primitive.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Layers or heads of a line; any: the line names none. */
struct list {
    bool any;
    struct span *span;
    uint32_t n_spans, capacity;
};

struct line {
    uint32_t at;
    struct list layers, heads;
    struct node *expression;
    struct pattern *pattern; /* once evaluated */
    bool used;
};

enum { HEADER_LENGTH, HEADER_HEADS, HEADER_LAYERS, N_HEADERS };

static const struct header {
    const char *name;
    int64_t most;
} headers[N_HEADERS] = {
    {"length", PATTERN_MAX_N}, {"heads", MASK_MAX_HEADS}, {"layers", MASK_MAX_LAYERS}};

struct reader {
    const struct language_input *in;
    struct script script;
    uint32_t next;
    uint32_t header[N_HEADERS]; /* 0: not there */
    uint32_t header_at[N_HEADERS];
    struct line *line;
    uint32_t n_lines, capacity;
    bool bare; /* an expression without "head" was read */
    struct error *e;
};

static const struct token *peek(const struct reader *r)
{
    return &r->script.token[r->next];
}

static bool is_word(const struct reader *r, const char *word)
{
    const struct token *t = peek(r);
    return t->kind == TOKEN_WORD && t->length == strlen(word) &&
           !memcmp(r->script.text + t->at, word, t->length);
}

static int fail(struct reader *r, const char *what)
{
    char buffer[64];
    return script_error(&r->script, peek(r)->at, r->e, "%s, %s is expected",
                        token_found(&r->script, r->next, buffer), what);
}

static int read_header(struct reader *r, uint32_t which)
{
    const struct header *h = &headers[which];
    uint32_t at = peek(r)->at;
    if (r->header[which])
        return script_error(&r->script, at, r->e, "'%s' stands twice, once is expected",
                            h->name);
    r->next++;
    uint32_t value_at = peek(r)->at;
    int64_t value = number_parse(&r->script, &r->next, r->e);
    if (value < 0)
        return -1;
    if (value < 1 || value > h->most)
        return script_error(&r->script, value_at, r->e,
                            "%s %lld is out of range, 1..%lld is "
                            "expected",
                            h->name, (long long)value, (long long)h->most);
    r->header[which] = (uint32_t)value;
    r->header_at[which] = at;
    return 0;
}

/* LIST = INT [ "-" INT ] { "," ... }, every number below `count`. */
static int read_list(struct reader *r, const char *what, uint32_t count, struct list *ret)
{
    ret->any = false;
    for (;;) {
        uint32_t at = peek(r)->at;
        int64_t first = number_parse(&r->script, &r->next, r->e), last = first;
        if (first < 0)
            return -1;
        if (peek(r)->kind == '-') {
            r->next++;
            at = first < count ? peek(r)->at : at;
            if ((last = number_parse(&r->script, &r->next, r->e)) < 0)
                return -1;
        }
        if (first >= count || last >= count)
            return script_error(&r->script, at, r->e,
                                "%s %lld is out of range, 0..%u is expected", what,
                                (long long)(first >= count ? first : last), count - 1);
        if (last < first)
            return script_error(&r->script, at, r->e,
                                "the list ends before it begins: %lld-%lld", (long long)first,
                                (long long)last);
        *MEMORY_PUSH(ret->span, ret->n_spans, ret->capacity) = (struct span){first, last};
        if (peek(r)->kind != ',')
            return 0;
        r->next++;
    }
}

static int read_places(struct reader *r, struct line *line)
{
    if (is_word(r, "layer")) {
        if (!r->header[HEADER_LAYERS])
            return script_error(&r->script, peek(r)->at, r->e,
                                "a layer line, 'layers N' is expected before it");
        r->next++;
        if (read_list(r, "layer", r->header[HEADER_LAYERS], &line->layers) < 0)
            return -1;
    }
    if (is_word(r, "head")) {
        if (!r->header[HEADER_HEADS])
            return script_error(&r->script, peek(r)->at, r->e,
                                "a head line, 'heads N' is expected before it");
        r->next++;
        if (read_list(r, "head", r->header[HEADER_HEADS], &line->heads) < 0)
            return -1;
    }
    if (peek(r)->kind != ':')
        return fail(r, "':'");
    r->next++;
    return 0;
}

static int read_line(struct reader *r)
{
    struct line *line = MEMORY_PUSH(r->line, r->n_lines, r->capacity);
    *line = (struct line){.at = peek(r)->at, .layers.any = true, .heads.any = true};
    if (is_word(r, "layer") || is_word(r, "head")) {
        if (read_places(r, line) < 0)
            return -1;
    } else if (r->bare) {
        return script_error(&r->script, line->at, r->e,
                            "a second expression, 'head LIST:' is expected before it");
    } else {
        r->bare = true;
    }
    line->expression = expression_parse(&r->script, &r->next, r->e);
    return line->expression ? 0 : -1;
}

/* A statement where one expression is expected. */
static int refuse_statement(struct reader *r)
{
    const struct token *t = peek(r);
    return script_error(&r->script, t->at, r->e,
                        "'%.*s' is a statement of .mask files, an expression is expected here",
                        (int)t->length, r->script.text + t->at);
}

static int read_statement(struct reader *r)
{
    int result = -2;
    if (r->in->expression && (is_word(r, "head") || is_word(r, "layer")))
        return refuse_statement(r);
    for (uint32_t k = 0; k < N_HEADERS; k++)
        if (is_word(r, headers[k].name))
            result = r->in->expression ? refuse_statement(r) : read_header(r, k);
    if (result == -2)
        result = read_line(r);
    if (result < 0)
        return -1;
    return peek(r)->kind == TOKEN_NEWLINE ? 0 : fail(r, "an operator or the end of the line");
}

static int read_statements(struct reader *r)
{
    while (peek(r)->kind != TOKEN_END) {
        if (peek(r)->kind == TOKEN_NEWLINE)
            r->next++;
        else if (read_statement(r) < 0)
            return -1;
    }
    if (r->n_lines == 0)
        return script_error(&r->script, 0, r->e,
                            "the text is empty, an expression is expected");
    return 0;
}

static void cover(struct list *l, uint32_t count)
{
    if (l->any)
        *MEMORY_PUSH(l->span, l->n_spans, l->capacity) = (struct span){0, (int64_t)count - 1};
}

/* The last line for each place; UINT32_MAX: none. */
static uint32_t *assign(struct reader *r, uint32_t layers, uint32_t heads)
{
    uint32_t *taken = memory_new((size_t)layers * heads, sizeof *taken);
    memset(taken, 0xff, (size_t)layers * heads * sizeof *taken);
    for (uint32_t k = 0; k < r->n_lines; k++) {
        struct line *line = &r->line[k];
        cover(&line->layers, layers);
        cover(&line->heads, heads);
        for (uint32_t a = 0; a < line->layers.n_spans; a++)
            for (int64_t l = line->layers.span[a].first; l <= line->layers.span[a].last; l++)
                for (uint32_t b = 0; b < line->heads.n_spans; b++)
                    for (int64_t h = line->heads.span[b].first; h <= line->heads.span[b].last;
                         h++)
                        taken[l * heads + h] = k;
    }
    return taken;
}

/* "heads 3-5, 7 have no line" of the first layer where some are missing. */
static int check_covered(struct reader *r, const uint32_t *taken, uint32_t layers,
                         uint32_t heads)
{
    struct text missing = {0};
    uint32_t layer = 0, h = 0;
    while (layer < layers && missing.length == 0) {
        for (h = 0; h < heads;) {
            uint32_t from = h;
            while (h < heads && taken[(size_t)layer * heads + h] == UINT32_MAX)
                h++;
            if (h > from)
                text_add(&missing, "%s%u", missing.length ? ", " : "", from);
            if (h > from + 1)
                text_add(&missing, "-%u", h - 1);
            h += h == from;
        }
        layer++;
    }
    if (missing.length == 0)
        return 0;
    char where[32] = "";
    if (layers > 1)
        snprintf(where, sizeof where, " in layer %u", layer - 1);
    script_error(&r->script, r->header_at[HEADER_HEADS], r->e,
                 "no line covers head %s%s, a line for each head is expected",
                 text_get(&missing), where);
    text_finish(&missing);
    return -1;
}

static int prepare_lines(struct reader *r, uint32_t n)
{
    for (uint32_t k = 0; k < r->n_lines; k++)
        if (node_prepare(r->line[k].expression, &r->script, r->in->folder, n, r->e) < 0)
            return -1;
    return 0;
}

static struct mask *build(struct reader *r, uint32_t n)
{
    uint32_t heads = r->header[HEADER_HEADS] ? r->header[HEADER_HEADS] : 1;
    uint32_t layers = r->header[HEADER_LAYERS] ? r->header[HEADER_LAYERS] : 1;
    size_t places = (size_t)layers * heads;
    struct mask *ret = NULL;
    if (places > MASK_MAX_PLACES) {
        script_error(&r->script, r->header_at[HEADER_LAYERS], r->e,
                     "%u layers of %u heads are too many, at most %d heads in all are expected",
                     layers, heads, MASK_MAX_PLACES);
        return NULL;
    }
    uint32_t *taken = assign(r, layers, heads);
    struct pattern **given = memory_new(places, sizeof *given);
    if (check_covered(r, taken, layers, heads) < 0)
        goto out;
    for (size_t k = 0; k < places; k++) {
        struct line *line = &r->line[taken[k]];
        if (!line->pattern)
            line->pattern = node_evaluate(line->expression, n, &r->script, r->e);
        if (!line->pattern)
            goto out;
        given[k] = line->pattern;
    }
    ret = mask_new(layers, heads, given, r->in->source ? r->in->source : r->in->name);
    for (uint32_t k = 0; k < r->n_lines; k++)
        r->line[k].pattern = NULL; /* the mask has them */
out:
    free(taken);
    free(given);
    return ret;
}

static void finish(struct reader *r)
{
    for (uint32_t k = 0; k < r->n_lines; k++) {
        free(r->line[k].layers.span);
        free(r->line[k].heads.span);
        node_destroy(r->line[k].expression);
        pattern_destroy(r->line[k].pattern);
    }
    free(r->line);
    script_finish(&r->script);
}

static int check_length(struct reader *r, uint32_t n)
{
    if (n == 0)
        return error_set(r->e, ERROR_INPUT,
                         "%s: the mask has no length of its own, -n N is "
                         "expected",
                         r->in->source ? r->in->source : r->in->name);
    if (n > PATTERN_MAX_N)
        return error_set(r->e, ERROR_INPUT, "-n %u is out of range, 1..%d is expected", n,
                         PATTERN_MAX_N);
    return 0;
}

struct mask *language_read(const struct language_input *in, struct error *e)
{
    struct reader r = {.in = in, .e = e};
    struct mask *ret = NULL;
    if (script_read(in->name, in->text, in->length, &r.script, e) < 0)
        return NULL;
    if (read_statements(&r) == 0) {
        uint32_t n = in->n ? in->n : r.header[HEADER_LENGTH];
        if (check_length(&r, n) == 0 && prepare_lines(&r, n) == 0)
            ret = build(&r, n);
    }
    finish(&r);
    return ret;
}
