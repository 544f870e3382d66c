/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert info: a model's folder, read and checked as every other command reads it. */
#include "masks/base/text.h"
#include "model/arch/arch.h"
#include "model/checkpoint/json.h"
#include "model/checkpoint/sentence.h"
#include "model/checkpoint/weights.h"
#include "model/mask/model_mask.h"
#include "model/tokenizer/tokenizer.h"
#include "tools/common/table.h"
#include "tools/maskbert/command.h"
#include <stdio.h>
#include <stdlib.h>

struct model {
    struct model_config config;
    struct weights weights;
    struct tokenizer *tokenizer; /* null: the folder has none */
    struct sentence_settings sentence;
    struct error
        refused; /* the reason why sentence vectors are not supported, or an empty text */
    uint32_t sentence_length;
    struct mask *mask; /* null: the folder has none */
    bool mask_changed; /* its hash is not config.json's */
    uint64_t parameters;
};

static const struct {
    uint32_t part;
    const char *name;
} parts[] = {
    {PART_POOLER, "pooler"},     {PART_MLM, "masked language model"},
    {PART_NSP, "next sentence"}, {PART_CLASSIFIER, "classifier"},
    {PART_SPAN, "span"},
};

enum { N_PARTS = sizeof parts / sizeof *parts };

static json_t *part_list(const struct weights *w, uint32_t which)
{
    json_t *list = json_array();
    for (int k = 0; k < N_PARTS; k++)
        if (which & w->parts & parts[k].part)
            json_array_append_new(list, json_string(parts[k].name));
    return list;
}

static json_t *label_list(const struct model_config *c)
{
    json_t *list = json_array();
    char buffer[24];
    for (uint32_t k = 0; k < c->labels && k < 1000; k++)
        json_array_append_new(list, json_string(config_label(c, k, buffer)));
    return list;
}

static json_t *tokenizer_json(const struct tokenizer *t)
{
    if (!t)
        return json_null();
    return json_pack("{s:s, s:i, s:b, s:b, s:i}", "model", tokenizer_kind_name(t), "tokens",
                     (int)t->vocabulary.count, "lowercase", t->rules.lowercase, "strip_accents",
                     t->rules.strip_accents, "max_length", (int)t->max_length);
}

/* Inactive entries of all heads and layers, in percent. */
static double sparsity(const struct mask *m)
{
    double active = 0, heads = (double)m->layers * m->heads;
    for (uint32_t k = 0; k < m->layers * m->heads; k++)
        active += (double)m->pattern[m->at[k]]->active;
    return 100 * (1 - active / ((double)m->n * m->n * heads));
}

static json_t *mask_json(const struct model *m)
{
    const struct model_config *c = &m->config;
    if (!m->mask)
        return json_null();
    return json_pack("{s:s, s:s, s:f, s:b}", "file", c->mask, "transform",
                     c->mask_transform ? c->mask_transform : "softmax", "sparsity",
                     sparsity(m->mask), "changed", m->mask_changed);
}

/* "mean", "mean+cls" */
static void print_poolings(const struct sentence_settings *s, struct text *out)
{
    for (uint32_t k = 0; k < s->poolings; k++)
        text_add(out, "%s%s", k ? "+" : "", pooling_name(s->pooling[k]));
}

static json_t *dense_json(const struct sentence_settings *s)
{
    json_t *ret = json_array();
    for (uint32_t k = 0; k < s->steps; k++)
        if (s->step[k])
            json_array_append_new(ret, json_integer((json_int_t)s->step[k]->out));
    return ret;
}

static json_t *sentence_json(const struct model *m)
{
    const struct sentence_settings *s = &m->sentence;
    struct error ignored;
    if (*m->refused.text)
        return json_pack("{s:s}", "refused", m->refused.text);
    if (!s->there)
        return json_null();
    struct text poolings = {0};
    print_poolings(s, &poolings);
    json_t *ret = json_pack("{s:s, s:o, s:b, s:i, s:i, s:s}", "pooling", text_get(&poolings),
                            "dense", dense_json(s), "normalize", s->normalize, "max_length",
                            (int)m->sentence_length, "dimension", (int)s->dimension, "prompt",
                            sentence_prompt(s, NULL, &ignored));
    text_finish(&poolings);
    return ret;
}

static void print_json(const struct model *m)
{
    const struct model_config *c = &m->config;
    json_t *notes = json_array();
    for (uint32_t k = 0; k < m->weights.n_notes; k++)
        json_array_append_new(notes, json_string(m->weights.note[k]));
    bool labelled = m->weights.parts & PART_CLASSIFIER;
    json_t *json = json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:f, s:I, s:s, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o}",
        "architecture", c->architecture, "layers", (int)c->layers, "hidden", (int)c->hidden,
        "heads", (int)c->heads, "intermediate", (int)c->intermediate, "positions",
        (int)c->positions, "vocabulary", (int)c->vocabulary, "types", (int)c->types,
        "activation", activation_name(c->activation), "layer_norm_eps", c->layer_norm_eps,
        "parameters", (json_int_t)m->parameters, "dtype",
        element_name(weights_element(&m->weights)), "parts",
        part_list(&m->weights, ~m->weights.new_parts), "new_parts",
        part_list(&m->weights, m->weights.new_parts), "labels",
        labelled ? label_list(c) : json_array(), "tokenizer", tokenizer_json(m->tokenizer),
        "mask", mask_json(m), "sentence", sentence_json(m), "notes", notes);
    json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
    printf("\n");
    json_decref(json);
}

