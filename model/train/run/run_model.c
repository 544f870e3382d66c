/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_model.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/arch/arch.h"
#include "model/checkpoint/init.h"
#include "model/checkpoint/save.h"
#include "model/engine/lengths.h"
#include "model/evaluate/labels.h"
#include "model/kernels/encoder_attention.h"
#include "model/mask/drop.h"
#include "model/mask/model_mask.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the class ---- */

/* The same model with another class. */
static int with_class(const struct model_config *c, const char *name, struct model_config *ret,
                      struct error *e)
{
    json_t *json = json_copy(c->json);
    json_object_set_new(json, "architectures", json_pack("[s]", name));
    int r = config_parse(json, ret, e);
    if (r == 0)
        ret->one_type = c->one_type; /* of the tokenizer, not of config.json */
    json_decref(json);
    return r;
}

/* *c is replaced. */
static int name_class(struct model_config *c, const char *name, struct error *e)
{
    struct model_config new;
    if (with_class(c, name, &new, e) < 0)
        return -1;
    config_finish(c);
    *c = new;
    return 0;
}

/* A model class with the heads that training needs. */
static int name_heads(struct model_config *c, uint32_t needed, struct error *e)
{
    if ((config_parts(c) & needed) == needed)
        return 0;
    const struct arch_class *class = arch_class_of(c->arch, PART_ENCODER | needed);
    return class ? name_class(c, class->name, e)
                 : error_set(e, ERROR_INPUT, "%s has no model class with these heads",
                             c->arch->title);
}

/* ---- a new head ---- */

/* The class that ends as the objective has it, or null with *e set. */
static const struct arch_class *class_for(const struct objective *o,
                                          const struct model_config *c, struct error *e)
{
    const struct arch_class *class = arch_class_ending(c->arch, o->model_class);
    if (!class)
        error_set(e, ERROR_INPUT, "%s has no model class that ends with %s", c->arch->title,
                  o->model_class);
    return class;
}

int run_model_head_dropout(const struct run_options *o, const struct model_config *c,
                           double *ret, struct error *e)
{
    const struct arch_class *class = class_for(o->objective, c, e);
    struct model_config of_run;
    if (!class || with_class(c, class->name, &of_run, e) < 0)
        return -1;
    of_run.hidden_dropout = o->hidden_dropout;
    *ret = target_dropout(&of_run, o->objective->head);
    config_finish(&of_run);
    return 0;
}

/* The model's label of each class in ret[d->labels]. False: its labels are others, and *ret_missing is a class without one, or
   d->labels. */
static bool find_labels(const struct model_config *c, const struct arch_class *class,
                        const struct data_task *t, const struct objective_data *d,
                        uint32_t *ret, uint32_t *ret_missing)
{
    for (uint32_t k = 0; k < d->labels; k++)
        ret[k] = k;
    if (class->labels || !(class->parts & PART_CLASSIFIER)) /* their number is the class's */
        return true;
    *ret_missing = d->labels;
    return c->labels == d->labels &&
           (!d->label || labels_of_classes(c, t, (const char *const *)d->label, d->labels, ret,
                                           ret_missing));
}

bool run_model_labels(const struct model_config *c, const struct run_options *o,
                      const struct objective *objective, const struct objective_data *d,
                      uint32_t *ret)
{
    const struct arch_class *class = arch_class_ending(c->arch, objective->model_class);
    uint32_t missing;
    return class && !strcmp(c->architecture, class->name) &&
           find_labels(c, class, o->task, d, ret, &missing);
}

/* Fills id2label and label2id; the names of a head that goes on stay, if it has some. JSON holds only labels in UTF-8. */
static int name_labels(const struct model_config *c, const struct objective_data *d, bool stay,
                       json_t *name, json_t *number, struct error *e)
{
    char digits[24], buffer[24];
    stay = stay && !labels_unnamed(c);
    for (uint32_t k = 0; d->label && k < d->labels; k++) {
        const char *text = stay ? config_label(c, k, buffer) : d->label[k];
        snprintf(digits, sizeof digits, "%u", k);
        if (json_object_set_new(name, digits, json_string(text)) < 0 ||
            json_object_set_new(number, text, json_integer(k)) < 0)
            return error_set(e, ERROR_INPUT,
                             "label \"%.60s\" is not UTF-8; a label in UTF-8 is expected",
                             text);
    }
    return 0;
}

static int set_labels(const struct model_config *c, const struct objective_data *d, bool stay,
                      struct error *e)
{
    json_t *json = c->json, *name = json_object(), *number = json_object();
    int r = name_labels(c, d, stay, name, number, e);
    json_object_del(json, "num_labels");
    json_object_del(json, "id2label");
    json_object_del(json, "label2id");
    if (json_object_size(name)) {
        json_object_set(json, "id2label", name);
        json_object_set(json, "label2id", number);
    } else if (d->labels) {
        json_object_set_new(json, "num_labels", json_integer(d->labels));
    }
    json_decref(name);
    json_decref(number);
    return r;
}

static void say_new(const struct weights *w, const char *why, void (*say)(const char *line))
{
    struct text line = {0};
    const char *before = "newly initialised: ";
    for (uint32_t k = 0; k < w->n_tensors; k++)
        if (!w->tensor[k].data) {
            text_add(&line, "%s%s", before, w->tensor[k].parameter.name);
            before = ", ";
        }
    text_add(&line, "%s", line.length ? why : "");
    if (line.length && say)
        say(text_get(&line));
    text_finish(&line);
}

