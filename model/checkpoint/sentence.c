/* SPDX-License-Identifier: Apache-2.0 */
/* Settings beside the modules: lengths, case, prompts and dimensions. See sentence.h. */
#include "model/checkpoint/sentence.h"
#include "model/checkpoint/json.h"
#include "model/checkpoint/sentence_modules.h"
#include <stdlib.h>
#include <string.h>

static const char *const poolings[POOLING_COUNT] = {
    "mean", "cls", "pooler", "none", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken",
};

const char *pooling_name(enum pooling p)
{
    return poolings[p];
}

int pooling_parse(const char *name, enum pooling *ret, struct error *e)
{
    for (int k = 0; k <= POOLING_NONE; k++)
        if (!strcmp(poolings[k], name)) {
            *ret = (enum pooling)k;
            return 0;
        }
    return error_set(e, ERROR_INPUT, "pooling '%.60s': mean, cls, pooler or none is expected",
                     name);
}

static const json_t *find_prompt(const struct sentence_settings *s, const char *name)
{
    return json_object_get(json_object_get(s->config, "prompts"), name);
}

static int check_prompts(const struct sentence_settings *s, struct error *e)
{
    json_t *prompts = json_object_get(s->config, "prompts"), *text;
    const char *name;
    if (prompts && !json_is_null(prompts) && !json_is_object(prompts))
        return error_set(e, ERROR_INPUT, "prompts: an object is expected");
    json_object_foreach(prompts, name, text)
    {
        if (!json_is_string(text) && !json_is_null(text))
            return error_set(e, ERROR_INPUT, "prompts: '%.60s': a string is expected", name);
    }
    return sentence_prompt(s, NULL, e) ? 0 : -1;
}

/* Names that exist without a text, as in sentence-transformers. */
static bool is_standard(const char *name)
{
    return !strcmp(name, "query") || !strcmp(name, "document");
}

const char *sentence_prompt(const struct sentence_settings *s, const char *name,
                            struct error *e)
{
    if (!name && json_take_text(s->config, "default_prompt_name", &name, e) < 0)
        return NULL;
    if (!name)
        return "";
    const json_t *text = find_prompt(s, name);
    if (!text && !(s->there && is_standard(name))) {
        error_set(e, ERROR_INPUT, "no prompt '%.60s' in config_sentence_transformers.json",
                  name);
        return NULL;
    }
    return json_is_string(text) ? json_string_value(text) : "";
}

static int take_config(struct sentence_settings *s, bool own_pooling, struct error *e)
{
    static const char kind[] = "SentenceTransformer";
    const char *type = kind;
    const json_t *dimension = json_object_get(s->config, "truncate_dim");
    if (json_take_text(s->config, "model_type", &type, e) < 0 ||
        json_take_limit(s->config, "truncate_dim", &s->dimension, e) < 0)
        return -1;
    if (strcmp(type, kind) != 0 && !own_pooling)
        return error_set(e, ERROR_INPUT, "model_type '%.60s' is not supported, %s is expected",
                         type, kind);
    if (json_is_number(dimension) && json_number_value(dimension) < 1)
        return error_set(e, ERROR_INPUT, "truncate_dim %g: at least 1 is expected",
                         json_number_value(dimension));
    return check_prompts(s, e);
}

int sentence_read(const char *folder, bool own_pooling, struct sentence_settings *ret,
                  struct error *e)
{
    static const char file[] = "config_sentence_transformers.json";
    struct sentence_settings s = {.pooling = {POOLING_MEAN}, .poolings = 1};
    s.there = path_exists(folder, "modules.json");
    int r = s.there && !own_pooling ? sentence_modules_read(folder, &s, e) : 0;
    if (r == 0 && s.there)
        r = json_read_optional(folder, file, &s.config, e);
    if (r == 0 && s.there && take_config(&s, own_pooling, e) < 0)
        r = error_prefix(e, "%s/%s", folder, file);
    if (r < 0)
        sentence_finish(&s);
    *ret = s;
    return r;
}

void sentence_finish(struct sentence_settings *s)
{
    json_decref(s->config);
    for (uint32_t k = 0; k < s->steps; k++)
        sentence_dense_destroy(s->step[k]);
    free(s->step);
    *s = (struct sentence_settings){0};
}

const char *sentence_encoder_file(const char *folder)
{
    static const char *const names[] = {
        "sentence_bert_config.json",       "sentence_roberta_config.json",
        "sentence_distilbert_config.json", "sentence_camembert_config.json",
        "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
        "sentence_xlnet_config.json",
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (path_exists(folder, names[k]))
            return names[k];
    return names[0];
}

int sentence_read_length(const char *folder, uint32_t *ret, struct error *e)
{
    json_t *config;
    *ret = 0;
    if (!path_exists(folder, "modules.json"))
        return 0;
    const char *file = sentence_encoder_file(folder);
    if (json_read_optional(folder, file, &config, e) < 0)
        return -1;
    int r = json_take_limit(config, "max_seq_length", ret, e);
    json_decref(config);
    return r < 0 ? error_prefix(e, "%s/%s", folder, file) : 0;
}
