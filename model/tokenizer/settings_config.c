/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_config.json. */
#include "model/checkpoint/json.h"
#include "model/tokenizer/settings.h"
#include <string.h>

/* Their fast tokenizers are what tokenizer.json says, but for RoBERTa's two settings. */
static const char *const classes[] = {
    "BertTokenizer",           "BertTokenizerFast",       "DistilBertTokenizer",
    "DistilBertTokenizerFast", "MPNetTokenizer",          "MPNetTokenizerFast",
    "RobertaTokenizer",        "RobertaTokenizerFast",    "XLMRobertaTokenizer",
    "XLMRobertaTokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend",
};

static int check_class(struct tokenizer_settings *s, const json_t *config, struct error *e)
{
    const char *name = NULL;
    if (json_take_text(config, "tokenizer_class", &name, e) < 0)
        return -1;
    s->roberta |= name && !strncmp(name, "RobertaTokenizer", sizeof "RobertaTokenizer" - 1);
    for (size_t k = 0; name && k < sizeof classes / sizeof *classes; k++)
        if (!strcmp(name, classes[k]))
            return 0;
    return !name ? 0
                 : error_set(e, ERROR_INPUT,
                             "tokenizer_class '%.60s' is not supported, BertTokenizer, "
                             "RobertaTokenizer or XLMRobertaTokenizer is expected",
                             name);
}

/* The settings of BERT's normalizer. */
static int take_wordpiece(struct tokenizer_settings *s, const json_t *config, struct error *e)
{
    bool basic = true;
    if (json_take_bool(config, "do_lower_case", &s->lowercase, e) < 0 ||
        json_take_bool(config, "tokenize_chinese_chars", &s->ideographs, e) < 0 ||
        json_take_bool(config, "do_basic_tokenize", &basic, e) < 0 ||
        settings_take_accents(s, config, e) < 0)
        return -1;
    if (!basic)
        return error_set(e, ERROR_INPUT, "do_basic_tokenize false is not supported");
    if (json_array_size(json_object_get(config, "never_split")))
        return error_set(e, ERROR_INPUT, "never_split is not supported");
    return 0;
}

static int take_switch(const json_t *config, const char *key, int *ret, struct error *e)
{
    bool value = *ret > 0;
    if (json_take_bool(config, key, &value, e) < 0)
        return -1;
    if (json_is_boolean(json_object_get(config, key)))
        *ret = value;
    return 0;
}

int settings_take_config(struct tokenizer_settings *s, const json_t *config, struct error *e)
{
    const char *side = "right";
    bool splits = false;
    if (check_class(s, config, e) < 0 || (s->wordpiece && take_wordpiece(s, config, e) < 0) ||
        take_switch(config, "add_prefix_space", &s->prefix_space, e) < 0 ||
        take_switch(config, "trim_offsets", &s->trims, e) < 0 ||
        json_take_bool(config, "split_special_tokens", &splits, e) < 0 ||
        json_take_limit(config, "model_max_length", &s->max_length, e) < 0 ||
        json_take_text(config, "truncation_side", &side, e) < 0)
        return -1;
    if (strcmp(side, "right") != 0)
        return error_set(e, ERROR_INPUT,
                         "truncation_side '%.60s' is not supported, right is expected", side);
    if (splits)
        return error_set(e, ERROR_INPUT, "split_special_tokens true is not supported");
    s->decoder = json_incref(json_object_get(config, "added_tokens_decoder"));
    return settings_take_special(s, config, e);
}