/* Why a head of the right class does not go on, behind the names of its tensors. */
static void explain(const struct model_config *c, const struct objective_data *d,
                    uint32_t missing, struct text *to)
{
    if (missing < d->labels)
        text_add(to, "; the model's own head has no label \"%.60s\"", d->label[missing]);
    else
        text_add(to, "; the model's own head has %u labels, the task %u", c->labels, d->labels);
}

/* The class of the objective with the data's labels. A head of the same class and labels goes on with its weights. */
static int give_head(const struct run_options *o, const struct objective_data *d,
                     struct model_config *c, struct weights *w, struct text *ret_why,
                     struct error *e)
{
    const struct objective *objective = o->objective;
    const struct arch_class *class = class_for(objective, c, e);
    if (!class)
        return -1;
    const bool same_class = !strcmp(c->architecture, class->name);
    uint32_t missing, *label = memory_new((size_t)d->labels + 1, sizeof *label);
    const bool same = find_labels(c, class, o->task, d, label, &missing) && same_class;
    if (same_class && !same)
        explain(c, d, missing, ret_why);
    free(label);
    if (set_labels(c, d, same, e) < 0)
        return -1;
    json_object_del(c->json, "problem_type");
    if (objective->problem)
        json_object_set_new(c->json, "problem_type", json_string(objective->problem));
    if (name_class(c, class->name, e) < 0)
        return -1;
    weights_refit(w, c, class->parts, same ? 0 : PART_CLASSIFIER | PART_SPAN);
    return 0;
}

/* ---- positions, mask ---- */

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

int run_model_limit(const struct run_options *o, const char *folder,
                    const struct model_config *c, uint32_t *ret, struct error *e)
{
    *ret = o->positions ? o->positions : c->positions;
    if (o->mask || o->learn.kind != LEARN_NOTHING || *ret != c->positions)
        return 0; /* a mask for all positions */
    return model_mask_limit(folder, c, ret, e);
}

/* Tokens that a text has at most: as asked for, else in the data. */
static uint32_t length_of(const struct run_options *o, const struct objective_data *d)
{
    return o->max_length ? o->max_length : d ? d->length : 0;
}

static struct mask *load_mask(const struct run_options *o, const struct objective_data *d,
                              const struct model_config *c, struct error *e)
{
    const struct drop_draws draws = {o->seed, o->repeat, length_of(o, d)};
    bool changed;
    struct mask *m = o->mask    ? model_mask(o->mask, c, e)
                     : !c->mask ? model_mask_own(c, e)
                                : model_mask_stored(o->model, c, &changed, e);
    return m && o->drop ? mask_drop(m, o->drop, c, draws, e) : m;
}

/* The model's own is copied where nothing is asked for. */
static int write_mask(const struct run_options *o, const char *folder,
                      const struct objective_data *d, struct model_config *c, struct error *e)
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
    struct mask *m = load_mask(o, d, c, e);
    if (!m)
        return -1;
    const char *own = o->mask ? NULL : c->mask_transform;
    int r = model_mask_save(folder, m, o->transform ? o->transform : own, c, e);
    mask_destroy(m);
    return r;
}

/* The folder keeps the lengths that lengths_text() and lengths_window() had with the options. */
static int write_all(const struct run_options *o, const char *folder,
                     const struct objective_data *d, struct model_config *c, struct weights *w,
                     struct error *e)
{
    const bool windows = run_reads_windows(o);
    const uint32_t texts = o->max_length && !windows ? o->max_length : o->positions;
    weights_initialise(w, c, c->initializer_range, o->seed);
    if (resize(o, c, w, e) < 0 || write_mask(o, folder, d, c, e) < 0 ||
        model_copy_rest(o->model, folder, texts, e) < 0)
        return -1;
    if (windows)
        lengths_keep(c->json, o->max_length, o->overlap);
    return model_save(folder, c, w, ELEMENT_F32, e);
}

/* In this place nothing drops out. */
static int check_dropout(const struct model_config *c, struct error *e)
{
    return c->feed_dropout > 0 ? error_set(e, ERROR_INPUT,
                                           "mlp_dropout %g is not supported in training: 0 is "
                                           "expected in config.json",
                                           c->feed_dropout)
                               : 0;
}

static int prepare(const struct run_options *o, const struct objective_data *d,
                   struct model_config *c, struct weights *w, struct text *ret_why,
                   struct error *e)
{
    const struct objective *objective = o->objective;
    if (config_read(o->model, c, e) < 0 || check_dropout(c, e) < 0 ||
        (!objective->model_class && name_heads(c, objective->parts, e) < 0) ||
        weights_read(o->model, c, w, e) < 0)
        return -1;
    return objective->model_class ? give_head(o, d, c, w, ret_why, e) : 0;
}

int run_model_write(const struct run_options *o, const char *folder,
                    const struct objective_data *d, void (*say)(const char *line),
                    struct error *e)
{
    struct model_config c = {0};
    struct weights w = {0};
    struct text why = {0};
    int r = prepare(o, d, &c, &w, &why, e);
    if (r == 0 && o->task)
        say_new(&w, text_get(&why), say);
    text_finish(&why);
    if (r == 0)
        r = write_all(o, folder, d, &c, &w, e);
    weights_finish(&w);
    config_finish(&c);
    return r;
}
