/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_model.h"
#include "model/arch/arch.h"
#include "model/checkpoint/init.h"
#include "model/checkpoint/save.h"
#include "model/kernels/encoder_attention.h"
#include "model/mask/drop.h"
#include "model/mask/model_mask.h"

/* A model class with the heads that training needs. */
static int name_architecture(struct model_config *c, uint32_t needed, struct error *e)
{
    if ((config_parts(c) & needed) == needed)
        return 0;
    const struct arch_class *class = arch_class_of(c->arch, PART_ENCODER | needed);
    if (!class)
        return error_set(e, ERROR_INPUT, "%s has no model class with these heads",
                         c->arch->title);
    json_t *json = json_incref(c->json);
    json_object_set_new(json, "architectures", json_pack("[s]", class->name));
    config_finish(c);
    int r = config_parse(json, c, e);
    json_decref(json);
    return r;
}

static int resize(const struct run_options *o, struct model_config *c, struct weights *w,
                  struct error *e)
{
    if (!o->positions || o->positions == c->positions)
        return 0;
    if (o->positions < c->positions)
        return error_set(e, ERROR_INPUT, "--positions %u: the model has %u; more are expected",
                         o->positions, c->positions);
    if (o->positions > 1 << 20)
        return error_set(e, ERROR_INPUT, "--positions %u: at most %d", o->positions, 1 << 20);
    if (c->mask && !o->mask && o->learn.kind == LEARN_NOTHING)
        return error_set(e, ERROR_INPUT, "%s has a mask: with --positions, --mask is expected",
                         o->model);
    model_resize_positions(c, w, o->positions);
    return 0;
}

static struct mask *load_mask(const struct run_options *o, const struct model_config *c,
                              struct error *e)
{
    bool changed;
    struct mask *m = o->mask || !c->mask ? model_mask(o->mask ? o->mask : "dense", c, e)
                                         : model_mask_stored(o->model, c, &changed, e);
    return m && o->drop ? mask_drop(m, o->drop, c, (struct drop_draws){o->seed, o->repeat}, e)
                        : m;
}

/* The model's own is copied where nothing is asked for. */
static int write_mask(const struct run_options *o, const char *folder, struct model_config *c,
                      struct error *e)
{
    struct encoder_transform ignored;
    if (o->learn.kind != LEARN_NOTHING) {
        json_object_del(c->json, "maskc"); /* the learner writes its own */
        return 0;
    }
    if (o->transform && encoder_transform_parse(o->transform, &ignored, e) < 0)
        return -1;
    if (!o->mask && !o->transform && !o->drop)
        return c->mask ? model_copy_file(o->model, folder, c->mask, e) : 0;
    struct mask *m = load_mask(o, c, e);
    if (!m)
        return -1;
    const char *own = o->mask ? NULL : c->mask_transform;
    int r = model_mask_save(folder, m, o->transform ? o->transform : own, c, e);
    mask_destroy(m);
    return r;
}

static int write_all(const struct run_options *o, const char *folder, struct model_config *c,
                     struct weights *w, struct error *e)
{
    weights_initialise(w, c, c->initializer_range, o->seed);
    if (resize(o, c, w, e) < 0 || write_mask(o, folder, c, e) < 0 ||
        model_copy_rest(o->model, folder, o->positions, e) < 0)
        return -1;
    return model_save(folder, c, w, ELEMENT_F32, e);
}

int run_model_write(const struct run_options *o, const char *folder, uint32_t parts,
                    struct error *e)
{
    struct model_config c = {0};
    struct weights w = {0};
    int r = config_read(o->model, &c, e);
    if (r == 0)
        r = name_architecture(&c, parts, e);
    if (r == 0)
        r = weights_read(o->model, &c, &w, e);
    if (r == 0)
        r = write_all(o, folder, &c, &w, e);
    weights_finish(&w);
    config_finish(&c);
    return r;
}
