/* SPDX-License-Identifier: Apache-2.0 */
/* Reads by the architecture's tables of keys. See config.h. */
#include "model/checkpoint/config.h"
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/checkpoint/config_rotary.h"
#include "model/checkpoint/json.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Where no position depends on the padding's number, it is torch's padding_idx: null for none, below 0 for a row counted from
   the last one. False: another number. */
static bool take_padding(const json_t *value, struct model_config *c)
{
    const json_int_t pad = json_integer_value(value), words = c->vocabulary;
    if (c->arch->positions_skip_pad)
        return false;
    if (json_is_null(value))
        c->pad = NO_PADDING;
    else if (pad < 0 && pad >= -words)
        c->pad = (uint32_t)(words + pad);
    else
        return false;
    return true;
}

static int take_size(const json_t *json, const struct arch_size *s, struct model_config *c,
                     struct error *e)
{
    uint32_t *to = (uint32_t *)((char *)c + s->at);
    const json_t *value = json_object_get(json, s->key);
    bool there = value && !json_is_null(value);
    if (!there && s->required)
        return error_set(e, ERROR_INPUT, "%s is missing", s->key);
    if (s->at == offsetof(struct model_config, pad) && take_padding(value, c))
        return 0;
    if (json_take_u32(json, s->key, to, e) < 0)
        return -1;
    if (there && (*to < s->least || *to > s->most))
        return error_set(e, ERROR_INPUT, "%s %u: %u..%u is expected", s->key, *to, s->least,
                         s->most);
    return 0;
}

static int take_real(const json_t *json, const struct arch_real *r, struct model_config *c,
                     struct error *e)
{
    double *to = (double *)((char *)c + r->at);
    if (json_take_real(json, r->key, to, e) < 0)
        return -1;
    if (json_is_number(json_object_get(json, r->key)) && !(*to >= r->least && *to <= r->most))
        return error_set(e, ERROR_INPUT, "%s %g: %g..%g is expected", r->key, *to, r->least,
                         r->most);
    return 0;
}

static int take_numbers(const json_t *json, struct model_config *c, struct error *e)
{
    for (const struct arch_size *s = c->arch->sizes; s->key; s++)
        if (take_size(json, s, c, e) < 0)
            return -1;
    for (const struct arch_real *r = c->arch->reals; r->key; r++)
        if (take_real(json, r, c, e) < 0)
            return -1;
    for (const struct arch_flag *f = c->arch->flags; f && f->key; f++)
        if (json_take_bool(json, f->key, (bool *)((char *)c + f->at), e) < 0)
            return -1;
    return 0;
}

/* A text that, where it is there, must be `only`. */
static int take_only(const json_t *json, const char *key, const char *only, struct error *e)
{
    const char *text = NULL;
    if (json_take_text(json, key, &text, e) < 0)
        return -1;
    if (text && strcmp(text, only))
        return error_set(e, ERROR_INPUT, "%s '%.60s' is not supported, %s is expected", key,
                         text, only);
    return 0;
}

static int refuse_others(const json_t *json, const struct arch *a, struct error *e)
{
    for (const struct arch_only *o = a->onlys; o->key; o++)
        if (take_only(json, o->key, o->value, e) < 0)
            return -1;
    for (const char *const *off = a->off; *off; off++) {
        bool on = false;
        if (json_take_bool(json, *off, &on, e) < 0)
            return -1;
        if (on)
            return error_set(e, ERROR_INPUT, "%s true is not supported", *off);
    }
    if (take_only(json, "transformers_weights", "model.safetensors", e) < 0)
        return -1;
    if (json_object_size(json_object_get(json, "pruned_heads")))
        return error_set(e, ERROR_INPUT, "pruned_heads is not supported");
    if (json_object_size(json_object_get(json, "quantization_config")))
        return error_set(e, ERROR_INPUT, "quantization_config is not supported");
    return 0;
}

