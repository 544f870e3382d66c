/* SPDX-License-Identifier: Apache-2.0 */
/* From the arguments as written to a call for masks of length n: each finds its parameter, numbers
   are held against their limits, spans are sorted and merged. */
#include "masks/base/memory.h"
#include "masks/language/primitive.h"
#include <stdlib.h>
#include <string.h>

void call_destroy(struct call *c)
{
    if (!c)
        return;
    free(c->span);
    free(c->size);
    free(c->target);
    free(c->keys);
    pattern_destroy(c->file);
    free(c);
}

const struct primitive *primitive_find(const char *name)
{
    for (const struct primitive *p = primitives; p->name; p++)
        if (!strcmp(p->name, name))
            return p;
    return NULL;
}

static const char *const kind_names[] = {
    [PARAMETER_WHOLE] = "a whole number", [PARAMETER_SPANS] = "a whole number or a range",
    [PARAMETER_SIZES] = "a whole number", [PARAMETER_REAL] = "a number",
    [PARAMETER_STRING] = "a \"string\"",  [PARAMETER_LIST] = "a list [..]",
};

static bool fits(enum parameter_kind kind, const struct argument *a)
{
    switch (kind) {
    case PARAMETER_WHOLE:
    case PARAMETER_SIZES:
        return a->kind == ARGUMENT_NUMBER && a->whole;
    case PARAMETER_SPANS:
        return a->kind == ARGUMENT_RANGE || (a->kind == ARGUMENT_NUMBER && a->whole);
    case PARAMETER_REAL:
        return a->kind == ARGUMENT_NUMBER;
    case PARAMETER_STRING:
        return a->kind == ARGUMENT_STRING;
    default:
        return a->kind == ARGUMENT_LIST;
    }
}

static int64_t limit_at(struct limit l, uint32_t n)
{
    return l.by_n * (int64_t)n + l.plus;
}

static int check_limits(const struct prepare_context *x, const struct parameter *p,
                        const struct argument *a, int64_t value, uint32_t n, struct error *e)
{
    long long least = limit_at(p->least, n), most = limit_at(p->most, n);
    if (value >= least && value <= most)
        return 0;
    const char *name = x->node->word;
    bool by_n = p->least.by_n || p->most.by_n;
    if (most == MAX_LIMIT || most == INT64_MAX)
        return script_error(x->script, a->at, e,
                            "%s: %lld is out of range, at least %lld is expected"
                            "%s",
                            name, (long long)value, least,
                            value > most ? " and less than 2^31" : "");
    if (by_n)
        return script_error(x->script, a->at, e,
                            "%s: %lld is out of range, %lld..%lld is expected "
                            "at length %u",
                            name, (long long)value, least, most, n);
    return script_error(x->script, a->at, e, "%s: %lld is out of range, %lld..%lld is expected",
                        name, (long long)value, least, most);
}

