/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/serve/body.h"
#include "masks/base/memory.h"
#include "tools/maskbert/input.h"
#include <stddef.h>
#include <string.h>

/* ---- texts ---- */

static struct text_part part_of(const json_t *value)
{
    return (struct text_part){json_string_value(value), (uint32_t)json_string_length(value)};
}

/* Memory for the texts of a key; false if there are too many, or some already. */
static bool begin_texts(struct request *r, const struct body_key *key, size_t count)
{
    if (count > r->route->most_texts)
        request_refuse(r, 413, "%s: %zu texts, at most %u are expected", key->name, count,
                       r->route->most_texts);
    else if (r->text)
        request_refuse(r, 400, "texts, documents: one of them is expected");
    else
        r->text = memory_new(count, sizeof *r->text);
    return !r->status;
}

/* A text or a list of texts. */
static bool read_texts(const struct serving *s, struct request *r, const struct body_key *key,
                       json_t *value)
{
    size_t count = json_is_array(value) ? json_array_size(value) : 1;
    (void)s;
    if (!begin_texts(r, key, count))
        return false;
    for (size_t k = 0; k < count; k++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, k) : value;
        if (!json_is_string(one)) {
            request_refuse(r, 400, "%s: a text or a list of texts is expected", key->name);
            return false;
        }
        r->text[r->texts++].a = part_of(one);
    }
    return true;
}

/* The same, where a tab makes a text a pair, as in the lines of the commands. */
static bool read_lines(const struct serving *s, struct request *r, const struct body_key *key,
                       json_t *value)
{
    if (!read_texts(s, r, key, value))
        return false;
    for (uint32_t k = 0; k < r->texts; k++)
        input_parts(r->text[k].a, &r->text[k].a, &r->text[k].b);
    return true;
}

/* ---- texts of a ranking ---- */

/* A list of texts, or of {"text": TEXT}. Each is the second part of a pair, behind the query. */
static bool read_documents(const struct serving *s, struct request *r,
                           const struct body_key *key, json_t *value)
{
    size_t count = json_array_size(value);
    (void)s;
    if (!begin_texts(r, key, count))
        return false;
    for (size_t k = 0; k < count; k++) {
        const json_t *one = json_array_get(value, k);
        if (json_is_object(one) && json_object_size(one) == 1)
            one = json_object_get(one, "text");
        if (!json_is_string(one))
            break;
        r->text[r->texts++].b = part_of(one);
    }
    if (!json_is_array(value) || r->texts < count)
        request_refuse(r, 400, "%s: a list of texts is expected", key->name);
    r->options.documents = !strcmp(key->name, "documents");
    return !r->status;
}

static bool read_query(const struct serving *s, struct request *r, const struct body_key *key,
                       json_t *value)
{
    (void)s;
    if (!json_is_string(value))
        request_refuse(r, 400, "%s: a text is expected", key->name);
    r->options.query = value;
    return !r->status;
}

/* ---- texts as ids ---- */

static bool read_id(const struct serving *s, struct request *r, const struct body_key *key,
                    const json_t *value, uint32_t *ret)
{
    json_int_t id = json_integer_value(value);
    if (!json_is_integer(value))
        request_refuse(r, 400, "%s: texts or ids of tokens, and not both, are expected",
                       key->name);
    else if (id < 0 || id >= (json_int_t)s->engine->config.vocabulary)
        request_refuse(r, 400, "%s: id %" JSON_INTEGER_FORMAT ", 0 to %u is expected",
                       key->name, id, s->engine->config.vocabulary - 1);
    *ret = (uint32_t)id;
    return !r->status;
}

