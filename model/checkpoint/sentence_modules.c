/* SPDX-License-Identifier: Apache-2.0 */
/* Four modules are supported: the encoder, pooling, a dense layer and normalisation. Each row of the table reads one of
   them. */
#include "model/checkpoint/sentence_modules.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

static const struct {
    const char *name, *old_key; /* in pooling_mode; a flag of its own before version 6 */
    enum pooling pooling;
} modes[] = {
    {"cls", "pooling_mode_cls_token", POOLING_CLS},
    {"max", "pooling_mode_max_tokens", POOLING_MAX},
    {"mean", "pooling_mode_mean_tokens", POOLING_MEAN},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", POOLING_MEAN_SQRT},
    {"weightedmean", "pooling_mode_weightedmean_tokens", POOLING_WEIGHTED_MEAN},
    {"lasttoken", "pooling_mode_lasttoken", POOLING_LAST},
};

static int take_mode(const json_t *mode, struct sentence_settings *s, struct error *e)
{
    if (!json_is_string(mode))
        return error_set(e, ERROR_INPUT, "pooling_mode: a string is expected");
    for (size_t k = 0; k < COUNT(modes); k++)
        if (!strcmp(modes[k].name, json_string_value(mode))) {
            s->pooling[s->poolings++] = modes[k].pooling;
            return 0;
        }
    return error_set(e, ERROR_INPUT,
                     "pooling_mode '%.60s': cls, max, mean, mean_sqrt_len_tokens, weightedmean "
                     "or lasttoken is expected",
                     json_string_value(mode));
}

/* "mean", or a list whose results are concatenated. */
static int take_new_modes(const json_t *mode, struct sentence_settings *s, struct error *e)
{
    size_t count = json_is_array(mode) ? json_array_size(mode) : 1;
    if (!count || count > POOLINGS_MOST)
        return error_set(e, ERROR_INPUT, "pooling_mode: %zu modes, 1 to %d are expected", count,
                         POOLINGS_MOST);
    for (size_t k = 0; k < count; k++)
        if (take_mode(json_is_array(mode) ? json_array_get(mode, k) : mode, s, e) < 0)
            return -1;
    return 0;
}

/* No flag: mean, as in sentence-transformers. */
static int take_old_modes(const json_t *config, struct sentence_settings *s, struct error *e)
{
    for (size_t k = 0; k < COUNT(modes); k++) {
        bool here = false;
        if (json_take_bool(config, modes[k].old_key, &here, e) < 0)
            return -1;
        if (here)
            s->pooling[s->poolings++] = modes[k].pooling;
    }
    if (!s->poolings)
        s->pooling[s->poolings++] = POOLING_MEAN;
    return 0;
}

/* Arguments that change how a model is loaded, but none of its results. */
static bool is_harmless(const json_t *config, const char *key, const json_t *value)
{
    static const char *const keys[] = {
        "_attn_implementation",
        "add_pooling_layer",
        "attn_implementation",
        "cache_dir",
        "clean_up_tokenization_spaces",
        "code_revision",
        "device_map",
        "dtype",
        "force_download",
        "local_files_only",
        "low_cpu_mem_usage",
        "reference_compile",
        "revision",
        "subfolder",
        "token",
        "torch_dtype",
        "trust_remote_code",
        "unpad_inputs",
        "use_auth_token",
        "use_cache",
        "use_fast",
        "use_memory_efficient_attention",
        "use_safetensors",
    };
    for (size_t k = 0; k < COUNT(keys); k++)
        if (!strcmp(keys[k], key))
            return true;
    return !strcmp(key, "model_max_length") &&
           json_equal(value, json_object_get(config, "max_seq_length"));
}

/* Arguments of the encoder's and the tokenizer's constructors, under the names of versions before 6 and since. */
static int check_arguments(const json_t *config, struct error *e)
{
    static const char *const objects[] = {"model_args",       "model_kwargs", "tokenizer_args",
                                          "processor_kwargs", "config_args",  "config_kwargs"};
    for (size_t k = 0; k < COUNT(objects); k++) {
        const char *key;
        json_t *value, *all = json_object_get(config, objects[k]);
        if (all && !json_is_null(all) && !json_is_object(all))
            return error_set(e, ERROR_INPUT, "%s: an object is expected", objects[k]);
        json_object_foreach(all, key, value)
        {
            if (!is_harmless(config, key, value))
                return error_set(e, ERROR_INPUT,
                                 "%s: '%.60s' is not supported, the settings of the files "
                                 "beside it are expected",
                                 objects[k], key);
        }
    }
    return 0;
}

