/* SPDX-License-Identifier: Apache-2.0 */
#include "model/checkpoint/save.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/safetensors.h"
#include "model/arch/arch.h"
#include "model/checkpoint/json.h"
#include "model/checkpoint/sentence.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The tensor's data in the wanted type. What had to be converted is pushed to *made. */
static const void *in_type(const struct tensor *t, enum element element, void **made)
{
    if (t->element == element)
        return t->data;
    uint64_t count = t->parameter.count;
    float *values = memory_new(count, sizeof *values);
    *made = memory_new(count, element_bytes(element));
    tensor_to_f32(t, 0, count, values);
    elements_from_f32(element, values, count, *made);
    free(values);
    return *made;
}

static int64_t find(const struct weights *w, enum parameter_id id)
{
    for (uint32_t k = 0; k < w->n_tensors; k++)
        if (w->tensor[k].parameter.id == id)
            return k;
    return -1;
}

/* A decoder that is not tied adds a bias of its own, which is the head's. */
static int save_weights(const char *folder, const struct model_config *c,
                        const struct weights *w, enum element element, struct error *e)
{
    struct safetensors out = {0};
    uint64_t size;
    int64_t bias;
    void **made = memory_new(w->n_tensors, sizeof *made);
    safetensors_add_metadata(&out, "format", "pt"); /* transformers asks for it */
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct parameter *p = &w->tensor[k].parameter;
        char name[PARAMETER_NAME_BYTES];
        parameter_file_name(p, c, name);
        safetensors_add(&out, name, element_name(element), p->rank, p->shape,
                        in_type(&w->tensor[k], element, &made[k]));
    }
    if (!c->tied && c->arch->decoder_bias && (bias = find(w, PARAMETER_MLM_BIAS)) >= 0)
        safetensors_add(&out, c->arch->decoder_bias, element_name(element), 1,
                        w->tensor[bias].parameter.shape,
                        made[bias] ? made[bias] : w->tensor[bias].data);
    uint8_t *bytes = safetensors_write(&out, &size);
    char *path = path_join(folder, "model.safetensors");
    int r = file_write(path, bytes, size, e);
    free(path);
    free(bytes);
    for (uint32_t k = 0; k < w->n_tensors; k++)
        free(made[k]);
    free(made);
    safetensors_finish(&out);
    return r;
}

static int write_text(const char *folder, const char *name, const char *text, struct error *e)
{
    char *path = path_join(folder, name);
    int r = file_write(path, text, strlen(text), e);
    free(path);
    return r;
}

int model_save(const char *folder, const struct model_config *c, const struct weights *w,
               enum element element, struct error *e)
{
    if (save_weights(folder, c, w, element, e) < 0)
        return -1;
    char *text = config_write(c, element_torch(element));
    struct text lines = {0};
    text_add(&lines, "%s\n", text);
    int r = write_text(folder, "config.json", text_get(&lines), e);
    text_finish(&lines);
    free(text);
    return r;
}

void model_resize_positions(struct model_config *c, struct weights *w, uint32_t positions)
{
    struct tensor *t = weights_get(w, PARAMETER_POSITIONS, 0);
    if (!t) { /* rotations need no table */
        c->positions = positions;
        return;
    }
    const uint64_t row = t->parameter.shape[1] * element_bytes(t->element),
                   first = c->first_position * row, size = positions * row,
                   have = c->positions * row;
    const uint8_t *old = t->data;
    uint8_t *table = memory_new(first + size, 1);
    memcpy(table, old, first);
    for (uint64_t at = 0; at < size; at += have)
        memcpy(table + first + at, old + first, size - at < have ? size - at : have);
    free(t->own);
    t->data = t->own = table;
    t->parameter.shape[0] = c->first_position + positions;
    t->parameter.count = t->parameter.shape[0] * t->parameter.shape[1];
    c->positions = positions;
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), s = strlen(suffix);
    return n >= s && !strcmp(name + n - s, suffix);
}

int model_copy_file(const char *from, const char *to, const char *name, struct error *e)
{
    struct file f;
    char *source = path_join(from, name), *target = path_join(to, name);
    int r = file_open(source, &f, e);
    if (r == 0) {
        r = file_write(target, f.bytes, f.size, e);
        file_close(&f);
    }
    free(source);
    free(target);
    return r;
}

static bool is_plain_file(const char *folder, const char *name)
{
    struct stat s;
    char *path = path_join(folder, name);
    bool plain = stat(path, &s) == 0 && S_ISREG(s.st_mode);
    free(path);
    return plain;
}

static bool is_wanted(const char *name)
{
    return (has_suffix(name, ".json") || has_suffix(name, ".txt") ||
            has_suffix(name, ".bpe.model") || has_suffix(name, ".md")) &&
           strcmp(name, "config.json") && !has_suffix(name, ".index.json");
}

