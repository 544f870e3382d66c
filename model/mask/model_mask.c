/* SPDX-License-Identifier: Apache-2.0 */
#include "model/mask/model_mask.h"
#include "masks/analysis/state.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/input/load.h"
#include "masks/write.h"
#include "model/checkpoint/json.h"
#include "runtime/artifact/artifact.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns m if it fits the model's heads and layers, else null with *e set. Null stays null. */
static struct mask *check_shape(struct mask *m, const struct model_config *c, struct error *e)
{
    if (!m)
        return NULL;
    bool heads = m->heads == 1 || m->heads == c->heads;
    bool layers = m->layers == 1 || m->layers == c->layers;
    if (heads && layers && !m->queries)
        return m;
    if (m->queries)
        error_set(e, ERROR_INPUT,
                  "%s: %u queries and %u keys; the model's mask has as many keys as queries",
                  m->source, m->queries, m->keys);
    else
        error_set(e, ERROR_INPUT, "the mask has %u %s, the model %u; 1 or as many are expected",
                  heads ? m->layers : m->heads, heads ? "layers" : "heads",
                  heads ? c->layers : c->heads);
    mask_destroy(m);
    return NULL;
}

/* The error of a stored mask with fewer tokens than the model has positions. */
static void explain_length(const char *name, const struct model_config *c, struct error *e)
{
    const struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = name};
    struct error ignored = {0};
    struct mask *m = mask_load(&request, artifact_read_mask, &ignored);
    if (m && m->n < c->positions)
        error_set(
            e, ERROR_INPUT,
            "%s: the mask has %u tokens, the model %u positions; `maskbert convert DIR -o "
            "NEW --positions %u` makes a model with as many",
            name, m->n, c->positions, m->n);
    mask_destroy(m);
}

struct mask *model_mask(const char *name, const struct model_config *c, struct error *e)
{
    const struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = name,
                                         .n = c->positions};
    struct mask *m = mask_load(&request, artifact_read_mask, e);
    if (!m)
        explain_length(name, c, e);
    return check_shape(m, c, e);
}

struct mask *model_mask_own(const struct model_config *c, struct error *e)
{
    char window[32];
    struct mask *dense = model_mask("dense", c, e), *local = NULL, *ret = NULL;
    snprintf(window, sizeof window, "window(%u)", c->local / 2);
    if (!c->local)
        return dense;
    if (dense)
        local = model_mask(window, c, e);
    if (local) {
        struct pattern **each = memory_new(c->layers, sizeof *each), *of[2] = {NULL};
        for (uint32_t k = 0; k < c->layers; k++) {
            const bool all = config_layer_is_global(c, k);
            if (!of[all])
                of[all] = pattern_copy(mask_pattern(all ? dense : local, 0, 0));
            each[k] = of[all];
        }
        ret = mask_new(c->layers, 1, each, "the model's windows");
        free(each);
    }
    mask_destroy(dense);
    mask_destroy(local);
    return ret;
}

/* True if the file is of the mask language, which is read at the model's positions. */
static bool is_text(const char *name)
{
    const char *suffix = strrchr(name, '.');
    return suffix && !strcmp(suffix, ".mask");
}

/* An array may be shorter than the model's positions: it then limits the length of a text. */
static struct mask *load_stored(const char *path, const struct model_config *c, struct error *e)
{
    if (is_text(path))
        return model_mask(path, c, e);
    struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = path};
    struct mask *m = mask_load(&request, artifact_read_mask, e);
    if (m && m->n > c->positions) {
        struct mask *cropped = mask_crop(m, c->positions, e);
        mask_destroy(m);
        m = cropped;
    }
    return check_shape(m, c, e);
}

static int write_mask(const char *folder, const struct mask *m, const struct model_config *c,
                      const char **ret_name, struct error *e)
{
    struct text text = {0};
    struct error ignored = {0};
    bool stated = m->n == c->positions && mask_state(m, &text, &ignored) == 0;
    *ret_name = stated ? "mask.mask" : "mask.npy";
    char *path = path_join(folder, *ret_name);
    int r =
        stated ? file_write(path, text_get(&text), text.length, e) : mask_write_npy(m, path, e);
    free(path);
    text_finish(&text);
    return r;
}

static void print_hash(const struct mask *m, char ret[17])
{
    snprintf(ret, 17, "%016llx", (unsigned long long)mask_hash(m));
}

struct mask *model_mask_stored(const char *folder, const struct model_config *c,
                               bool *ret_changed, struct error *e)
{
    char hash[17];
    if (!path_exists(folder, c->mask)) {
        error_set(e, ERROR_INPUT,
                  "%s/%s: missing, but config.json names it as the model's mask; copy it from "
                  "the model's first folder, or remove the key \"maskc\" for dense attention",
                  folder, c->mask);
        return NULL;
    }
    char *path = path_join(folder, c->mask);
    struct mask *m = load_stored(path, c, e);
    free(path);
    if (!m)
        return NULL;
    const json_t *stored = json_object_get(json_object_get(c->json, "maskc"), "hash");
    print_hash(m, hash);
    *ret_changed = json_is_string(stored) && strcmp(json_string_value(stored), hash) != 0;
    return m;
}

int model_mask_limit(const char *folder, const struct model_config *c, uint32_t *ret,
                     struct error *e)
{
    bool changed;
    *ret = c->positions;
    if (!c->mask || is_text(c->mask))
        return 0;
    struct mask *m = model_mask_stored(folder, c, &changed, e);
    if (!m)
        return -1;
    *ret = m->n;
    mask_destroy(m);
    return 0;
}

int model_mask_save(const char *folder, const struct mask *m, const char *transform,
                    struct model_config *c, struct error *e)
{
    const char *name;
    char hash[17];
    if (write_mask(folder, m, c, &name, e) < 0)
        return -1;
    print_hash(m, hash);
    json_object_set_new(c->json, "maskc",
                        json_pack("{s:s, s:s, s:s}", "mask", name, "hash", hash, "transform",
                                  transform ? transform : "softmax"));
    return 0;
}
