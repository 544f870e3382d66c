/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert tokenize: lines in, token ids out. Threads take runs of lines; output keeps the lines' order. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/input.h"
#include "tools/maskbert/session.h"
#include <jansson.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_BYTES = 64 << 10 }; /* of lines that a thread takes at once */

struct run {
    uint32_t begin, end; /* lines */
    struct text out;
};

struct task {
    const struct options *options;
    const struct tokenizer *tokenizer;
    const struct input_lines *in;
    char **quoted; /* each token as JSON, for --json */
    struct run *run;
    uint32_t n_runs, capacity;
};

static void add_number(struct text *t, uint32_t value)
{
    char digits[10];
    int at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    text_append(t, digits + at, sizeof digits - (size_t)at);
}

static void add_list(struct text *t, const struct tokens *k, const struct task *j,
                     void (*add)(struct text *, const struct tokens *, const struct task *,
                                 uint32_t))
{
    for (uint32_t i = 0; i < k->count; i++) {
        if (i)
            text_append(t, ",", 1);
        add(t, k, j, i);
    }
}

static void add_id(struct text *t, const struct tokens *k, const struct task *j, uint32_t i)
{
    (void)j;
    add_number(t, k->token_ids[i]);
}

static void add_token(struct text *t, const struct tokens *k, const struct task *j, uint32_t i)
{
    const char *quoted = j->quoted[k->token_ids[i]];
    text_append(t, quoted, strlen(quoted));
}

static void add_type(struct text *t, const struct tokens *k, const struct task *j, uint32_t i)
{
    (void)j;
    text_append(t, i < k->first_part ? "0" : "1", 1);
}

static void add_span(struct text *t, const struct tokens *k, const struct task *j, uint32_t i)
{
    (void)j;
    text_append(t, "[", 1);
    add_number(t, k->span[i].begin);
    text_append(t, ",", 1);
    add_number(t, k->span[i].end);
    text_append(t, "]", 1);
}

static void print_json(struct text *t, const struct tokens *k, const struct task *j)
{
    text_append(t, "{\"ids\":[", 8);
    add_list(t, k, j, add_id);
    text_append(t, "],\"tokens\":[", 12);
    add_list(t, k, j, add_token);
    text_append(t, "],\"types\":[", 11);
    add_list(t, k, j, add_type);
    text_append(t, "],\"offsets\":[", 13);
    add_list(t, k, j, add_span);
    text_append(t, "]}\n", 3);
}

static void print_plain(struct text *t, const struct tokens *k, bool offsets)
{
    for (uint32_t i = 0; i < k->count; i++) {
        if (i)
            text_append(t, " ", 1);
        add_number(t, k->token_ids[i]);
        if (!offsets)
            continue;
        text_append(t, ":", 1);
        add_number(t, k->span[i].begin);
        text_append(t, "-", 1);
        add_number(t, k->span[i].end);
    }
    text_append(t, "\n", 1);
}

static void tokenize_run(const struct task *j, struct run *r, struct tokens *tokens)
{
    for (uint32_t k = r->begin; k < r->end; k++) {
        struct text_part a, b;
        input_parts(j->in->line[k], &a, &b);
        tokenizer_encode(j->tokenizer, a, b, j->options->max_length, tokens);
        if (j->options->json)
            print_json(&r->out, tokens, j);
        else
            print_plain(&r->out, tokens, j->options->offsets);
    }
}

static void cut_runs(struct task *j)
{
    uint64_t bytes = RUN_BYTES;
    j->n_runs = 0;
    for (uint32_t k = 0; k < j->in->count; k++) {
        if (bytes >= RUN_BYTES) {
            *MEMORY_PUSH(j->run, j->n_runs, j->capacity) = (struct run){.begin = k};
            bytes = 0;
        }
        bytes += j->in->line[k].size + 16u;
        j->run[j->n_runs - 1].end = k + 1;
    }
}

static void tokenize_block(struct task *j, struct tokens *tokens, int threads)
{
    cut_runs(j);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (uint32_t k = 0; k < j->n_runs; k++)
        tokenize_run(j, &j->run[k], &tokens[omp_get_thread_num()]);
    for (uint32_t k = 0; k < j->n_runs; k++) {
        fwrite(text_get(&j->run[k].out), 1, j->run[k].out.length, stdout);
        text_finish(&j->run[k].out);
    }
}

static char **quote_tokens(const struct vocabulary *v)
{
    char **quoted = memory_new(v->count, sizeof *quoted);
    for (uint32_t k = 0; k < v->count; k++) {
        json_t *text = json_string(v->token[k] ? v->token[k] : "");
        quoted[k] = json_dumps(text, JSON_ENCODE_ANY);
        json_decref(text);
    }
    return quoted;
}

static int tokenize_all(struct task *j, struct input_lines *in, int threads, struct error *e)
{
    struct tokens *tokens = memory_new((size_t)threads, sizeof *tokens);
    int r;
    j->in = in;
    while ((r = input_next(in, stdin, e)) == 0 && in->count && !ferror(stdout))
        tokenize_block(j, tokens, threads);
    for (int k = 0; k < threads; k++)
        tokens_finish(&tokens[k]);
    free(tokens);
    return r;
}

int command_tokenize(const struct options *o)
{
    struct error e = {0};
    enum tokenizer_compat compat;
    if (session_compat(o, &compat, &e) < 0)
        return command_fail(&e);
    struct tokenizer *t = tokenizer_load(o->argument, compat, &e);
    if (!t)
        return command_fail(&e);
    struct input_lines in = {0};
    struct task j = {.options = o, .tokenizer = t};
    if (o->json)
        j.quoted = quote_tokens(&t->vocabulary);
    int threads = o->threads ? (int)o->threads : omp_get_max_threads();
    int r = tokenize_all(&j, &in, threads, &e);
    for (uint32_t k = 0; j.quoted && k < t->vocabulary.count; k++)
        free(j.quoted[k]);
    free(j.quoted);
    free(j.run);
    input_finish(&in);
    tokenizer_destroy(t);
    return r < 0 ? command_fail(&e) : 0;
}
