/* SPDX-License-Identifier: Apache-2.0 */
/* BERT's tokenizer is one pipeline with a few switches: every part of a tokenizer.json must be the expected one, and
   anything else is refused. See settings.h. */
#include "model/tokenizer/settings.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *key, *text;
} special_names[NAME_COUNT] = {
    [NAME_UNKNOWN] = {"unk_token", "[UNK]"}, [NAME_BEGIN] = {"cls_token", "[CLS]"},
    [NAME_END] = {"sep_token", "[SEP]"},     [NAME_PAD] = {"pad_token", "[PAD]"},
    [NAME_MASK] = {"mask_token", "[MASK]"},
};

enum { MAX_WORD_CHARS = 100000 };

struct tokenizer_settings settings_default(void)
{
    struct tokenizer_settings s = {
        .wordpiece = true,
        .clean = true,
        .ideographs = true,
        .lowercase = true,
        .max_chars = 100,
        .prefix_space = -1,
        .trims = -1,
    };
    for (int k = 0; k < NAME_COUNT; k++)
        s.special[k].text = memory_text(special_names[k].text);
    s.prefix = memory_text("##");
    return s;
}

static void replace(char **text, const char *by)
{
    char *copy = memory_text(by);
    free(*text);
    *text = copy;
}

void settings_name_roberta(struct tokenizer_settings *s)
{
    static const char *const names[NAME_COUNT] = {"<unk>", "<s>", "</s>", "<pad>", "<mask>"};
    for (int k = 0; k < NAME_COUNT; k++) {
        replace(&s->special[k].text, names[k]);
        s->special[k].given = true;
    }
}

void settings_roberta(struct tokenizer_settings *s)
{
    settings_name_roberta(s);
    s->wordpiece = false;
    s->class = CLASS_ROBERTA;
    s->roberta_pairs = true;
    s->post.trims = true;
}

void settings_mpnet(struct tokenizer_settings *s)
{
    settings_name_roberta(s);
    replace(&s->special[NAME_UNKNOWN].text, "[UNK]");
    s->special[NAME_MASK].flags.eats_left = true;
    s->post.trims = true;
    s->roberta_pairs = true;
}

void settings_finish(struct tokenizer_settings *s)
{
    for (int k = 0; k < NAME_COUNT; k++)
        free(s->special[k].text);
    for (uint32_t k = 0; k < s->n_extra; k++)
        free(s->extra[k].text);
    free(s->extra);
    free(s->prefix);
    post_finish(&s->post);
    json_decref(s->decoder);
    json_decref(s->added_map);
    *s = (struct tokenizer_settings){0};
}

/* The object's "type", "" where there is none. */
static const char *type_of(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    return type ? type : "";
}

static int refuse(struct error *e, const char *part, const json_t *value, const char *expected)
{
    return error_set(e, ERROR_INPUT, "%s '%.60s' is not supported, %s is expected", part,
                     type_of(value), expected);
}

int settings_take_accents(struct tokenizer_settings *s, const json_t *from, struct error *e)
{
    const json_t *value = json_object_get(from, "strip_accents");
    if (!value)
        return 0;
    s->strip_given = !json_is_null(value);
    return json_take_bool(from, "strip_accents", &s->strip_accents, e);
}

static int take_normalizer(struct tokenizer_settings *s, const json_t *n, struct error *e)
{
    if (strcmp(type_of(n), "BertNormalizer"))
        return refuse(e, "normalizer", n, "BertNormalizer");
    if (json_take_bool(n, "clean_text", &s->clean, e) < 0 ||
        json_take_bool(n, "handle_chinese_chars", &s->ideographs, e) < 0 ||
        json_take_bool(n, "lowercase", &s->lowercase, e) < 0)
        return error_prefix(e, "normalizer");
    return settings_take_accents(s, n, e) < 0 ? error_prefix(e, "normalizer") : 0;
}

