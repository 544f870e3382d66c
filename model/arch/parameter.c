/* SPDX-License-Identifier: Apache-2.0 */
/* From an architecture's rows to the parameters of a model, and names to and from those of files. */
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include <stdio.h>
#include <string.h>

static uint64_t size_of(const struct model_config *c, char letter)
{
    switch (letter) {
    case 'V':
        return c->vocabulary;
    case 'P':
        return (uint64_t)c->first_position + c->positions;
    case 'T':
        return c->types;
    case 'H':
        return c->hidden;
    case 'I':
        return c->intermediate;
    case 'R':
        return c->relative;
    case 'A':
        return c->heads;
    case '3':
        return 3 * (uint64_t)c->hidden;
    case 'G':
        return 2 * (uint64_t)c->intermediate;
    case 'L':
        return c->labels;
    default:
        return 2;
    }
}

static struct parameter make(const struct model_config *c, const struct parameter_row *r)
{
    struct parameter p = {
        .id = r->id,
        .rank = (uint32_t)strlen(r->shape),
        .count = 1,
        .part = r->part,
        .first = r->first,
        .decays = r->decays,
        .outside = r->models == FOR_DENSE,
        .by_word = r->shape[0] == 'V',
    };
    snprintf(p.name, sizeof p.name, "%s", r->name);
    for (uint32_t k = 0; k < p.rank; k++)
        p.count *= p.shape[k] = size_of(c, r->shape[k]);
    return p;
}

static struct parameter make_in_layer(const struct model_config *c,
                                      const struct parameter_row *r, uint32_t layer)
{
    struct parameter p = make(c, r);
    char prefix[32];
    p.layer = layer;
    snprintf(prefix, sizeof prefix, c->arch->layer, layer); /* NOLINT: of a const table */
    snprintf(p.name, sizeof p.name, "%s%.60s", prefix, r->name);
    return p;
}

static bool spans(const struct model_config *c)
{
    const struct arch_class *class = arch_class_find(c->arch, c->architecture);
    return class && class->parts & PART_SPAN;
}

/* MLM decoders may be the word embeddings. */
static bool has(const struct model_config *c, const struct parameter_row *r, uint32_t layer)
{
    if (c->tied && r->id == PARAMETER_MLM_DECODER)
        return false;
    switch (r->models) {
    case FOR_DENSE:
        return arch_pooler(c) == POOLER_DROPS;
    case FOR_OTHERS:
        return arch_pooler(c) != POOLER_DROPS;
    case FOR_SPANS:
        return spans(c);
    case FOR_LABELS:
        return !spans(c);
    case WITH_ATTENTION_BIAS:
        return c->attention_bias;
    case WITH_FEED_BIAS:
        return c->feed_bias;
    case WITH_NORM_BIAS:
        return c->norm_bias;
    case WITH_DECODER_BIAS:
        return c->decoder_bias;
    case WITH_DENSE_BIAS:
        return c->dense_bias;
    case BEHIND_FIRST:
        return layer > 0;
    case BEHIND_FIRST_WITH_NORM_BIAS:
        return layer > 0 && c->norm_bias;
    default:
        return true;
    }
}

struct parameter *parameters_list(const struct model_config *c, uint32_t parts,
                                  uint32_t *ret_count)
{
    const struct arch *a = c->arch;
    struct parameter *list =
        memory_new(PARAMETER_COUNT * ((size_t)c->layers + 1), sizeof *list);
    uint32_t n = 0;
    for (const struct parameter_row *r = a->before; r->name; r++)
        if (has(c, r, 0))
            list[n++] = make(c, r);
    for (uint32_t layer = 0; layer < c->layers; layer++)
        for (const struct parameter_row *r = a->in_layer; r->name; r++)
            if (has(c, r, layer))
                list[n++] = make_in_layer(c, r, layer);
    for (const struct parameter_row *r = a->after; r->name; r++)
        if (parts & r->part && has(c, r, 0))
            list[n++] = make(c, r);
    *ret_count = n;
    return list;
}

/* Replaces the first `from` in the name, if there is one. The result always fits: names never grow beyond
   their array. */
static void rename_part(char name[PARAMETER_NAME_BYTES], const struct arch_rename *r)
{
    char *at = strstr(name, r->from);
    char rest[PARAMETER_NAME_BYTES];
    if (!at || (r->whole && strcmp(name, r->from)))
        return;
    snprintf(rest, sizeof rest, "%s", at + strlen(r->from));
    snprintf(at, (size_t)(PARAMETER_NAME_BYTES - (at - name)), "%s%s", r->to, rest);
}

bool parameter_name(const struct arch *a, const char *file_name, char ret[PARAMETER_NAME_BYTES])
{
    const char *const prefix[] = {"module.", a->prefix}; /* DataParallel's, its own */
    for (size_t k = 0; k < sizeof prefix / sizeof *prefix; k++)
        if (!strncmp(file_name, prefix[k], strlen(prefix[k])))
            file_name += strlen(prefix[k]);
    snprintf(ret, PARAMETER_NAME_BYTES, "%s", file_name);
    for (const struct arch_rename *r = a->renames; r->from; r++)
        rename_part(ret, r);
    for (const char *const *b = a->buffers; *b; b++)
        if (!strcmp(ret, *b))
            return false;
    return true;
}

uint32_t parameter_parts(const struct arch *a, const char *name)
{
    uint32_t parts = 0;
    for (const struct arch_prefix *p = a->prefixes; p->prefix; p++)
        if (!strncmp(name, p->prefix, strlen(p->prefix)))
            parts |= p->part;
    return parts;
}

void parameter_file_name(const struct parameter *p, const struct model_config *c,
                         char ret[PARAMETER_NAME_BYTES])
{
    bool inner = p->part & c->arch->prefixed && !p->outside;
    bool plain = !*c->architecture || !strcmp(c->architecture, c->arch->classes->name);
    snprintf(ret, PARAMETER_NAME_BYTES, "%s%.88s", inner && !plain ? c->arch->prefix : "",
             p->name);
}
