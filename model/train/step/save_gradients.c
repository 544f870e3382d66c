/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/step/save_gradients.h"
#include "masks/safetensors.h"
#include "model/backend/mirror.h"
#include "model/base/whole_file.h"
#include "model/train/step/saved_batch.h"
#include <stdlib.h>

/* gradient: the state's, on the host */
static void add_gradients(struct safetensors *out, const struct trainer *t,
                          const float *gradient)
{
    const struct train_state *s = t->state;
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct parameter *p = s->piece[k].parameter;
        char name[PARAMETER_NAME_BYTES];
        parameter_file_name(p, &t->engine->config, name);
        safetensors_add(out, name, "F32", p->rank, p->shape, gradient + s->piece[k].first);
    }
}

/* The gradient of alpha, the alpha that it was taken at, and the noise of each unit. */
static void add_alpha(struct safetensors *out, const struct learner *l)
{
    uint64_t alpha[4], unit[4];
    const uint32_t rank = alpha_dimensions(&l->shape, alpha),
                   unit_rank = alpha_unit_dimensions(&l->shape, unit);
    safetensors_add(out, "alpha", "F32", rank, alpha, l->alpha_gradient.host);
    safetensors_add(out, "batch.alpha", "F32", rank, alpha, l->before);
    if (l->options.kind != LEARN_P)
        safetensors_add(out, "batch.noise", "F32", unit_rank, unit, l->noise);
}

int gradients_save(const char *path, const struct trainer *t, const struct step_result *r,
                   struct error *e)
{
    const struct train_state *s = t->state;
    struct safetensors out = {0};
    struct whole_file file;
    float *own;
    const float *gradient = array_view(&s->device, s->gradient, s->gradient, s->count, &own, e);
    if (!gradient)
        return -1;
    const uint32_t pad =
        t->engine->config.pad; /* its place has no attention: any token will do */
    struct saved_batch batch = saved_batch_new(&t->batch->batch, pad == NO_PADDING ? 0 : pad);
    add_gradients(&out, t, gradient);
    saved_batch_add(&batch, &t->batch->batch, &out);
    if (t->learner)
        add_alpha(&out, t->learner);
    safetensors_add(&out, "loss", "F64", 0, NULL, &r->loss);
    whole_file_begin(&file, path);
    safetensors_stream(&out, whole_file_write, &file);
    int ret = whole_file_end(&file, e);
    safetensors_finish(&out);
    saved_batch_finish(&batch);
    free(own);
    return ret;
}
