/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert classify: a line out for each line in, in the form that the architecture asks for. */
#include "masks/base/memory.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct classify {
    struct session s;
    struct task_labels labels;
    uint32_t *first; /* [lines + 1]: a line's texts; one but for multiple choice */
};

/* A question and each of its choices are a pair. */
static int read_choices(const struct options *o, struct classify *c, struct error *e)
{
    uint32_t texts = 0, room = 0;
    struct input_text *in = &c->s.input;
    if (input_read(o->input, in, e) < 0)
        return -1;
    c->first = memory_new((size_t)in->count + 1, sizeof *c->first);
    for (uint32_t k = 0; k < in->count; k++) {
        struct text_part question, rest;
        input_parts(in->line[k], &question, &rest);
        if (!rest.bytes)
            return error_set(e, ERROR_INPUT,
                             "line %u: a question, a tab and choices with tabs "
                             "between them are expected",
                             k + 1);
        while (rest.bytes) {
            struct task_text *t = MEMORY_PUSH(c->s.text, texts, room);
            t->a = question;
            input_parts(rest, &t->b, &rest);
        }
        c->first[k + 1] = texts;
    }
    return session_prepare(&c->s, texts, e);
}

static const char *label(const struct classify *c, uint32_t k, char room[24])
{
    return task_label(&c->s.engine->config, k, room);
}

static uint32_t best_of(const float *x, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < n; k++)
        best = x[k] > x[best] ? k : best;
    return best;
}

/* ---- one or many labels of a text ---- */

static json_t *labels_json(const struct classify *c, const float *x)
{
    uint32_t n = c->labels.labels, best = best_of(x, n);
    char room[24];
    json_t *all = json_array();
    for (uint32_t k = 0; k < n; k++)
        json_array_append_new(all, json_pack("{s:s, s:f}", "label", label(c, k, room),
                                             "probability", (double)x[k]));
    if (c->labels.kind == TASK_MULTI)
        return json_pack("{s:o}", "labels", all);
    return json_pack("{s:s, s:f, s:o}", "label", label(c, best, room), "probability",
                     (double)x[best], "labels", all);
}

static void print_labels(const struct classify *c, const float *x)
{
    uint32_t n = c->labels.labels, best = best_of(x, n);
    char room[24];
    if (c->labels.kind != TASK_MULTI)
        printf("%s %.4f", label(c, best, room), (double)x[best]);
    const char *before = "";
    for (uint32_t k = 0; k < n && c->labels.kind == TASK_MULTI; k++)
        if (x[k] > 0.5f) {
            printf("%s%s %.4f", before, label(c, k, room), (double)x[k]);
            before = "  ";
        }
    printf("\n");
}

/* ---- numbers ---- */

static json_t *numbers_json(const struct classify *c, const float *x)
{
    json_t *all = json_array();
    for (uint32_t k = 0; k < c->labels.labels; k++)
        json_array_append_new(all, json_real((double)x[k]));
    return json_pack("{s:o}", "values", all);
}

static void print_numbers(const struct classify *c, const float *x)
{
    for (uint32_t k = 0; k < c->labels.labels; k++)
        printf(k ? " %.6g" : "%.6g", (double)x[k]);
    printf("\n");
}

/* ---- tokens ---- */

static const char *token_of(const struct classify *c, uint32_t text, uint32_t k)
{
    return c->s.engine->tokenizer->vocabulary.token[c->s.batches.sequence[text].number[k]];
}

static json_t *tokens_json(const struct classify *c, uint32_t text, const float *x)
{
    const struct task_batches *b = &c->s.batches;
    uint32_t n = c->labels.labels, count = b->sequence[text].count;
    const struct token_span *span = b->span + (b->sequence[text].number - b->number);
    json_t *all = json_array();
    char room[24];
    for (uint32_t k = 0; k < count; k++) {
        uint32_t best = best_of(x + (size_t)k * n, n);
        json_array_append_new(all, json_pack("{s:s, s:[ii], s:s, s:f}", "token",
                                             token_of(c, text, k), "offset", (int)span[k].begin,
                                             (int)span[k].end, "label", label(c, best, room),
                                             "probability", (double)x[(size_t)k * n + best]));
    }
    return json_pack("{s:o}", "tokens", all);
}

static void print_tokens(const struct classify *c, uint32_t text, const float *x)
{
    uint32_t n = c->labels.labels, count = c->s.batches.sequence[text].count;
    char room[24];
    for (uint32_t k = 0; k < count; k++) {
        printf("%s%s/%s", k ? " " : "", token_of(c, text, k),
               label(c, best_of(x + (size_t)k * n, n), room));
    }
    printf("\n");
}

/* ---- choices ---- */

static void print_choice(const float *x, uint32_t n, bool json)
{
    uint32_t best = best_of(x, n);
    double sum = 0;
    json_t *all = json_array();
    for (uint32_t k = 0; k < n; k++)
        sum += exp((double)(x[k] - x[best]));
    for (uint32_t k = 0; k < n; k++)
        json_array_append_new(all, json_real(exp((double)(x[k] - x[best])) / sum));
    json_t *line =
        json_pack("{s:i, s:f, s:o}", "choice", (int)best, "probability", 1 / sum, "all", all);
    if (json)
        json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    else
        printf("%u %.4f", best, 1 / sum);
    printf("\n");
    json_decref(line);
}

static void print_json(json_t *line)
{
    json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    printf("\n");
    json_decref(line);
}

static void print_line(const struct classify *c, uint32_t k, bool json)
{
    const float *x = c->labels.value + c->labels.first[k] * c->labels.labels;
    switch (c->labels.kind) {
    case TASK_TOKENS:
        json ? print_json(tokens_json(c, k, x)) : print_tokens(c, k, x);
        break;
    case TASK_REGRESSION:
        json ? print_json(numbers_json(c, x)) : print_numbers(c, x);
        break;
    case TASK_CHOICE:
        print_choice(c->labels.value + c->first[k], c->first[k + 1] - c->first[k], json);
        break;
    default:
        json ? print_json(labels_json(c, x)) : print_labels(c, x);
    }
}

/* Which parts a classifier needs depends on the architecture, which the folder says. */
static int needed_parts(const char *folder, uint32_t *ret, enum task_kind *ret_kind,
                        struct error *e)
{
    struct model_config config = {0};
    if (config_read(folder, &config, e) < 0)
        return -1;
    *ret_kind = task_kind(&config);
    *ret = task_classify_parts(*ret_kind);
    config_finish(&config);
    return 0;
}

static int classify(const struct options *o, struct classify *c, struct error *e)
{
    uint32_t parts;
    enum task_kind kind;
    if (needed_parts(o->argument, &parts, &kind, e) < 0 ||
        session_open(o, parts, &c->s, e) < 0 ||
        (kind == TASK_CHOICE ? read_choices(o, c, e) : session_read(o, &c->s, e)) < 0 ||
        task_classify(c->s.engine, &c->s.batches, &c->s.task, &c->s.room, &c->labels, e) < 0)
        return -1;
    for (uint32_t k = 0; k < c->s.input.count; k++)
        print_line(c, k, o->json);
    return 0;
}

int command_classify(const struct options *o)
{
    struct error e = {0};
    struct classify c = {0};
    int r = classify(o, &c, &e);
    task_labels_finish(&c.labels);
    free(c.first);
    session_close(&c.s);
    return r < 0 ? command_fail(&e) : 0;
}