/* Files without a model_type are BERT's. */
static int take_arch(const json_t *json, const struct arch **ret, struct error *e)
{
    const char *type = "bert";
    if (json_take_text(json, "model_type", &type, e) < 0)
        return -1;
    *ret = arch_find(type);
    if (*ret)
        return 0;
    struct text names = {0};
    arch_names(&names);
    error_set(e, ERROR_INPUT, "model_type '%.60s' is not supported, %s is expected", type,
              text_get(&names));
    text_finish(&names);
    return -1;
}

static const struct arch_class *class_of(const struct model_config *c)
{
    return arch_class_find(c->arch, c->architecture);
}

bool config_class_is_unknown(const struct model_config *c)
{
    return *c->architecture && !class_of(c);
}

int config_check_class(const struct model_config *c, struct error *e)
{
    if (!config_class_is_unknown(c))
        return 0;
    struct text names = {0};
    arch_class_names(c->arch, &names);
    error_set(e, ERROR_INPUT, "architecture '%.60s' is not supported, %s is expected",
              c->architecture, text_get(&names));
    text_finish(&names);
    return -1;
}

/* The model's type decides what the encoder computes, as in AutoModel; code that comes with the model may compute anything. */
static int take_class(const json_t *json, struct model_config *c, struct error *e)
{
    const json_t *list = json_object_get(json, "architectures"),
                 *code = json_object_get(json, "auto_map");
    const char *name = json_string_value(json_array_get(list, 0));
    c->architecture = name ? name : "";
    return json_object_size(code) ? config_check_class(c, e) : 0;
}

static int take_texts(const json_t *json, struct model_config *c, struct error *e)
{
    const json_t *mask = json_object_get(json, "maskc");
    const char *act = "gelu", *key = c->arch->activation;
    c->dtype = c->problem = "";
    if (json_take_text(json, key, &act, e) < 0 ||
        activation_parse(key, act, &c->activation, e) < 0 ||
        json_take_text(json, "torch_dtype", &c->dtype, e) < 0 ||
        json_take_text(json, "dtype", &c->dtype, e) < 0 ||
        json_take_text(json, "problem_type", &c->problem, e) < 0)
        return -1;
    if (mask && !json_is_object(mask) && !json_is_null(mask))
        return error_set(e, ERROR_INPUT, "maskc: an object is expected");
    if (json_take_text(mask, "mask", &c->mask, e) < 0 ||
        json_take_text(mask, "transform", &c->mask_transform, e) < 0)
        return error_prefix(e, "maskc");
    if (json_object_get(mask, "layers"))
        return error_set(e, ERROR_INPUT,
                         "maskc.layers: a mask of some layers is not supported");
    if (c->mask && (strchr(c->mask, '/') || !*c->mask || *c->mask == '.'))
        return error_set(e, ERROR_INPUT, "maskc.mask '%.60s': a file beside it is expected",
                         c->mask);
    return 0;
}

/* The names of labels are texts or whole numbers. */
static int check_labels(json_t *labels, struct error *e)
{
    const char *number;
    json_t *name;
    json_object_foreach(labels, number, name)
    {
        if (!json_is_string(name) && !json_is_integer(name))
            return error_set(e, ERROR_INPUT,
                             "id2label: label %.20s: a text or a whole number is expected",
                             number);
    }
    return 0;
}

/* Where num_labels differs from the number of names, it wins, and config_label() ignores the names, as transformers 5 does. */
static int take_labels(const json_t *json, struct model_config *c, struct error *e)
{
    json_t *labels = json_object_get(json, "id2label");
    size_t count = json_object_size(labels);
    const bool counted = json_is_integer(json_object_get(json, "num_labels"));
    c->labels_given = count || counted;
    if (count > 1 << 20)
        return error_set(e, ERROR_INPUT, "id2label: %zu labels are too many", count);
    if (count && !counted)
        c->labels = (uint32_t)count;
    const struct arch_class *class = class_of(c);
    if (class && class->parts & PART_CLASSIFIER && check_labels(labels, e) < 0)
        return -1;
    if (class && class->labels) {
        c->labels = class->labels;
        c->labels_given = true;
        c->classifier_dropout = c->choice_dropout;
    }
    return 0;
}