/* Settings that models of single vectors leave out or null. */
static int check_unset(const json_t *config, struct error *e)
{
    static const char *const keys[] = {"tokenizer_name_or_path", "query_length",
                                       "document_length", "query_expansion"};
    for (size_t k = 0; k < COUNT(keys); k++) {
        const json_t *value = json_object_get(config, keys[k]);
        if (value && !json_is_null(value))
            return error_set(e, ERROR_INPUT, "%s is not supported", keys[k]);
    }
    return 0;
}

static int take_transformer(const char *folder, const json_t *config,
                            struct sentence_settings *s, struct error *e)
{
    static const struct {
        const char *object, *key, *only;
    } fixed[] = {
        {NULL, "transformer_task", "feature-extraction"},
        {NULL, "module_output_name", "token_embeddings"},
        {"text", "method", "forward"},
        {"text", "method_output_name", "last_hidden_state"},
    };
    (void)folder;
    const json_t *modalities = json_object_get(config, "modality_config");
    for (size_t k = 0; k < COUNT(fixed); k++) {
        const char *object = fixed[k].object, *text = NULL;
        const json_t *from = object ? json_object_get(modalities, object) : config;
        if (json_take_text(from, fixed[k].key, &text, e) < 0)
            return -1;
        if (text && strcmp(text, fixed[k].only) != 0)
            return error_set(e, ERROR_INPUT, "%s '%.60s' is not supported, %s is expected",
                             fixed[k].key, text, fixed[k].only);
    }
    const char *kind;
    json_t *options, *all = json_object_get(config, "processing_kwargs");
    json_object_foreach(all, kind, options)
    {
        if (json_object_size(options))
            return error_set(e, ERROR_INPUT, "processing_kwargs is not supported");
    }
    if (check_arguments(config, e) < 0 || check_unset(config, e) < 0)
        return -1;
    return json_take_bool(config, "do_lower_case", &s->lowercase, e);
}

static int take_pooling(const char *folder, const json_t *config, struct sentence_settings *s,
                        struct error *e)
{
    const json_t *mode = json_object_get(config, "pooling_mode");
    bool includes = true;
    if (json_take_bool(config, "include_prompt", &includes, e) < 0)
        return -1;
    (void)folder;
    s->excludes_prompt = !includes;
    s->poolings = 0;
    return mode ? take_new_modes(mode, s, e) : take_old_modes(config, s, e);
}

int sentence_names_check(const json_t *config, struct error *e)
{
    static const char *const keys[] = {"module_input_name", "module_output_name"};
    static const char only[] = "sentence_embedding";
    for (size_t k = 0; k < COUNT(keys); k++) {
        const char *name = only;
        if (json_take_text(config, keys[k], &name, e) < 0)
            return -1;
        if (strcmp(name, only) != 0)
            return error_set(e, ERROR_INPUT, "%s '%.60s' is not supported, %s is expected",
                             keys[k], name, only);
    }
    return 0;
}

static int take_normalize(const char *folder, const json_t *config, struct sentence_settings *s,
                          struct error *e)
{
    if (sentence_names_check(config, e) < 0)
        return -1;
    (void)folder;
    s->normalize = true;
    return 0;
}

static int take_dense(const char *folder, const json_t *config, struct sentence_settings *s,
                      struct error *e)
{
    (void)config;
    if (s->normalize)
        *MEMORY_PUSH(s->step, s->steps, s->steps_capacity) = NULL;
    s->normalize = false;
    struct sentence_dense *d = sentence_dense_read(folder, e);
    if (d)
        *MEMORY_PUSH(s->step, s->steps, s->steps_capacity) = d;
    return d ? 0 : -1;
}

enum { BEFORE_ALL, BEFORE_POOLING, BEFORE_END };

