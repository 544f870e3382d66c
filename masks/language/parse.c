/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive descent over the tokens, one function per rule of the grammar in masks/README.md.
   A word with a definition is replaced by the tree of its definition, with the arguments put in
   the places of the parameters; errors inside it point to where the user wrote the word. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/language/gallery.h"
#include "masks/language/language.h"
#include "masks/language/parser.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void argument_finish(struct argument *a)
{
    free(a->string);
    free(a->list);
}

void node_destroy(struct node *n)
{
    if (!n)
        return;
    for (uint32_t k = 0; k < n->n_children; k++)
        node_destroy(n->child[k]);
    for (uint32_t k = 0; k < n->n_arguments; k++)
        argument_finish(&n->argument[k]);
    free(n->child);
    free(n->argument);
    call_destroy(n->call);
    runs_finish(&n->out);
    runs_finish(&n->spare);
    free(n);
}

static struct node *make(struct parser *p, enum node_kind kind)
{
    struct node *n = memory_new(1, sizeof *n);
    n->kind = kind;
    n->at = parser_place(p);
    return n;
}

static void adopt(struct node *parent, struct node *child)
{
    *MEMORY_PUSH(parent->child, parent->n_children, parent->capacity) = child;
}

static uint32_t smallest(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Edits (insert, delete, replace) between two words. */
static uint32_t distance(const char *a, const char *b)
{
    uint32_t row[WORD_MAX + 2], n = (uint32_t)strlen(b);
    for (uint32_t k = 0; k <= n; k++)
        row[k] = k;
    for (uint32_t i = 1; *a; a++, i++) {
        uint32_t corner = row[0];
        row[0] = i;
        for (uint32_t k = 1; k <= n; k++) {
            uint32_t up = row[k];
            row[k] = smallest(smallest(row[k - 1], up) + 1, corner + (*a != b[k - 1]));
            corner = up;
        }
    }
    return row[n];
}

/* The word or gallery name that was probably meant: two edits away at most, or with this beginning. */
static const char *near_word(const char *word)
{
    const char *near = NULL;
    const size_t length = strlen(word);
    uint32_t best = 3;
    for (const struct primitive *k = primitives; k->name; k++) {
        uint32_t d = distance(word, k->name);
        if (d < best)
            best = d, near = k->name;
        else if (!near && length > 2 && !strncmp(word, k->name, length))
            near = k->name;
    }
    for (const struct gallery_entry *g = mask_gallery; g->name && !near; g++)
        if (length > 2 && !strncmp(word, g->name, length))
            near = g->name;
    return near;
}

/* The gallery name with a hyphen that covers byte `at`, or null; *ret_begin is where it begins. */
static const struct gallery_entry *gallery_around(const struct script *s, uint32_t at,
                                                  uint32_t *ret_begin)
{
    for (uint32_t k = at;; k--) {
        const bool part = k == 0 || !word_character(s->text[k - 1]);
        const struct gallery_entry *g =
            part ? gallery_begins(s->text + k, s->length - k) : NULL;
        if (g && k + strlen(g->name) > at) {
            *ret_begin = k;
            return g;
        }
        if (k == 0 || !(word_character(s->text[k - 1]) || s->text[k - 1] == '-'))
            return NULL;
    }
}

static int gallery_alone(struct parser *p, uint32_t at, const struct gallery_entry *g)
{
    const char *word = gallery_word(g);
    if (word)
        return script_error(p->user, at, p->e,
                            "'%s' is a MASK only by itself, '%s' is expected here", g->name,
                            word);
    return script_error(p->user, at, p->e, "'%s' is a MASK only by itself, without arguments",
                        g->name);
}

static int unknown_word(struct parser *p, uint32_t at, const char *word)
{
    uint32_t begin;
    const struct gallery_entry *g = gallery_around(p->user, at, &begin);
    const char *near = g ? NULL : near_word(word);
    if (g)
        return gallery_alone(p, begin, g);
    if (near)
        return script_error(p->user, at, p->e, "unknown word '%s', '%s' is near it", word,
                            near);
    struct text all = {0};
    for (const struct primitive *k = primitives; k->name; k++)
        text_add(&all, "%s%s", k == primitives ? "" : ", ", k->name);
    int r =
        script_error(p->user, at, p->e,
                     "unknown word '%s', a name that 'maskc gallery' lists or one of these is "
                     "expected: %s",
                     word, text_get(&all));
    text_finish(&all);
    return r;
}

static struct node *parse_union(struct parser *p);

static struct argument otherwise(const struct parameter *d, uint32_t at)
{
    return (struct argument){.at = at,
                             .whole = true,
                             .real = (double)d->otherwise,
                             .first = d->otherwise,
                             .last = d->otherwise};
}

/* Which parameter an argument of a definition is for; -1 with *e set. */
static int match(struct parser *p, const struct primitive *d, const struct argument *a,
                 uint32_t at)
{
    for (int k = 0; k < MAX_PARAMETERS && d->parameter[k].name; k++)
        if (a->name[0] ? !strcmp(a->name, d->parameter[k].name)
                       : (uint32_t)k == at && !d->parameter[k].optional)
            return a->kind == ARGUMENT_NUMBER && a->whole
                       ? k
                       : script_error(p->user, a->at, p->e,
                                      "%s: a whole number is expected here", d->name);
    return script_error(p->user, a->at, p->e,
                        a->name[0] ? "%s has no parameter '%s'" : "%s: one argument too many",
                        d->name, a->name);
}

/* Replaces a call of a definition by its tree. */
static struct node *expand(struct parser *p, struct node *call)
{
    const struct primitive *d = call->primitive;
    struct argument value[MAX_PARAMETERS];
    struct bindings bindings = {.of = d, .at = call->at};
    struct node *ret = NULL;
    bool bare = call->n_arguments == 0;
    for (uint32_t k = 0; k < call->n_arguments; k++) {
        int which = match(p, d, &call->argument[k], k);
        if (which < 0)
            goto out;
        if (bindings.value[which]) {
            script_error(p->user, call->argument[k].at, p->e, "%s: '%s' is given twice",
                         d->name, d->parameter[which].name);
            goto out;
        }
        bindings.value[which] = &call->argument[k];
    }
    for (uint32_t k = 0; k < MAX_PARAMETERS && d->parameter[k].name; k++) {
        if (!bindings.value[k] && !bare && !d->parameter[k].optional) {
            script_error(p->user, call->at, p->e, "%s: argument '%s' is missing", d->name,
                         d->parameter[k].name);
            goto out;
        }
        value[k] = otherwise(&d->parameter[k], call->at);
        if (!bindings.value[k])
            bindings.value[k] = &value[k];
    }
    struct script text;
    if (script_read(d->name, d->definition, strlen(d->definition), &text, p->e) == 0) {
        struct parser inner = {
            .script = &text, .user = p->user, .bindings = &bindings, .e = p->e};
        ret = parse_union(&inner);
        script_finish(&text);
    }
out:
    node_destroy(call);
    return ret;
}

static struct node *parse_call(struct parser *p)
{
    char word[WORD_MAX + 1];
    parser_copy_word(p, word);
    const struct primitive *found = primitive_find(word);
    if (!found) {
        unknown_word(p, parser_place(p), word);
        return NULL;
    }
    struct node *call = make(p, NODE_CALL);
    call->primitive = found;
    call->word = p->bindings ? p->bindings->of->name : found->name;
    p->next++;
    if (parser_accept(p, '(') && arguments_parse(p, call) < 0) {
        node_destroy(call);
        return NULL;
    }
    return found->definition ? expand(p, call) : call;
}

static struct node *parse_brackets(struct parser *p)
{
    struct node *inside = parse_union(p);
    if (inside && !parser_accept(p, ')')) {
        parser_expected(p, "')' or an operator");
        node_destroy(inside);
        return NULL;
    }
    return inside;
}

/* term = "~" term | "(" expr ")" | WORD ... */
static struct node *parse_term(struct parser *p)
{
    if (parser_peek(p)->kind == TOKEN_WORD)
        return parse_call(p);
    if (p->depth == EXPRESSION_MAX_DEPTH) {
        script_error(p->user, parser_place(p), p->e, "brackets and '~' nest at most %d deep",
                     EXPRESSION_MAX_DEPTH);
        return NULL;
    }
    struct node *ret = NULL;
    p->depth++;
    if (parser_peek(p)->kind == '~') {
        ret = make(p, NODE_NOT);
        p->next++;
        struct node *child = parse_term(p);
        if (child)
            adopt(ret, child);
        else
            node_destroy(ret), ret = NULL;
    } else if (parser_accept(p, '(')) {
        ret = parse_brackets(p);
    } else {
        parser_expected(p, "a word, '(' or '~'");
    }
    p->depth--;
    return ret;
}

/* A chain of one operator; one operand alone is itself. */
static struct node *parse_chain(struct parser *p, int sign, enum node_kind kind,
                                struct node *(*parse_operand)(struct parser *))
{
    struct node *first = parse_operand(p), *chain = NULL;
    if (!first || parser_peek(p)->kind != sign)
        return first;
    chain = make(p, kind);
    adopt(chain, first);
    while (parser_accept(p, sign)) {
        struct node *operand = parse_operand(p);
        if (!operand) {
            node_destroy(chain);
            return NULL;
        }
        adopt(chain, operand);
    }
    return chain;
}

static struct node *parse_both(struct parser *p)
{
    return parse_chain(p, '&', NODE_BOTH, parse_term);
}

static struct node *parse_minus(struct parser *p)
{
    return parse_chain(p, '-', NODE_MINUS, parse_both);
}

static struct node *parse_union(struct parser *p)
{
    return parse_chain(p, '|', NODE_UNION, parse_minus);
}

struct node *expression_parse(const struct script *s, uint32_t *next, struct error *e)
{
    struct parser p = {.script = s, .user = s, .next = *next, .e = e};
    struct node *ret = parse_union(&p);
    *next = p.next;
    return ret;
}