/* One sequence, to *next, which moves behind it. */
static bool read_sequence(const struct serving *s, struct request *r,
                          const struct body_key *key, const json_t *value, uint32_t **next)
{
    size_t count = json_array_size(value);
    uint32_t longest = task_longest(s->engine, s->task.max_length);
    if (!count)
        request_refuse(r, 400, "%s: texts or ids of tokens, at least one, are expected",
                       key->name);
    else if (count > longest)
        request_refuse(r, 413,
                       "%s: text %u has %zu ids, at most %u are expected; only texts are cut",
                       key->name, r->texts, count, longest);
    for (size_t k = 0; k < count && !r->status; k++)
        read_id(s, r, key, json_array_get(value, k), *next + k);
    r->text[r->texts++] = (struct task_text){.token_ids = *next, .count = (uint32_t)count};
    *next += count;
    return !r->status;
}

/* [id, ..]: one text; [[id, ..], ..]: several. */
static bool read_ids(const struct serving *s, struct request *r, const struct body_key *key,
                     json_t *value)
{
    const bool one = json_is_integer(json_array_get(value, 0));
    size_t count = one ? 1 : json_array_size(value), ids = one ? json_array_size(value) : 0;
    for (size_t k = 0; k < count; k++)
        ids += one ? 0 : json_array_size(json_array_get(value, k));
    if (!begin_texts(r, key, count))
        return false;
    uint32_t *next = r->token_ids = memory_new(ids, sizeof *r->token_ids);
    for (size_t k = 0; k < count; k++)
        if (!read_sequence(s, r, key, one ? value : json_array_get(value, k), &next))
            return false;
    return true;
}

static bool read_input(const struct serving *s, struct request *r, const struct body_key *key,
                       json_t *value)
{
    const json_t *first = json_array_get(value, 0);
    if (json_is_integer(first) || json_is_array(first))
        return read_ids(s, r, key, value);
    if (json_is_array(value) && !first) {
        request_refuse(r, 400, "%s: at least one text is expected", key->name);
        return false;
    }
    return read_texts(s, r, key, value);
}

/* ---- options ---- */

static void *option_at(struct request *r, const struct body_key *key)
{
    return (char *)&r->options + key->at;
}

static bool read_flag(const struct serving *s, struct request *r, const struct body_key *key,
                      json_t *value)
{
    (void)s;
    if (!json_is_boolean(value))
        request_refuse(r, 400, "%s: true or false is expected", key->name);
    *(bool *)option_at(r, key) = json_is_true(value);
    return !r->status;
}

static bool read_normalize(const struct serving *s, struct request *r,
                           const struct body_key *key, json_t *value)
{
    r->options.normalize_given = true;
    return read_flag(s, r, key, value);
}

static bool read_count(const struct serving *s, struct request *r, const struct body_key *key,
                       json_t *value)
{
    json_int_t count = json_integer_value(value);
    (void)s;
    if (!json_is_integer(value) || count < 1)
        request_refuse(r, 400, "%s: a whole number of at least 1 is expected", key->name);
    *(uint32_t *)option_at(r, key) = count < INT32_MAX ? (uint32_t)count : INT32_MAX;
    return !r->status;
}

static bool read_dimensions(const struct serving *s, struct request *r,
                            const struct body_key *key, json_t *value)
{
    uint32_t most = embedding_size(s->engine, &s->embedding.how);
    if (read_count(s, r, key, value) && r->options.dimensions > most)
        request_refuse(r, 400, "%s: %u, but vectors have %u", key->name, r->options.dimensions,
                       most);
    return !r->status;
}

static bool read_encoding(const struct serving *s, struct request *r,
                          const struct body_key *key, json_t *value)
{
    const char *name = json_is_string(value) ? json_string_value(value) : "";
    (void)s;
    r->options.base64 = !strcmp(name, "base64");
    if (!r->options.base64 && strcmp(name, "float") != 0)
        request_refuse(r, 400, "%s: float or base64 is expected", key->name);
    return !r->status;
}

static bool read_model(const struct serving *s, struct request *r, const struct body_key *key,
                       json_t *value)
{
    (void)s;
    if (!json_is_string(value))
        request_refuse(r, 400, "%s: a text is expected", key->name);
    r->options.model = value;
    return !r->status;
}

