/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers of sentencepiece_model.proto. Other fields are skipped. */
#include "model/tokenizer/sentencepiece.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- protocol buffers ---- */

struct cursor {
    const uint8_t *at, *end;
};

struct field {
    uint32_t number;
    uint64_t whole;      /* of wire types 0, 1 and 5 */
    struct cursor bytes; /* of wire type 2, else null */
};

enum wire { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

static bool take_varint(struct cursor *c, uint64_t *ret)
{
    *ret = 0;
    for (uint32_t shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        const uint8_t byte = *c->at++;
        *ret |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool take_fixed(struct cursor *c, uint32_t size, uint64_t *ret)
{
    *ret = 0;
    if ((size_t)(c->end - c->at) < size)
        return false;
    memcpy(ret, c->at, size); /* the machine is little-endian */
    c->at += size;
    return true;
}

static bool take_bytes(struct cursor *c, struct cursor *ret)
{
    uint64_t size;
    if (!take_varint(c, &size) || size > (size_t)(c->end - c->at))
        return false;
    *ret = (struct cursor){c->at, c->at + size};
    c->at += size;
    return true;
}

/* The next field; 0 at the end, -1 where the bytes are no message. */
static int next_field(struct cursor *c, struct field *ret)
{
    uint64_t tag;
    if (c->at == c->end)
        return 0;
    if (!take_varint(c, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
        return -1;
    *ret = (struct field){.number = (uint32_t)(tag >> 3)};
    switch (tag & 7) {
    case WIRE_VARINT:
        return take_varint(c, &ret->whole) ? 1 : -1;
    case WIRE_64:
        return take_fixed(c, 8, &ret->whole) ? 1 : -1;
    case WIRE_BYTES:
        return take_bytes(c, &ret->bytes) ? 1 : -1;
    case WIRE_32:
        return take_fixed(c, 4, &ret->whole) ? 1 : -1;
    default:
        return -1;
    }
}

/* ---- the model ---- */

static int damaged(struct error *e)
{
    return error_set(e, ERROR_INPUT, "damaged: no model of sentencepiece");
}

enum piece_type { PIECE_NORMAL = 1, PIECE_UNKNOWN, PIECE_CONTROL, PIECE_UNUSED = 5 };
enum { MODEL_PIECES = 1, MODEL_TRAINER, MODEL_NORMALIZER };
enum { PIECE_TEXT = 1, PIECE_SCORE, PIECE_TYPE };
enum { TRAINER_KIND = 3, KIND_UNIGRAM = 1, NORMALIZER_CHARSMAP = 2, FIRST_PIECES = 3 };

struct model {
    json_t *list; /* [TOKEN, SCORE] */
    uint32_t pieces;
    uint64_t kind; /* of the trainer */
    struct cursor charsmap;
};

struct piece {
    struct cursor text;
    float score;
    uint64_t type;
};

static int read_piece(struct cursor from, struct piece *ret)
{
    struct field f;
    int r;
    *ret = (struct piece){.type = PIECE_NORMAL};
    while ((r = next_field(&from, &f)) > 0) {
        const uint32_t bits = (uint32_t)f.whole;
        if (f.number == PIECE_TEXT)
            ret->text = f.bytes;
        else if (f.number == PIECE_SCORE)
            memcpy(&ret->score, &bits, sizeof bits);
        else if (f.number == PIECE_TYPE)
            ret->type = f.whole;
    }
    return r;
}

static bool is_text(struct cursor c, const char *text)
{
    const size_t size = (size_t)(c.end - c.at);
    return size == strlen(text) && !memcmp(c.at, text, size);
}

static json_t *entry(const char *text, size_t size, double score)
{
    json_t *token = json_stringn(text, size); /* null: not UTF-8 */
    json_t *number = token ? json_real(score) : NULL;
    if (!token || !number) {
        json_decref(token);
        return NULL;
    }
    return json_pack("[o, o]", token, number);
}

/* Piece k: the first three are fairseq's own, the others follow in their order. */
static int add_piece(struct model *m, struct cursor from, struct error *e)
{
    static const char *const first[FIRST_PIECES] = {"<unk>", "<s>", "</s>"};
    const uint32_t k = m->pieces++;
    struct piece p;
    if (read_piece(from, &p) < 0 || !p.text.at)
        return damaged(e);
    const size_t size = (size_t)(p.text.end - p.text.at);
    if (k < FIRST_PIECES) {
        if (!is_text(p.text, first[k]) || p.type != (k ? PIECE_CONTROL : PIECE_UNKNOWN))
            return error_set(e, ERROR_INPUT, "piece %u: %s is expected, as in XLM-R's models",
                             k, first[k]);
        return 0;
    }
    if (p.type != PIECE_NORMAL && p.type != PIECE_UNUSED)
        return error_set(
            e, ERROR_INPUT,
            "piece %u has type %llu: control, user-defined and byte pieces are not "
            "supported",
            k, (unsigned long long)p.type);
    json_t *new = size && !memchr(p.text.at, 0, size)
                      ? entry((const char *)p.text.at, size, (double)p.score)
                      : NULL;
    if (!new)
        return error_set(e, ERROR_INPUT, "piece %u: UTF-8 and a finite score are expected", k);
    json_array_append_new(m->list, new);
    return 0;
}

static int read_spec(struct model *m, const struct field *spec)
{
    struct cursor c = spec->bytes;
    struct field f;
    int r;
    while ((r = next_field(&c, &f)) > 0) {
        if (spec->number == MODEL_TRAINER && f.number == TRAINER_KIND)
            m->kind = f.whole;
        if (spec->number == MODEL_NORMALIZER && f.number == NORMALIZER_CHARSMAP)
            m->charsmap = f.bytes;
    }
    return r;
}

static int read_model(struct model *m, struct cursor c, struct error *e)
{
    static const char *const begin[] = {"<s>", "<pad>", "</s>", "<unk>"};
    struct field f;
    int r;
    for (size_t k = 0; k < sizeof begin / sizeof *begin; k++)
        json_array_append_new(m->list, entry(begin[k], strlen(begin[k]), 0));
    while ((r = next_field(&c, &f)) > 0) {
        if (f.number == MODEL_PIECES && add_piece(m, f.bytes, e) < 0)
            return -1;
        if ((f.number == MODEL_TRAINER || f.number == MODEL_NORMALIZER) && read_spec(m, &f) < 0)
            return damaged(e);
    }
    json_array_append_new(m->list, entry("<mask>", 6, 0));
    if (r < 0 || m->pieces <= FIRST_PIECES)
        return damaged(e);
    if (m->kind != KIND_UNIGRAM)
        return error_set(e, ERROR_INPUT,
                         "model_type %llu is not supported, unigram is expected",
                         (unsigned long long)m->kind);
    return 0;
}

/* ---- tokenizer.json ---- */

/* Base64; the caller frees. */
static char *encode(struct cursor c)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t size = (size_t)(c.end - c.at);
    char *ret = memory_new(size / 3 * 4 + 5, 1), *to = ret;
    for (size_t k = 0; k < size; k += 3) {
        uint32_t bits = 0;
        for (size_t i = k; i < k + 3; i++)
            bits = bits << 8 | (i < size ? c.at[i] : 0);
        for (int i = 3; i >= 0; i--)
            *to++ = k + 3 - (size_t)i <= size ? digits[bits >> 6 * i & 63] : '=';
    }
    return ret;
}

static json_t *normalizer(struct cursor charsmap)
{
    if (charsmap.at == charsmap.end)
        return json_null();
    char *text = encode(charsmap);
    json_t *ret = json_pack("{s:s, s:s}", "type", "Precompiled", "precompiled_charsmap", text);
    free(text);
    return ret;
}

static json_t *part(const char *kind, const char *name)
{
    return json_pack("{s:{s:s, s:i}}", kind, "id", name, "type_id", 0);
}

static json_t *post_processor(void)
{
    static const char token[] = "SpecialToken", text[] = "Sequence";
    json_t *one =
        json_pack("[o,o,o]", part(token, "<s>"), part(text, "A"), part(token, "</s>"));
    json_t *two =
        json_pack("[o,o,o,o,o,o]", part(token, "<s>"), part(text, "A"), part(token, "</s>"),
                  part(token, "</s>"), part(text, "B"), part(token, "</s>"));
    return json_pack("{s:s, s:o, s:o, s:{s:{s:s, s:[i], s:[s]}, s:{s:s, s:[i], s:[s]}}}",
                     "type", "TemplateProcessing", "single", one, "pair", two, "special_tokens",
                     "<s>", "id", "<s>", "ids", 0, "tokens", "<s>", "</s>", "id", "</s>", "ids",
                     2, "tokens", "</s>");
}

static json_t *build(const struct model *m, bool prefix)
{
    return json_pack(
        "{s:o, s:{s:s, s:[{s:s}, {s:s, s:s, s:s, s:b}]}, s:o, s:{s:s, s:i, s:O, s:b}}",
        "normalizer", normalizer(m->charsmap), "pre_tokenizer", "type", "Sequence",
        "pretokenizers", "type", "WhitespaceSplit", "type", "Metaspace", "replacement",
        "\xe2\x96\x81", "prepend_scheme", prefix ? "always" : "never", "split", 1,
        "post_processor", post_processor(), "model", "type", "Unigram", "unk_id", 3, "vocab",
        m->list, "byte_fallback", 0);
}

json_t *sentencepiece_parse(const uint8_t *bytes, size_t size, bool prefix, struct error *e)
{
    struct model m = {.list = json_array(), .kind = KIND_UNIGRAM};
    json_t *ret =
        read_model(&m, (struct cursor){bytes, bytes + size}, e) < 0 ? NULL : build(&m, prefix);
    json_decref(m.list);
    return ret;
}

/* ---- a folder ---- */

/* Other names would be other tokens of the vocabulary. */
static int check_names(const json_t *config, struct error *e)
{
    static const char *const names[][2] = {{"bos_token", "<s>"},    {"cls_token", "<s>"},
                                           {"eos_token", "</s>"},   {"sep_token", "</s>"},
                                           {"unk_token", "<unk>"},  {"pad_token", "<pad>"},
                                           {"mask_token", "<mask>"}};
    char shown[JSON_SHOWN_BYTES];
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const json_t *value = json_object_get(config, names[k][0]);
        const json_t *text = json_is_object(value) ? json_object_get(value, "content") : value;
        if (json_is_string(text) && strcmp(json_string_value(text), names[k][1]) != 0)
            return error_set(e, ERROR_INPUT, "%s '%s' is not supported with %s, %s is expected",
                             names[k][0], json_shown(json_string_value(text), shown),
                             SENTENCEPIECE_FILE, names[k][1]);
    }
    return 0;
}

/* tokenizer_class decides, else model_type, as in transformers. */
static int check_class(const json_t *tokenizer, const json_t *model, struct error *e)
{
    static const char expected[] = "XLMRobertaTokenizer";
    const char *name = NULL, *type = NULL;
    char shown[JSON_SHOWN_BYTES];
    if (json_take_text(tokenizer, "tokenizer_class", &name, e) < 0 ||
        json_take_text(model, "model_type", &type, e) < 0)
        return -1;
    if (name ? !strncmp(name, expected, sizeof expected - 1)
             : type && !strcmp(type, "xlm-roberta"))
        return 0;
    name = name ? name : type ? type : "an unnamed class";
    return error_set(e, ERROR_INPUT,
                     "%s of %s is not supported: tokenizer.json, or tokenizer_class %s, is "
                     "expected",
                     SENTENCEPIECE_FILE, json_shown(name, shown), expected);
}

/* add_prefix_space in *ret. */
static int read_settings(const char *folder, bool *ret, struct error *e)
{
    static const char *const files[] = {"tokenizer_config.json", "special_tokens_map.json",
                                        "config.json"};
    json_t *json[3] = {NULL};
    int r = 0;
    *ret = true;
    for (int k = 0; k < 3 && r == 0; k++)
        r = json_read_optional(folder, files[k], &json[k], e);
    if (r == 0 && (check_class(json[0], json[2], e) < 0 || check_names(json[0], e) < 0 ||
                   check_names(json[1], e) < 0 ||
                   json_take_bool(json[0], "add_prefix_space", ret, e) < 0))
        r = error_prefix(e, "%s", folder);
    for (int k = 0; k < 3; k++)
        json_decref(json[k]);
    return r;
}

json_t *sentencepiece_load(const char *folder, struct error *e)
{
    bool prefix;
    struct file f;
    json_t *ret = NULL;
    if (read_settings(folder, &prefix, e) < 0)
        return NULL;
    char *path = path_join(folder, SENTENCEPIECE_FILE);
    if (file_open(path, &f, e) == 0) {
        ret = sentencepiece_parse(f.bytes, f.size, prefix, e);
        if (!ret)
            error_prefix(e, "%s", path);
        file_close(&f);
    }
    free(path);
    return ret;
}
