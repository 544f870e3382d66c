/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert attention: a figure of one line's attention maps, and how many keys each query looks at. */
#include "masks/base/memory.h"
#include "model/probe/probe.h"
#include "tools/common/figure.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_VALUES = 1 << 28, MOST_DRAWN = 1 << 26 };

struct maps {
    uint32_t layers, heads, n; /* those shown */
    uint32_t first_layer, first_head;
};

struct attention {
    struct session s;
    struct maps maps;
    float *value;       /* [layers, heads, n, n] */
    double *support;    /* [layers, heads]: mean number of keys of a query */
    const char **token; /* [n] */
};

/* The watch: keeps the probabilities of a layer's heads that are shown. */
static void keep_layer(void *context, const struct engine_layer *seen)
{
    struct attention *a = context;
    const struct engine *g = a->s.engine;
    const struct maps *m = &a->maps;
    if (seen->layer < m->first_layer || seen->layer >= m->first_layer + m->layers)
        return;
#pragma omp parallel for num_threads((int)g->threads)
    for (uint32_t k = 0; k < m->heads; k++) {
        struct probe p = {seen, 0, m->first_head + k, m->n};
        size_t panel = (size_t)(seen->layer - m->first_layer) * m->heads + k;
        probe_run(g, &p, a->value + panel * m->n * m->n);
    }
}

/* "3" chooses one of `count`, null all of them. */
static int read_choice(const char *option, const char *text, uint32_t count, uint32_t *first,
                       uint32_t *some, struct error *e)
{
    char *end;
    *first = 0;
    *some = count;
    if (!text)
        return 0;
    unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || value >= count)
        return error_set(e, ERROR_INPUT, "--%s %s: 0..%u is expected", option, text, count - 1);
    *first = (uint32_t)value;
    *some = 1;
    return 0;
}

static int read_line(struct attention *a, const struct options *o, struct error *e)
{
    struct maps *m = &a->maps;
    const struct model_config *c = &a->s.engine->config;
    if (read_choice("layer", o->layer, c->layers, &m->first_layer, &m->layers, e) < 0 ||
        read_choice("head", o->head, c->heads, &m->first_head, &m->heads, e) < 0 ||
        session_read(o, &a->s, e) < 0)
        return -1;
    if (a->s.batches.texts != 1)
        return error_set(e, ERROR_INPUT, "attention: one line of text is expected, not %u",
                         a->s.batches.texts);
    m->n = a->s.batches.sequence[0].count;
    const uint64_t values = (uint64_t)m->layers * m->heads * m->n * m->n;
    if (values > (o->output ? MOST_DRAWN : MOST_VALUES))
        return error_set(
            e, ERROR_INPUT,
            "%u layers of %u heads over %u tokens are too much: --layer, --head or "
            "--max-length is expected",
            m->layers, m->heads, m->n);
    return 0;
}

static void name_tokens(struct attention *a)
{
    const struct sequence *s = &a->s.batches.sequence[0];
    a->token = memory_new(s->count, sizeof *a->token);
    for (uint32_t k = 0; k < s->count; k++)
        a->token[k] = a->s.engine->tokenizer->vocabulary.token[s->token_ids[k]];
}

static uint32_t support_of(const float *p, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t j = 0; j < n; j++)
        count += p[j] > 0;
    return count;
}

static int check_finite(const struct attention *a, struct error *e)
{
    const struct maps *m = &a->maps;
    const uint64_t values = (uint64_t)m->layers * m->heads * m->n * m->n;
    for (uint64_t k = 0; k < values; k++)
        if (!isfinite(a->value[k]))
            return error_set(e, ERROR_FALSE,
                             "layer %u, head %u: the model's attention is not finite",
                             (uint32_t)(m->first_layer + k / m->n / m->n / m->heads),
                             (uint32_t)(m->first_head + k / m->n / m->n % m->heads));
    return 0;
}

static void measure(struct attention *a)
{
    const struct maps *m = &a->maps;
    size_t panels = (size_t)m->layers * m->heads;
    a->support = memory_new(panels, sizeof *a->support);
    for (size_t k = 0; k < panels; k++) {
        for (uint32_t i = 0; i < m->n; i++)
            a->support[k] += support_of(a->value + (k * m->n + i) * m->n, m->n);
        a->support[k] /= m->n;
    }
}

static json_t *head_json(const struct attention *a, uint32_t layer, uint32_t head)
{
    const struct maps *m = &a->maps;
    size_t panel = (size_t)layer * m->heads + head;
    json_t *support = json_array();
    for (uint32_t i = 0; i < m->n; i++)
        json_array_append_new(
            support, json_integer(support_of(a->value + (panel * m->n + i) * m->n, m->n)));
    return json_pack("{s:i, s:i, s:f, s:o}", "layer", (int)(m->first_layer + layer), "head",
                     (int)(m->first_head + head), "mean_support", a->support[panel], "support",
                     support);
}

