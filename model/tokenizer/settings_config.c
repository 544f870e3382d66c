/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_config.json. */
#include "model/checkpoint/json.h"
#include "model/tokenizer/settings.h"
#include <string.h>

/* The settings of BERT's normalizer. Only classes of BERT's kind have them. */
static int take_wordpiece(struct tokenizer_settings *s, const json_t *config, struct error *e)
{
    bool basic = true;
    struct tokenizer_settings read = *s;
    if (json_take_bool(config, "do_lower_case", &read.lowercase, e) < 0 ||
        json_take_bool(config, "tokenize_chinese_chars", &read.ideographs, e) < 0 ||
        json_take_bool(config, "do_basic_tokenize", &basic, e) < 0 ||
        settings_take_accents(&read, config, e) < 0)
        return -1;
    if (s->class != CLASS_FILE || !s->from_json)
        *s = read;
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
    const char *side = NULL;
    bool splits = false;
    if (settings_check_class(config, e) < 0 ||
        (s->wordpiece && take_wordpiece(s, config, e) < 0) ||
        take_switch(config, "add_prefix_space", &s->prefix_space, e) < 0 ||
        take_switch(config, "trim_offsets", &s->trims, e) < 0 ||
        json_take_bool(config, "split_special_tokens", &splits, e) < 0 ||
        json_take_limit(config, "model_max_length", &s->max_length, e) < 0 ||
        json_take_text(config, "truncation_side", &side, e) < 0)
        return -1;
    if (side && strcmp(side, "right") != 0)
        return error_set(e, ERROR_INPUT,
                         "truncation_side '%.60s' is not supported, right is expected", side);
    if (splits)
        return error_set(e, ERROR_INPUT, "split_special_tokens true is not supported");
    s->cuts_left = s->cuts_left && !side;
    s->decoder = json_incref(json_object_get(config, "added_tokens_decoder"));
    return settings_take_special(s, config, e);
}