static const struct module {
    const char *name, *file; /* null: sentence_encoder_file() */
    int (*take)(const char *folder, const json_t *config, struct sentence_settings *s,
                struct error *e);
    int from, to; /* the place in the order: after `from` comes `to` */
    bool required, in_root;
} kinds[] = {
    {"Transformer", NULL, take_transformer, BEFORE_ALL, BEFORE_POOLING, false, true},
    {"Pooling", "config.json", take_pooling, BEFORE_POOLING, BEFORE_END, true, false},
    {"Dense", "config.json", take_dense, BEFORE_END, BEFORE_END, true, false},
    {"Normalize", "config.json", take_normalize, BEFORE_END, BEFORE_END, false, false},
};

/* The kind that is named at the end of a type such as sentence_transformers.models.Pooling; null: not known. */
static const struct module *find_kind(const char *type)
{
    static const char library[] = "sentence_transformers.";
    const char *last = type ? strrchr(type, '.') : NULL;
    if (!last || strncmp(type, library, sizeof library - 1) != 0)
        return NULL;
    for (size_t k = 0; k < COUNT(kinds); k++)
        if (!strcmp(kinds[k].name, last + 1))
            return &kinds[k];
    return NULL;
}

static int read_file(const struct module *kind, const char *folder, struct sentence_settings *s,
                     struct error *e)
{
    const char *file = kind->file ? kind->file : sentence_encoder_file(folder);
    json_t *config = NULL;
    if (kind->required)
        config = json_read(folder, file, e);
    else if (json_read_optional(folder, file, &config, e) < 0)
        return -1;
    if (kind->required && !config)
        return -1;
    int r = kind->take(folder, config, s, e);
    json_decref(config);
    if (r < 0 && strncmp(e->text, folder, strlen(folder)) != 0)
        error_prefix(e, "%s/%s", folder, file);
    return r;
}

static int take_module(const char *folder, const json_t *module, int *place,
                       struct sentence_settings *s, struct error *e)
{
    const char *type = NULL, *path = "";
    if (json_take_text(module, "type", &type, e) < 0 ||
        json_take_text(module, "path", &path, e) < 0)
        return -1;
    const struct module *kind = find_kind(type);
    if (!kind)
        return error_set(e, ERROR_INPUT,
                         "module '%.90s' is not supported: Transformer, Pooling, Dense and "
                         "Normalize of sentence_transformers are",
                         type ? type : "");
    if (kind->from != *place)
        return error_set(e, ERROR_INPUT,
                         "module '%s' is out of order: Transformer, Pooling and then Dense or "
                         "Normalize are expected",
                         kind->name);
    *place = kind->to;
    bool plain = kind->in_root ? !*path || !strcmp(path, ".")
                               : *path && *path != '.' && !strchr(path, '/');
    if (!plain)
        return error_set(e, ERROR_INPUT, "path '%.60s' of module '%s': %s is expected", path,
                         kind->name, kind->in_root ? "the folder itself" : "a folder in it");
    char *where = path_join(folder, path);
    int r = read_file(kind, kind->in_root ? folder : where, s, e);
    free(where);
    return r;
}

static int take_modules(const char *folder, const json_t *list, struct sentence_settings *s,
                        struct error *e)
{
    int place = BEFORE_ALL;
    for (size_t k = 0; k < json_array_size(list); k++)
        if (take_module(folder, json_array_get(list, k), &place, s, e) < 0)
            return -1;
    return place == BEFORE_END
               ? 0
               : error_set(e, ERROR_INPUT, "no Pooling: it is no model of sentences");
}

int sentence_modules_read(const char *folder, struct sentence_settings *s, struct error *e)
{
    struct file f;
    json_error_t why;
    char *path = path_join(folder, "modules.json");
    int r = file_open(path, &f, e);
    if (r == 0) {
        json_t *list = json_load_bytes((const char *)f.bytes, f.size, JSON_FROM_FILE, &why);
        r = json_is_array(list) ? take_modules(folder, list, s, e)
                                : error_set(e, ERROR_INPUT, "a JSON list is expected");
        if (r < 0 && strncmp(e->text, folder, strlen(folder)) != 0)
            error_prefix(e, "%s", path);
        json_decref(list);
        file_close(&f);
    }
    free(path);
    return r;
}