static void print_json(const struct attention *a)
{
    const struct maps *m = &a->maps;
    json_t *tokens = json_array(), *heads = json_array();
    for (uint32_t k = 0; k < m->n; k++)
        json_array_append_new(tokens, json_string(a->token[k]));
    for (uint32_t l = 0; l < m->layers; l++)
        for (uint32_t h = 0; h < m->heads; h++)
            json_array_append_new(heads, head_json(a, l, h));
    json_t *json = json_pack("{s:o, s:o}", "tokens", tokens, "heads", heads);
    json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(json);
}

static void print_text(const struct attention *a)
{
    enum { MOST_HEADS = 12 }; /* in a line of the terminal */
    const struct maps *m = &a->maps;
    printf("keys that a query looks at, of %u, on average\n", m->n);
    for (uint32_t from = 0; from < m->heads; from += MOST_HEADS) {
        const uint32_t to = from + MOST_HEADS < m->heads ? from + MOST_HEADS : m->heads;
        printf("\n%8s", "head");
        for (uint32_t h = from; h < to; h++)
            printf(" %6u", m->first_head + h);
        for (uint32_t l = 0; l < m->layers; l++) {
            printf("\nlayer %2u", m->first_layer + l);
            for (uint32_t h = from; h < to; h++)
                printf(" %6.1f", a->support[(size_t)l * m->heads + h]);
        }
        printf("\n");
    }
}

/* ---- the figure ---- */

static json_t *names(const char *what, uint32_t first, uint32_t count)
{
    json_t *ret = json_array();
    for (uint32_t k = 0; k < count; k++)
        json_array_append_new(ret, json_sprintf("%s %u", what, first + k));
    return ret;
}

static json_t *panels(const struct attention *a)
{
    const struct maps *m = &a->maps;
    const struct figure_shape shape = {2, {m->n, m->n}};
    json_t *ret = json_array();
    for (uint32_t k = 0; k < m->layers * m->heads; k++)
        json_array_append_new(
            ret, json_pack("{s:o, s:o}", "title", json_sprintf("%.1f keys", a->support[k]),
                           "values", figure_floats(a->value + (size_t)k * m->n * m->n, shape)));
    return ret;
}

static int draw(const struct attention *a, const struct figure *f, struct error *e)
{
    const struct maps *m = &a->maps;
    json_t *tokens = json_array();
    for (uint32_t k = 0; k < m->n; k++)
        json_array_append_new(tokens, json_string_nocheck(a->token[k]));
    json_t *numbers = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:i, s:i, s:s, s:s}", "label", "attention probability",
        "panels", panels(a), "rows", names("layer", m->first_layer, m->layers), "columns",
        names("head", m->first_head, m->heads), "tokens", tokens, "least", 0, "most", 1,
        "scale", "root", "note",
        "above each map: keys with a probability above 0, mean over the queries");
    return figure_draw(f, numbers, e);
}

static int run(struct attention *a, struct error *e)
{
    struct maps *m = &a->maps;
    struct engine_watch watch = {keep_layer, a};
    a->value = memory_new((size_t)m->layers * m->heads * m->n * m->n, sizeof *a->value);
    a->s.workspace.watch = &watch;
    int r = probe_check(a->s.engine, e) < 0
                ? -1
                : engine_encode(a->s.engine, a->s.batches.sequence, 1, &a->s.workspace, e);
    a->s.workspace.watch = NULL;
    return r;
}

static int attention(const struct options *o, struct attention *a, struct error *e)
{
    const struct figure figure = {"heatmaps", o->output, o->columns};
    if (!o->output && !o->json)
        return error_set(
            e, ERROR_INPUT,
            "attention: -o FIGURE.pdf, -o FIGURE.svg, -o FIGURE.png or --json is expected");
    if ((o->output && figure_ready(&figure, e) < 0) || session_open(o, 0, &a->s, e) < 0 ||
        read_line(a, o, e) < 0 || run(a, e) < 0 || check_finite(a, e) < 0)
        return -1;
    name_tokens(a);
    measure(a);
    if (o->output && draw(a, &figure, e) < 0)
        return -1;
    if (o->json)
        print_json(a);
    else
        print_text(a);
    return 0;
}

int command_attention(const struct options *o)
{
    struct error e = {0};
    struct attention a = {0};
    int r = attention(o, &a, &e);
    free(a.value);
    free(a.support);
    free(a.token);
    session_close(&a.s);
    return r < 0 ? command_fail(&e) : 0;
}