/* The defaults of BERT's classes, which replace the file's settings. */
static void reset_normalizer(struct tokenizer_settings *s)
{
    s->lowercase = s->ideographs = true;
    s->strip_given = false;
}

static int take_model(struct tokenizer_settings *s, const json_t *m, struct error *e)
{
    const char *unknown = NULL, *prefix = NULL;
    if (*type_of(m) && strcmp(type_of(m), "WordPiece"))
        return refuse(e, "model", m, "WordPiece");
    if (json_take_text(m, "unk_token", &unknown, e) < 0 ||
        json_take_text(m, "continuing_subword_prefix", &prefix, e) < 0 ||
        json_take_u32(m, "max_input_chars_per_word", &s->max_chars, e) < 0)
        return error_prefix(e, "model");
    if (s->max_chars < 1 || s->max_chars > MAX_WORD_CHARS)
        return error_set(e, ERROR_INPUT, "max_input_chars_per_word: 1..%d is expected",
                         MAX_WORD_CHARS);
    if (unknown)
        replace(&s->special[NAME_UNKNOWN].text, unknown);
    if (prefix)
        replace(&s->prefix, prefix);
    return 0;
}

/* One entry of a template: {"SpecialToken": {"id": .., "type_id": ..}} or {"Sequence": ..}. */
static const char *template_id(const json_t *list, size_t k, const char *kind, int64_t type)
{
    const json_t *entry = json_object_get(json_array_get(list, k), kind);
    const json_t *number = json_object_get(entry, "type_id");
    if (!json_is_integer(number) || json_integer_value(number) != type)
        return NULL;
    return json_string_value(json_object_get(entry, "id"));
}

static bool is_id(const char *id, const char *expected)
{
    return id && !strcmp(id, expected);
}

/* Takes the names of [CLS] A [SEP] and [CLS] A [SEP] B [SEP]. False: it is another template. */
static bool take_template(struct tokenizer_settings *s, const json_t *p)
{
    const json_t *one = json_object_get(p, "single"), *two = json_object_get(p, "pair");
    const char *begin = template_id(one, 0, "SpecialToken", 0);
    const char *end = template_id(one, 2, "SpecialToken", 0);
    bool ok = begin && end && json_array_size(one) == 3 && json_array_size(two) == 5 &&
              is_id(template_id(one, 1, "Sequence", 0), "A") &&
              is_id(template_id(two, 0, "SpecialToken", 0), begin) &&
              is_id(template_id(two, 1, "Sequence", 0), "A") &&
              is_id(template_id(two, 2, "SpecialToken", 0), end) &&
              is_id(template_id(two, 3, "Sequence", 1), "B") &&
              is_id(template_id(two, 4, "SpecialToken", 1), end);
    if (!ok)
        return false;
    replace(&s->special[NAME_BEGIN].text, begin);
    replace(&s->special[NAME_END].text, end);
    return true;
}

/* BertProcessing: {"sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}. */
static int take_processing(struct tokenizer_settings *s, const json_t *p, struct error *e)
{
    const char *begin = json_string_value(json_array_get(json_object_get(p, "cls"), 0));
    const char *end = json_string_value(json_array_get(json_object_get(p, "sep"), 0));
    if (!begin || !end)
        return error_set(e, ERROR_INPUT, "post_processor: cls and sep are expected");
    replace(&s->special[NAME_BEGIN].text, begin);
    replace(&s->special[NAME_END].text, end);
    return 0;
}

static int take_post(struct tokenizer_settings *s, const json_t *p, struct error *e)
{
    if (!p || json_is_null(p))
        return 0;
    if (!strcmp(type_of(p), "TemplateProcessing") && take_template(s, p))
        return 0;
    if (!strcmp(type_of(p), "BertProcessing"))
        return take_processing(s, p, e);
    return post_read(&s->post, p, e);
}

