/* SPDX-License-Identifier: Apache-2.0 */
/* Three modules are known: the encoder, the pooling, the normalisation. See sentence.h. */
#include "model/checkpoint/sentence.h"
#include "masks/base/file.h"
#include "model/checkpoint/json.h"
#include <stdlib.h>
#include <string.h>

static const char *const names[POOLING_COUNT] = {"mean", "cls", "pooler", "none"};

const char *pooling_name(enum pooling p)
{
    return names[p];
}

int pooling_parse(const char *name, enum pooling *ret, struct error *e)
{
    for (int k = 0; k < POOLING_COUNT; k++)
        if (!strcmp(names[k], name)) {
            *ret = (enum pooling)k;
            return 0;
        }
    return error_set(e, ERROR_INPUT, "pooling '%.60s': mean, cls, pooler or none is expected",
                     name);
}

static const struct {
    const char *key;
    int pooling; /* -1: not supported */
} modes[] = {
    {"pooling_mode_mean_tokens", POOLING_MEAN},
    {"pooling_mode_cls_token", POOLING_CLS},
    {"pooling_mode_max_tokens", -1},
    {"pooling_mode_mean_sqrt_len_tokens", -1},
    {"pooling_mode_weightedmean_tokens", -1},
    {"pooling_mode_lasttoken", -1},
};

/* Exactly one mode must be on, and known. */
static int take_pooling(const json_t *config, struct sentence_settings *s, struct error *e)
{
    int on = 0;
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
        bool here = false;
        if (json_take_bool(config, modes[k].key, &here, e) < 0)
            return -1;
        if (here && modes[k].pooling < 0)
            return error_set(e, ERROR_INPUT, "%s is not supported", modes[k].key);
        if (here)
            s->pooling = (enum pooling)modes[k].pooling;
        on += here;
    }
    if (on != 1)
        return error_set(e, ERROR_INPUT, "one way of pooling is expected, %d are on", on);
    return 0;
}

static int read_pooling(const char *folder, const char *module, struct sentence_settings *s,
                        struct error *e)
{
    char *path = path_join(folder, module);
    json_t *config = json_read(path, "config.json", e);
    int r = config ? take_pooling(config, s, e) : -1;
    if (config && r < 0)
        error_prefix(e, "%s/config.json", path);
    json_decref(config);
    free(path);
    return r;
}

static int take_module(const char *folder, const json_t *module, struct sentence_settings *s,
                       struct error *e)
{
    const char *type = NULL, *path = NULL;
    if (json_take_text(module, "type", &type, e) < 0 ||
        json_take_text(module, "path", &path, e) < 0)
        return -1;
    const char *last = type ? strrchr(type, '.') : NULL;
    type = last ? last + 1 : type;
    if (type && !strcmp(type, "Transformer"))
        return 0;
    if (type && !strcmp(type, "Normalize")) {
        s->normalize = true;
        return 0;
    }
    if (!type || strcmp(type, "Pooling") || !path || *path == '.' || strchr(path, '/'))
        return error_set(
            e, ERROR_INPUT,
            "%s/modules.json: module '%.60s' is not supported: Transformer, Pooling "
            "and Normalize are",
            folder, type ? type : "");
    return read_pooling(folder, path, s, e);
}

static int read_modules(const char *folder, struct sentence_settings *s, struct error *e)
{
    struct file f;
    char *path = path_join(folder, "modules.json");
    int r = file_open(path, &f, e);
    if (r == 0) {
        json_t *list = json_loadb((const char *)f.bytes, f.size, 0, NULL);
        if (!json_is_array(list))
            r = error_set(e, ERROR_INPUT, "%s: a JSON list is expected", path);
        for (size_t k = 0; k < json_array_size(list) && r == 0; k++)
            r = take_module(folder, json_array_get(list, k), s, e);
        json_decref(list);
        file_close(&f);
    }
    free(path);
    return r;
}

int sentence_read(const char *folder, struct sentence_settings *ret, struct error *e)
{
    struct sentence_settings s = {.pooling = POOLING_MEAN};
    json_t *config;
    s.there = path_exists(folder, "modules.json");
    if (s.there && read_modules(folder, &s, e) < 0)
        return -1;
    if (json_read_optional(folder, "sentence_bert_config.json", &config, e) < 0)
        return -1;
    int r = json_take_u32(config, "max_seq_length", &s.max_length, e);
    json_decref(config);
    if (r < 0)
        return error_prefix(e, "%s/sentence_bert_config.json", folder);
    *ret = s;
    return 0;
}