/* OpenAI's clients may name their user. */
static bool skip_text(const struct serving *s, struct request *r, const struct body_key *key,
                      json_t *value)
{
    (void)s;
    if (!json_is_string(value))
        request_refuse(r, 400, "%s: a text is expected", key->name);
    return !r->status;
}

/* ---- the tables ---- */

#define OPTION(name) offsetof(struct request_options, name)

/* clang-format off */
const struct body_key body_of_texts[] = {
    {"inputs",   read_lines, 0,                true},
    {"truncate", read_flag,  OPTION(truncate), false},
    {0},
};
const struct body_key body_of_vectors[] = {
    {"inputs",    read_texts,     0,                 true},
    {"truncate",  read_flag,      OPTION(truncate),  false},
    {"normalize", read_normalize, OPTION(normalize), false},
    {0},
};
const struct body_key body_of_openai[] = {
    {"input",           read_input,      0,                  true},
    {"model",           read_model,      0,                  false},
    {"dimensions",      read_dimensions, OPTION(dimensions), false},
    {"encoding_format", read_encoding,   0,                  false},
    {"user",            skip_text,       0,                  false},
    {"truncate",        read_flag,       OPTION(truncate),   false},
    {"normalize",       read_normalize,  OPTION(normalize),  false},
    {0},
};
const struct body_key body_of_ranking[] = {
    {"query",            read_query,     0,                    true},
    {"texts",            read_documents, 0,                    false},
    {"documents",        read_documents, 0,                    false},
    {"model",            read_model,     0,                    false},
    {"top_n",            read_count,     OPTION(top),          false},
    {"return_text",      read_flag,      OPTION(return_texts), false},
    {"return_documents", read_flag,      OPTION(return_texts), false},
    {"raw_scores",       read_flag,      OPTION(raw_scores),   false},
    {"truncate",         read_flag,      OPTION(truncate),     false},
    {0},
};
/* clang-format on */

static const struct body_key *find_key(const struct body_key *key, const char *name)
{
    while (key->name && strcmp(key->name, name) != 0)
        key++;
    return key->name ? key : NULL;
}

static void refuse_key(struct request *r, const char *name)
{
    struct text list = {0};
    r->parameter = name;
    for (const struct body_key *key = r->route->body; key->name; key++)
        text_add(&list, "%s%s",
                 key == r->route->body ? ""
                 : key[1].name         ? ", "
                                       : " and ",
                 key->name);
    request_refuse(r, 400, "'%.*s': only %s are expected", request_quoted(name), name,
                   text_get(&list));
    text_finish(&list);
}

static bool read_keys(const struct serving *s, struct request *r)
{
    const char *name;
    json_t *value;
    json_object_foreach(r->json, name, value)
    {
        const struct body_key *key = find_key(r->route->body, name);
        if (!key && !json_is_null(value)) { /* null: a client's option that is not set */
            refuse_key(r, name);
            return false;
        }
        r->parameter = name;
        if (!json_is_null(value) && !key->read(s, r, key, value))
            return false;
    }
    r->parameter = NULL;
    return true;
}

static bool check_required(struct request *r)
{
    for (const struct body_key *key = r->route->body; key->name; key++) {
        const json_t *value = json_object_get(r->json, key->name);
        if (key->required && (!value || json_is_null(value))) {
            r->parameter = key->name;
            request_refuse(r, 400, "'%s' is expected", key->name);
            return false;
        }
    }
    if (!r->text)
        request_refuse(r, 400, "'texts' or 'documents' is expected");
    for (uint32_t k = 0; k < r->texts && r->options.query; k++)
        r->text[k].a = part_of(r->options.query);
    return !r->status;
}

bool body_read(const struct serving *s, struct request *r)
{
    json_error_t e;
    r->json = json_loadb(text_get(&r->body), r->body.length,
                         JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
    if (!r->json)
        request_refuse(r, 400, "line %d, column %d: %s", e.line, e.column, e.text);
    else if (!json_is_object(r->json))
        request_refuse(r, 400, "a JSON object is expected");
    return !r->status && read_keys(s, r) && check_required(r);
}