int settings_take_json(struct tokenizer_settings *s, const json_t *tokenizer, struct error *e)
{
    const json_t *pre = json_object_get(tokenizer, "pre_tokenizer");
    s->from_json = true;
    if (take_normalizer(s, json_object_get(tokenizer, "normalizer"), e) < 0)
        return -1;
    if (s->class == CLASS_BERT || s->class == CLASS_MPNET)
        reset_normalizer(s);
    if (strcmp(type_of(pre), "BertPreTokenizer"))
        return refuse(e, "pre_tokenizer", pre, "BertPreTokenizer");
    if (take_model(s, json_object_get(tokenizer, "model"), e) < 0)
        return -1;
    return take_post(s, json_object_get(tokenizer, "post_processor"), e);
}

int settings_take_flags(struct added_flags *ret, const json_t *token, struct error *e)
{
    if (json_take_bool(token, "single_word", &ret->single_word, e) < 0 ||
        json_take_bool(token, "lstrip", &ret->eats_left, e) < 0 ||
        json_take_bool(token, "rstrip", &ret->eats_right, e) < 0)
        return -1;
    return json_take_bool(token, "normalized", &ret->normalized, e);
}

/* "[CLS]" or {"content": "[CLS]", ..}; null: nothing. */
static int take_role(struct special_setting *ret, const char *key, const json_t *value,
                     struct error *e)
{
    const json_t *content = json_is_object(value) ? json_object_get(value, "content") : value;
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(content))
        return error_set(e, ERROR_INPUT, "%s: a string is expected", key);
    if (json_is_object(value) && settings_take_flags(&ret->flags, value, e) < 0)
        return error_prefix(e, "%s", key);
    replace(&ret->text, json_string_value(content));
    ret->given = true;
    return 0;
}

static int add_extra(struct tokenizer_settings *s, const char *key, const json_t *value,
                     struct error *e)
{
    struct special_setting *extra = MEMORY_PUSH(s->extra, s->n_extra, s->extra_capacity);
    *extra = (struct special_setting){0};
    return take_role(extra, key, value, e);
}

/* Tokens with any other role: one, a list or an object of them. */
static int take_extra(struct tokenizer_settings *s, const json_t *map, struct error *e)
{
    static const char *const keys[] = {"bos_token", "eos_token", "additional_special_tokens",
                                       "extra_special_tokens"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        json_t *value = json_object_get(map, keys[k]), *one;
        const char *name;
        size_t at;
        bool is_token = json_is_object(value) && json_object_get(value, "content");
        if (!is_token && !json_is_array(value) && !json_is_object(value)) {
            if (add_extra(s, keys[k], value, e) < 0)
                return -1;
            continue;
        }
        if (is_token && add_extra(s, keys[k], value, e) < 0)
            return -1;
        json_array_foreach(value, at, one) if (add_extra(s, keys[k], one, e) < 0) return -1;
        if (!is_token)
            json_object_foreach(value, name,
                                one) if (add_extra(s, keys[k], one, e) < 0) return -1;
    }
    return 0;
}

int settings_take_special(struct tokenizer_settings *s, const json_t *map, struct error *e)
{
    for (int k = 0; k < NAME_COUNT; k++) {
        const char *key = special_names[k].key;
        if (take_role(&s->special[k], key, json_object_get(map, key), e) < 0)
            return -1;
    }
    return take_extra(s, map, e);
}

int settings_take_added(struct tokenizer_settings *s, const json_t *map, struct error *e)
{
    (void)e;
    s->added_map = json_incref((json_t *)(uintptr_t)map);
    return 0;
}

bool settings_have_role(const struct tokenizer_settings *s, const char *text)
{
    for (int k = 0; k < NAME_COUNT; k++)
        if (!strcmp(s->special[k].text, text))
            return true;
    for (uint32_t k = 0; k < s->n_extra; k++)
        if (s->extra[k].text && !strcmp(s->extra[k].text, text))
            return true;
    return false;
}
