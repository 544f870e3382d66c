/* SPDX-License-Identifier: Apache-2.0 */
#include "model/checkpoint/config_rotary.h"
#include "model/checkpoint/json.h"
#include <string.h>

static const char global[] = "full_attention", local[] = "sliding_attention";

bool config_layer_is_global(const struct model_config *c, uint32_t layer)
{
    if (!c->local)
        return true;
    return c->layer_types
               ? !strcmp(json_string_value(json_array_get(c->layer_types, layer)), global)
               : layer % c->global_every == 0;
}

static int take_types(const json_t *json, struct model_config *c, struct error *e)
{
    const json_t *list = json_object_get(json, "layer_types");
    if (!list || json_is_null(list))
        return 0;
    if (json_array_size(list) != c->layers)
        return error_set(e, ERROR_INPUT, "layer_types: %u kinds of layers are expected",
                         c->layers);
    for (size_t k = 0; k < c->layers; k++) {
        const char *kind = json_string_value(json_array_get(list, k));
        if (!kind || (strcmp(kind, global) && strcmp(kind, local)))
            return error_set(e, ERROR_INPUT, "layer_types: layer %zu: %s or %s is expected", k,
                             global, local);
    }
    c->layer_types = list;
    return 0;
}

static int refuse_null(const char *key, struct error *e)
{
    return error_set(e, ERROR_INPUT, "%s null: a number is expected", key);
}

/* Reads a kind's rope_theta, else the older key, which *theta already has; only the default rope_type is accepted. Its older
   spelling is "type". transformers has no angle where the key that decides is null. */
static int take_kind(const json_t *json, const char *kind, const char *older, double *theta,
                     struct error *e)
{
    const json_t *own = json_object_get(json_object_get(json, "rope_parameters"), kind),
                 *angle = json_object_get(own, "rope_theta");
    const char *type = "default";
    if (!angle && json_is_null(json_object_get(json, older)))
        return refuse_null(older, e);
    if (!own || json_is_null(own))
        return 0;
    if (!json_is_object(own))
        return error_set(e, ERROR_INPUT, "rope_parameters: %s: an object is expected", kind);
    if ((json_is_null(angle) && refuse_null("rope_theta", e) < 0) ||
        json_take_text(own, "type", &type, e) < 0 ||
        json_take_text(own, "rope_type", &type, e) < 0 ||
        json_take_real(own, "rope_theta", theta, e) < 0)
        return error_prefix(e, "rope_parameters");
    if (strcmp(type, "default"))
        return error_set(
            e, ERROR_INPUT,
            "rope_parameters: rope_type '%.60s' is not supported, default is expected", type);
    return *theta >= 1e-3 && *theta <= 1e12
               ? 0
               : error_set(e, ERROR_INPUT, "rope_theta %g: 0.001..1e+12 is expected", *theta);
}

static int take_angles(const json_t *json, struct model_config *c, struct error *e)
{
    const json_t *all = json_object_get(json, "rope_parameters"),
                 *scaling = json_object_get(json, "rope_scaling");
    if (scaling && !json_is_null(scaling))
        return error_set(e, ERROR_INPUT, "rope_scaling is not supported");
    if (all && !json_is_null(all) && !json_is_object(all))
        return error_set(e, ERROR_INPUT, "rope_parameters: an object is expected");
    return take_kind(json, global, "global_rope_theta", &c->global_theta, e) < 0
               ? -1
               : take_kind(json, local, "local_rope_theta", &c->local_theta, e);
}

static int take_pooling(const json_t *json, struct model_config *c, struct error *e)
{
    const char *pooling = "cls";
    if (json_take_text(json, "classifier_pooling", &pooling, e) < 0)
        return -1;
    c->mean_pooling = !strcmp(pooling, "mean");
    return c->mean_pooling || !strcmp(pooling, "cls")
               ? 0
               : error_set(
                     e, ERROR_INPUT,
                     "classifier_pooling '%.60s' is not supported, cls or mean is expected",
                     pooling);
}

/* Half of local_attention, by another name. Newer releases of transformers let it replace local_attention. */
static int check_window(const json_t *json, const struct model_config *c, struct error *e)
{
    uint32_t half = c->local / 2;
    if (json_take_u32(json, "sliding_window", &half, e) < 0)
        return -1;
    return half == c->local / 2
               ? 0
               : error_set(e, ERROR_INPUT,
                           "sliding_window %u is not supported with local_attention %u: %u is "
                           "expected",
                           half, c->local, c->local / 2);
}

int config_take_rotary(const json_t *json, struct model_config *c, struct error *e)
{
    uint32_t dim = c->hidden / c->heads;
    if (!c->local)
        return 0;
    if (dim % 2)
        return error_set(e, ERROR_INPUT, "heads of %u: an even number is expected", dim);
    if (json_take_u32(json, "head_dim", &dim, e) < 0)
        return -1;
    if (dim != c->hidden / c->heads)
        return error_set(e, ERROR_INPUT, "head_dim %u: %u is expected", dim,
                         c->hidden / c->heads);
    if (check_window(json, c, e) < 0 || take_types(json, c, e) < 0 ||
        take_angles(json, c, e) < 0)
        return -1;
    return take_pooling(json, c, e);
}
