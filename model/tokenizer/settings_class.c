/* SPDX-License-Identifier: Apache-2.0 */
/* The class of a folder's tokenizer, as transformers' AutoTokenizer finds it: that of tokenizer_config.json, else of
   config.json, else the one of the model's type. */
#include "model/checkpoint/json.h"
#include "model/tokenizer/settings.h"
#include <string.h>

struct class_name {
    const char *name;
    enum tokenizer_class value;
};

static const struct class_name classes[] = {
    {"BertTokenizer", CLASS_BERT},
    {"BertTokenizerFast", CLASS_BERT},
    {"DistilBertTokenizer", CLASS_BERT},
    {"DistilBertTokenizerFast", CLASS_BERT},
    {"MPNetTokenizer", CLASS_MPNET},
    {"MPNetTokenizerFast", CLASS_MPNET},
    {"RobertaTokenizer", CLASS_ROBERTA},
    {"RobertaTokenizerFast", CLASS_ROBERTA},
    {"XLMRobertaTokenizer", CLASS_OTHER},
    {"XLMRobertaTokenizerFast", CLASS_OTHER},
    {"CamembertTokenizer", CLASS_OTHER},
    {"CamembertTokenizerFast", CLASS_OTHER},
    {"PreTrainedTokenizerFast", CLASS_FILE},
    {"TokenizersBackend", CLASS_FILE},
    {0},
};

static const struct class_name models[] = {
    {"bert", CLASS_BERT},       {"distilbert", CLASS_BERT}, {"mpnet", CLASS_MPNET},
    {"roberta", CLASS_ROBERTA}, {"modernbert", CLASS_FILE}, {0},
};

static enum tokenizer_class find(const struct class_name *list, const char *name)
{
    while (list->name && strcmp(list->name, name) != 0)
        list++;
    return list->value;
}

int settings_take_class(struct tokenizer_settings *s, const json_t *config, struct error *e)
{
    const char *name = NULL;
    if (json_take_text(config, "tokenizer_class", &name, e) < 0)
        return -1;
    if (name && !s->class)
        s->class = find(classes, name);
    if (name && !s->class)
        s->class = CLASS_OTHER;
    return 0;
}

int settings_check_class(const json_t *config, struct error *e)
{
    const char *name = json_string_value(json_object_get(config, "tokenizer_class"));
    return !name || find(classes, name)
               ? 0
               : error_set(e, ERROR_INPUT,
                           "tokenizer_class '%.60s' is not supported, BertTokenizer, "
                           "RobertaTokenizer or XLMRobertaTokenizer is expected",
                           name);
}

int settings_take_model(struct tokenizer_settings *s, const json_t *config, struct error *e)
{
    const char *type = NULL;
    if (json_take_text(config, "model_type", &type, e) < 0)
        return -1;
    const enum tokenizer_class of_model = type ? find(models, type) : CLASS_UNKNOWN;
    /* ModernBERT's folders name other classes, which transformers ignores. */
    const bool ignored = of_model == CLASS_FILE;
    if ((!ignored && !s->class && settings_check_class(config, e) < 0) ||
        settings_take_class(s, config, e) < 0)
        return -1;
    if (!s->class || ignored)
        s->class = of_model;
    return 0;
}