static bool is_listed(const char *name, const char *const *list)
{
    while (*list && strcmp(*list, name))
        list++;
    return *list;
}

int model_check_target(const char *folder, const char *from, const char *const *replaced,
                       struct error *e)
{
    static const char *const read[] = {"tokenizer.json",
                                       "vocab.txt",
                                       "vocab.json",
                                       "merges.txt",
                                       "sentencepiece.bpe.model",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "modules.json",
                                       "sentence_bert_config.json",
                                       "model.safetensors.index.json"};
    for (size_t k = 0; k < sizeof read / sizeof *read; k++) {
        bool copied = from && is_wanted(read[k]) && is_plain_file(from, read[k]);
        if (path_exists(folder, read[k]) && !copied && !is_listed(read[k], replaced))
            return error_set(
                e, ERROR_INPUT,
                "%s: %s of another model is there and would stay; a folder without it "
                "is expected",
                folder, read[k]);
    }
    return 0;
}

static int copy_top(const char *from, const char *to, struct error *e)
{
    struct dirent **entry;
    int n = scandir(from, &entry, NULL, alphasort), r = 0;
    for (int k = 0; k < n; k++) {
        if (r == 0 && is_wanted(entry[k]->d_name) && is_plain_file(from, entry[k]->d_name))
            r = model_copy_file(from, to, entry[k]->d_name, e);
        free(entry[k]);
    }
    if (n >= 0)
        free(entry);
    return r;
}

/* The folders that modules.json names: pooling, normalisation, a dense layer. */
static int copy_module(const char *from, const char *to, const char *name, struct error *e)
{
    static const char *const files[] = {"config.json", "model.safetensors"};
    char *source = path_join(from, name), *target = path_join(to, name);
    int r = file_make_directory(target, e);
    for (size_t k = 0; k < sizeof files / sizeof *files && r == 0; k++)
        if (is_plain_file(source, files[k]))
            r = model_copy_file(source, target, files[k], e);
    free(source);
    free(target);
    return r;
}

static int copy_modules(const char *from, const char *to, struct error *e)
{
    if (!path_exists(from, "modules.json"))
        return 0;
    struct file f;
    char *path = path_join(from, "modules.json");
    int r = file_open(path, &f, e);
    free(path);
    if (r < 0)
        return -1;
    json_error_t why;
    json_t *list = json_load_bytes((const char *)f.bytes, f.size, JSON_FROM_FILE, &why),
           *module;
    size_t k;
    file_close(&f);
    json_array_foreach(list, k, module)
    {
        const char *name = json_string_value(json_object_get(module, "path"));
        if (r == 0 && name && *name && *name != '.' && !strchr(name, '/'))
            r = copy_module(from, to, name, e);
    }
    json_decref(list);
    return r;
}

/* ---- the greatest length ---- */

static int write_object(const char *folder, const char *name, const json_t *object,
                        struct error *e)
{
    char *text = json_dumps(object, JSON_INDENT(2));
    int r = write_text(folder, name, text, e);
    free(text);
    return r;
}

/* Folders with nothing but a vocabulary get the file. */
static int limit_tokenizer(const char *folder, uint32_t max_length, struct error *e)
{
    static const char file[] = "tokenizer_config.json";
    json_t *config;
    if (json_read_optional(folder, file, &config, e) < 0)
        return -1;
    if (!config)
        config = json_object();
    json_object_set_new(config, "model_max_length", json_integer(max_length));
    int r = write_object(folder, file, config, e);
    json_decref(config);
    return r;
}

/* Sets a limit that the object has. */
static void replace_limit(json_t *object, const char *key, uint32_t max_length)
{
    if (json_is_number(json_object_get(object, key)))
        json_object_set_new(object, key, json_integer(max_length));
}

/* max_seq_length, and the same number among the arguments of the tokenizer. */
static int limit_sentences(const char *folder, uint32_t max_length, struct error *e)
{
    static const char *const arguments[] = {"tokenizer_args", "processor_kwargs"};
    const char *file = sentence_encoder_file(folder);
    json_t *config;
    if (json_read_optional(folder, file, &config, e) < 0)
        return -1;
    if (!config)
        return 0;
    replace_limit(config, "max_seq_length", max_length);
    for (size_t k = 0; k < sizeof arguments / sizeof *arguments; k++)
        replace_limit(json_object_get(config, arguments[k]), "model_max_length", max_length);
    int r = write_object(folder, file, config, e);
    json_decref(config);
    return r;
}

int model_copy_rest(const char *from, const char *to, uint32_t max_length, struct error *e)
{
    if (copy_top(from, to, e) < 0 || copy_modules(from, to, e) < 0)
        return -1;
    if (!max_length)
        return 0;
    return limit_tokenizer(to, max_length, e) < 0 ? -1 : limit_sentences(to, max_length, e);
}