static int compare(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static void sort_spans(struct call *c)
{
    uint32_t kept = 0;
    qsort(c->span, c->n_spans, sizeof *c->span, compare);
    for (uint32_t k = 0; k < c->n_spans; k++) {
        struct span *last = kept ? &c->span[kept - 1] : NULL;
        if (last && last->last + 1 >= c->span[k].first)
            last->last = last->last > c->span[k].last ? last->last : c->span[k].last;
        else
            c->span[kept++] = c->span[k];
    }
    c->n_spans = kept;
}

static int bind_span(struct call *c, const struct prepare_context *x, const struct parameter *p,
                     const struct argument *a, struct error *e)
{
    if (check_limits(x, p, a, a->first, c->n, e) < 0 ||
        check_limits(x, p, a, a->last, c->n, e) < 0)
        return -1;
    int64_t turn = p->from_end ? c->n : 0;
    struct span s = {a->first + (a->first < 0 ? turn : 0), a->last + (a->last < 0 ? turn : 0)};
    if (s.first > s.last)
        return script_error(x->script, a->at, e, "%s: the range ends before it begins",
                            x->node->word);
    c->span[c->n_spans++] = s;
    return 0;
}

static int bind_size(struct call *c, const struct prepare_context *x, const struct parameter *p,
                     const struct argument *a, struct error *e)
{
    c->size[c->n_sizes++] = a->first;
    return check_limits(x, p, a, a->first, c->n, e);
}

/* Any number of arguments, none of them by name. */
static bool is_many(enum parameter_kind kind)
{
    return kind == PARAMETER_SPANS || kind == PARAMETER_SIZES;
}

static const struct parameter *find_parameter(const struct primitive *p,
                                              const struct argument *a, uint32_t position)
{
    for (uint32_t k = 0; k < MAX_PARAMETERS && p->parameter[k].name; k++) {
        const struct parameter *d = &p->parameter[k];
        if (a->name[0] ? !strcmp(d->name, a->name) && !is_many(d->kind)
                       : !d->optional && (k == position || is_many(d->kind)))
            return d;
    }
    return NULL;
}

static int bind_argument(struct call *c, const struct prepare_context *x, uint32_t position,
                         struct error *e)
{
    const struct primitive *p = x->node->primitive;
    const struct argument *a = &x->node->argument[position];
    const struct parameter *d = find_parameter(p, a, position);
    if (!d && a->name[0])
        return script_error(x->script, a->at, e, "%s has no parameter '%s'", x->node->word,
                            a->name);
    if (!d)
        return script_error(x->script, a->at, e, "%s: one argument too many", x->node->word);
    uint32_t k = (uint32_t)(d - p->parameter);
    if (!fits(d->kind, a))
        return script_error(x->script, a->at, e, "%s: %s is expected here", x->node->word,
                            kind_names[d->kind]);
    if (is_many(d->kind)) {
        c->given[k] = a;
        return (d->kind == PARAMETER_SPANS ? bind_span : bind_size)(c, x, d, a, e);
    }
    if (c->given[k])
        return script_error(x->script, a->at, e, "%s: '%s' is given twice", x->node->word,
                            d->name);
    c->given[k] = a;
    c->whole[k] = d->endless && a->first > MAX_LIMIT ? MAX_LIMIT : a->first;
    c->real[k] = a->real;
    return d->kind == PARAMETER_WHOLE ? check_limits(x, d, a, c->whole[k], c->n, e) : 0;
}

static int bind_all(struct call *c, const struct prepare_context *x, struct error *e)
{
    const struct node *node = x->node;
    const struct primitive *p = node->primitive;
    c->span = memory_new(node->n_arguments, sizeof *c->span);
    c->size = memory_new(node->n_arguments, sizeof *c->size);
    for (uint32_t k = 0; k < MAX_PARAMETERS; k++)
        c->whole[k] = p->parameter[k].otherwise;
    for (uint32_t k = 0; k < node->n_arguments; k++)
        if (bind_argument(c, x, k, e) < 0)
            return -1;
    for (uint32_t k = 0; k < MAX_PARAMETERS && p->parameter[k].name; k++)
        if (!c->given[k] && !p->parameter[k].optional &&
            !(p->parameter[k].otherwise && !node->n_arguments))
            return script_error(x->script, node->at, e,
                                "%s: argument '%s' is missing, %s is "
                                "expected",
                                node->word, p->parameter[k].name,
                                kind_names[p->parameter[k].kind]);
    sort_spans(c);
    return p->prepare ? p->prepare(c, x, e) : 0;
}

int node_prepare(struct node *node, const struct script *s, const char *folder, uint32_t n,
                 struct error *e)
{
    for (uint32_t k = 0; k < node->n_children; k++)
        if (node_prepare(node->child[k], s, folder, n, e) < 0)
            return -1;
    if (node->kind != NODE_CALL)
        return 0;
    struct prepare_context x = {s, folder, node};
    call_destroy(node->call);
    node->call = memory_new(1, sizeof *node->call);
    node->call->n = n;
    return bind_all(node->call, &x, e);
}