static bool reads(const struct arch *a, const char *key)
{
    const struct arch_size *s = a->sizes;
    while (s->key && strcmp(s->key, key))
        s++;
    return s->key;
}

/* Position rows up to pad_token_id are reserved; text starts at the next. */
static int skip_padding(const json_t *json, struct model_config *c, struct error *e)
{
    if (!c->arch->positions_skip_pad)
        return 0;
    if (reads(c->arch, "pad_token_id") && json_is_null(json_object_get(json, "pad_token_id")))
        return error_set(e, ERROR_INPUT, "pad_token_id null: a number is expected");
    if (c->positions < c->pad + 2)
        return error_set(e, ERROR_INPUT,
                         "max_position_embeddings %u: positions begin behind pad_token_id %u",
                         c->positions, c->pad);
    c->first_position = c->pad + 1;
    c->positions -= c->first_position;
    return 0;
}

static int check(const struct model_config *c, struct error *e)
{
    if (c->hidden % c->heads)
        return error_set(e, ERROR_INPUT,
                         "hidden_size %u is no multiple of num_attention_heads %u", c->hidden,
                         c->heads);
    if (c->pad >= c->vocabulary && c->pad != NO_PADDING)
        return error_set(e, ERROR_INPUT, "pad_token_id %u is not below vocab_size %u", c->pad,
                         c->vocabulary);
    return 0;
}

static int take_head(const json_t *json, struct model_config *c, struct error *e)
{
    const char *key = c->arch->head_activation, *name = "gelu";
    c->head_activation = c->arch->head_gelu ? ACTIVATION_GELU : c->activation;
    return !key ? 0
           : json_take_text(json, key, &name, e) < 0
               ? -1
               : activation_parse(key, name, &c->head_activation, e);
}

int config_parse(json_t *json, struct model_config *ret, struct error *e)
{
    const struct arch *a;
    if (take_arch(json, &a, e) < 0)
        return -1;
    struct model_config c = a->defaults;
    c.arch = a;
    if (refuse_others(json, a, e) < 0 || take_numbers(json, &c, e) < 0 ||
        take_class(json, &c, e) < 0 || take_texts(json, &c, e) < 0 ||
        take_labels(json, &c, e) < 0 ||
        json_take_bool(json, "tie_word_embeddings", &c.tied, e) < 0 || check(&c, e) < 0 ||
        skip_padding(json, &c, e) < 0 || config_take_rotary(json, &c, e) < 0 ||
        take_head(json, &c, e) < 0)
        return -1;
    *ret = c;
    ret->json = json_incref(json);
    return 0;
}

void config_finish(struct model_config *c)
{
    json_decref(c->json);
    *c = (struct model_config){0};
}

uint32_t config_parts(const struct model_config *c)
{
    const struct arch_class *class = class_of(c);
    return class ? class->parts : PART_ENCODER;
}

const char *config_label(const struct model_config *c, uint32_t label, char buffer[24])
{
    const json_t *labels = json_object_get(c->json, "id2label");
    snprintf(buffer, 24, "%u", label);
    const json_t *name =
        json_object_size(labels) == c->labels ? json_object_get(labels, buffer) : NULL;
    if (json_is_integer(name))
        snprintf(buffer, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(name));
    else
        snprintf(buffer, 24, "LABEL_%u", label);
    return json_is_string(name) ? json_string_value(name) : buffer;
}

char *config_write(const struct model_config *c, const char *dtype)
{
    json_t *json = json_deep_copy(c->json);
    for (const struct arch_size *s = c->arch->sizes; s->key; s++) {
        uint32_t now = *(const uint32_t *)((const char *)c + s->at);
        if (s->at == offsetof(struct model_config, positions))
            now += c->first_position;
        const json_t *was = json_object_get(json, s->key);
        if (was && s->at != offsetof(struct model_config, pad) &&
            json_integer_value(was) != now)
            json_object_set_new(json, s->key, json_integer(now));
    }
    json_object_set_new(json, "torch_dtype", json_string(dtype));
    json_object_del(json, "dtype");
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15));
    json_decref(json);
    return text;
}
