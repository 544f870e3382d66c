/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert classify: a line out for each line in. The architecture decides its form. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include "tools/maskbert/tasks/result_json.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct classify {
    struct session s;
    struct task_labels labels;
    uint32_t *
        first; /* [lines + 1]: texts of line k are first[k] .. first[k+1] - 1; several for multiple choice */
    uint32_t *line; /* [texts]: from 1; of multiple choice */
};

/* A question and each of its choices are a pair. */
static int read_choices(const struct options *o, struct classify *c, struct error *e)
{
    uint32_t texts = 0, lines = 0, capacity = 0, line_capacity = 0;
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
            struct task_text *t = MEMORY_PUSH(c->s.text, texts, capacity);
            *t = (struct task_text){.a = question};
            *MEMORY_PUSH(c->line, lines, line_capacity) = k + 1;
            input_parts(rest, &t->b, &rest);
        }
        c->first[k + 1] = texts;
    }
    c->s.task.names.number = c->line;
    return session_prepare(&c->s, texts, e);
}

static const char *label(const struct classify *c, uint32_t k, char buffer[24])
{
    return task_label(&c->s.engine->config, k, buffer);
}

/* Control characters would break the line or command the terminal. */
static void print_label(const struct classify *c, uint32_t k)
{
    char buffer[24], *text = memory_text(label(c, k, buffer));
    error_replace_controls(text);
    for (char *at = text; (at = strpbrk(at, "\n\t"));)
        *at = '?';
    fputs(text, stdout);
    free(text);
}

/* ---- one or many labels of a text ---- */

static void print_labels(const struct classify *c, const float *x)
{
    uint32_t n = c->labels.labels, best = result_best(x, n);
    if (c->labels.kind != TASK_MULTI) {
        print_label(c, best);
        printf(" %.4f", (double)x[best]);
    }
    const char *before = "";
    for (uint32_t k = 0; k < n && c->labels.kind == TASK_MULTI; k++)
        if (x[k] > 0.5f || n == 1) {
            printf("%s", before);
            print_label(c, k);
            printf(" %.4f", (double)x[k]);
            before = "  ";
        }
    printf("\n");
}

/* ---- numbers ---- */

static void print_numbers(const struct classify *c, const float *x)
{
    for (uint32_t k = 0; k < c->labels.labels; k++)
        printf(k ? " %.6g" : "%.6g", (double)x[k]);
    printf("\n");
}

/* ---- tokens ---- */

static void print_tokens(const struct classify *c, uint32_t text, const float *x)
{
    const struct sequence *sequence = &c->s.batches.sequence[text];
    uint32_t n = c->labels.labels;
    struct text token = {0};
    for (uint32_t k = 0; k < sequence->count; k++) {
        printf("%s%s/", k ? " " : "",
               result_token(c->s.engine, sequence->token_ids[k], &token));
        print_label(c, result_best(x + (size_t)k * n, n));
    }
    text_finish(&token);
    printf("\n");
}

/* ---- choices ---- */

static void print_choice(const float *x, uint32_t n, bool json)
{
    uint32_t best = result_best(x, n);
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
    if (c->labels.kind == TASK_CHOICE)
        print_choice(c->labels.value + c->first[k], c->first[k + 1] - c->first[k], json);
    else if (json)
        print_json(result_labels(c->s.engine, &c->s.batches, &c->labels, k));
    else if (c->labels.kind == TASK_TOKENS)
        print_tokens(c, k, x);
    else if (c->labels.kind == TASK_REGRESSION)
        print_numbers(c, x);
    else
        print_labels(c, x);
}

/* The parts of the model that its kind of classifier needs. */
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
        (kind == TASK_CHOICE ? read_choices(o, c, e) : session_read(o, &c->s, e)) < 0)
        return -1;
    const struct task_runner runner = session_runner(&c->s);
    if (task_classify(&runner, &c->s.batches, &c->labels, e) < 0)
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
    free(c.line);
    session_close(&c.s);
    return r < 0 ? command_fail(&e) : 0;
}
