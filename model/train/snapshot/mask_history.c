/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/snapshot/mask_history.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/train/learn/alpha.h"
#include "model/train/snapshot/snapshot.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- how the run learns ---- */

static enum learn_kind kind_of(const char *name)
{
    for (int k = LEARN_P; name && k < LEARN_KINDS; k++)
        if (!strcmp(name, learn_kind_names[k]))
            return (enum learn_kind)k;
    return LEARN_NOTHING;
}

static int read_options(const char *run, struct learn_options *ret, struct error *e)
{
    const char *kind = NULL;
    json_t *json = json_read(run, "run.json", e);
    *ret = (struct learn_options){0};
    if (!json)
        return -1;
    int r = json_take_text(json, "learn_mask", &kind, e) < 0 ||
                    json_take_bool(json, "dam_code", &ret->code, e) < 0 ||
                    json_take_bool(json, "per_layer", &ret->per_layer, e) < 0 ||
                    json_take_bool(json, "symmetric", &ret->symmetric, e) < 0
                ? -1
                : 0;
    ret->kind = kind_of(kind);
    json_decref(json);
    if (r == 0 && ret->kind == LEARN_NOTHING)
        r = error_set(e, ERROR_INPUT, "%s: a run of pretrain --learn-mask is expected", run);
    return r;
}

static int read_shape(const char *run, struct alpha_shape *ret, struct error *e)
{
    struct learn_options o;
    struct model_config c = {0};
    int r = read_options(run, &o, e);
    if (r == 0)
        r = config_read(run, &c, e);
    if (r == 0)
        r = alpha_shape_of(&o, &c, ret, e);
    config_finish(&c);
    return r;
}

/* ---- its states ---- */

struct reading {
    const char *run;
    struct alpha_shape shape;
    struct mask_history *history;
};

static int see(void *context, const struct snapshot *s, struct error *e)
{
    const struct reading *r = context;
    struct mask_history *h = r->history;
    const uint64_t count = alpha_count(&r->shape);
    const struct safetensor *t = safetensors_find(&s->tensors, "alpha");
    if (!t || strcmp(t->dtype, "F32") != 0 || t->size < count * sizeof(float))
        return error_set(e, ERROR_INPUT,
                         "%s: the state of step %" PRIu64 " has no alpha of %" PRIu64
                         " numbers",
                         r->run, s->facts.step, count);
    float *alpha = memory_copy(t->data, count * sizeof *alpha); /* aligned */
    *MEMORY_PUSH(h->frame, h->frames, h->capacity) =
        (struct mask_frame){s->facts.step, alpha_mask(&r->shape, alpha)};
    free(alpha);
    return 0;
}

int mask_history_read(const char *run, struct mask_history *ret, struct error *e)
{
    struct mask_history h = {0};
    struct reading r = {.run = run, .history = &h};
    if (read_shape(run, &r.shape, e) < 0)
        return -1;
    int result = snapshot_each(run, see, &r, e);
    if (result == 0 && !h.frames)
        result = error_set(e, ERROR_INPUT,
                           "%s: has no whole state; --save-every N of pretrain writes them, "
                           "--keep N leaves them",
                           run);
    if (result < 0)
        mask_history_finish(&h);
    else
        *ret = h;
    return result;
}

void mask_history_finish(struct mask_history *h)
{
    for (uint32_t k = 0; k < h->frames; k++)
        mask_destroy(h->frame[k].mask);
    free(h->frame);
    *h = (struct mask_history){0};
}