static void add_parts(const struct weights *w, uint32_t which, const char *title,
                      struct text *out)
{
    const char *before = title;
    for (int k = 0; k < N_PARTS; k++)
        if (which & w->parts & parts[k].part) {
            text_add(out, "%s%s", before, parts[k].name);
            before = ", ";
        }
    if (before != title)
        text_add(out, "\n");
}

static void add_sentences(const struct model *m, struct text *out)
{
    const struct sentence_settings *s = &m->sentence;
    struct text line = {0};
    if (*m->refused.text)
        text_add(out, "  sentences: %s\n", m->refused.text);
    if (*m->refused.text || !s->there)
        return;
    print_poolings(s, &line);
    text_add(&line, " pooling");
    for (uint32_t k = 0; k < s->steps; k++)
        if (s->step[k])
            text_add(&line, ", dense to %u", s->step[k]->out);
    text_add(out, "  sentences: %s%s\n", text_get(&line), s->normalize ? ", normalised" : "");
    text_finish(&line);
}

static void add_text(const struct model *m, const char *folder, struct text *out)
{
    const struct model_config *c = &m->config;
    const struct tokenizer *t = m->tokenizer;
    text_add(out, "%s: %s, %.1f million parameters, %s\n", folder,
             *c->architecture ? c->architecture : c->arch->title, (double)m->parameters / 1e6,
             element_name(weights_element(&m->weights)));
    text_add(out, "  %u layers, hidden size %u, %u heads of %u, intermediate size %u, %s\n",
             c->layers, c->hidden, c->heads, c->hidden / c->heads, c->intermediate,
             activation_name(c->activation));
    text_add(out, "  %u positions, %u tokens, %u types\n", c->positions, c->vocabulary,
             c->types);
    add_parts(&m->weights, ~m->weights.new_parts, "  has: ", out);
    add_parts(&m->weights, m->weights.new_parts, "  lacks: ", out);
    if (t)
        text_add(out, "  tokenizer: %s, %u tokens, %s%s\n", tokenizer_kind_name(t),
                 t->vocabulary.count, t->rules.lowercase ? "uncased" : "cased",
                 t->rules.strip_accents ? ", accents stripped" : "");
    else
        text_add(out, "  no tokenizer\n");
    add_sentences(m, out);
    if (m->mask)
        text_add(out, "  mask: %s, %s, %.1f %% sparse%s\n", c->mask,
                 c->mask_transform ? c->mask_transform : "softmax", sparsity(m->mask),
                 m->mask_changed ? "; it has changed since config.json was written" : "");
}

static int read_model(const char *folder, struct model *m, struct error *e)
{
    if (config_read(folder, &m->config, e) < 0 ||
        weights_read(folder, &m->config, &m->weights, e) < 0 ||
        sentence_read_length(folder, &m->sentence_length, e) < 0)
        return -1;
    (void)sentence_read(folder, false, &m->sentence, &m->refused);
    for (uint32_t k = 0; k < m->weights.n_tensors; k++)
        if (m->weights.tensor[k].data)
            m->parameters += m->weights.tensor[k].parameter.count;
    if (m->config.mask) {
        m->mask = model_mask_stored(folder, &m->config, &m->mask_changed, e);
        if (!m->mask)
            return -1;
    }
    if (!tokenizer_exists(folder))
        return 0;
    m->tokenizer = tokenizer_load(folder, TOKENIZER_HF, e);
    if (!m->tokenizer)
        return -1;
    if (m->tokenizer->vocabulary.count > m->config.vocabulary)
        return error_set(e, ERROR_INPUT, "%s: the tokenizer has %u tokens, the model %u",
                         folder, m->tokenizer->vocabulary.count, m->config.vocabulary);
    return 0;
}

int command_info(const struct options *o)
{
    struct error e = {0};
    struct model m = {0};
    int r = read_model(o->argument, &m, &e);
    if (r == 0 && o->json) {
        print_json(&m);
    } else if (r == 0) {
        struct text out = {0};
        add_text(&m, o->argument, &out);
        lines_print(&out, TABLE_WIDTH, 2);
        notes_print(&m.weights, o->argument);
    }
    tokenizer_destroy(m.tokenizer);
    mask_destroy(m.mask);
    weights_finish(&m.weights);
    sentence_finish(&m.sentence);
    config_finish(&m.config);
    return r < 0 ? command_fail(&e) : 0;
}
