/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the files, matches their tensors with the parameters, then checks: no part is there only half, and
   every value is finite. See weights.h. */
#include "model/checkpoint/weights.h"
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/checkpoint/match.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void weights_finish(struct weights *w)
{
    for (uint32_t k = 0; k < w->n_tensors; k++)
        free(w->tensor[k].own);
    for (uint32_t k = 0; k < w->n_notes; k++)
        free(w->note[k]);
    shards_finish(&w->files);
    free(w->tensor);
    free(w->note);
    *w = (struct weights){0};
}

void weights_note(struct weights *w, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    error_replace_controls(line);
    *MEMORY_PUSH(w->note, w->n_notes, w->notes_capacity) = memory_text(line);
}

void weights_release(const struct weights *w)
{
    shards_release(&w->files);
}

/* The parts of which the files have a tensor, by name alone. */
static uint32_t parts_of(const struct weights *w)
{
    uint32_t parts = 0;
    char name[PARAMETER_NAME_BYTES];
    for (uint32_t s = 0; s < w->files.count; s++)
        for (uint32_t k = 0; k < w->files.shard[s].tensors.n_tensors; k++) {
            parameter_name(w->arch, w->files.shard[s].tensors.tensor[k].name, name);
            parts |= parameter_parts(w->arch, name);
        }
    return parts;
}

/* The number of labels, from the classifier's shape, where config.json does not say it. */
static void take_labels(const struct weights *w, struct model_config *c)
{
    uint32_t count;
    struct parameter *list = parameters_list(c, PART_CLASSIFIER, &count);
    for (uint32_t k = 0; k < count && !c->labels_given; k++) {
        const bool bias = list[k].id == PARAMETER_CLASSIFIER_BIAS;
        const struct safetensor *t = bias ? weights_find_in_files(w, list[k].name) : NULL;
        if (t && t->rank == 1 && t->shape[0] <= 1 << 20 && t->shape[0])
            c->labels = (uint32_t)t->shape[0];
    }
    free(list);
}

/* A head that the class does not name is read if it is whole, as other classes have it. Returns those that are not, with a note. */
static uint32_t leave_out(struct weights *w, const struct model_config *c, uint32_t parts)
{
    uint32_t ret = 0, count;
    struct parameter *list = parameters_list(c, parts, &count);
    for (uint32_t k = 0; k < count; k++) {
        const struct parameter *p = &list[k];
        if (!(p->part & parts & ~ret) || weights_can_read(w, p))
            continue;
        ret |= p->part;
        weights_note(w, "'%s' is missing or of another shape: its head is left out", p->name);
    }
    free(list);
    return ret;
}

struct tensor *weights_get(const struct weights *w, enum parameter_id id, uint32_t layer)
{
    for (uint32_t k = 0; k < w->n_tensors; k++)
        if (w->tensor[k].parameter.id == id && w->tensor[k].parameter.layer == layer)
            return &w->tensor[k];
    return NULL;
}

struct tensor *weights_find(const struct weights *w, const char *name)
{
    for (uint32_t k = 0; k < w->n_tensors; k++)
        if (!strcmp(w->tensor[k].parameter.name, name))
            return &w->tensor[k];
    return NULL;
}

/* A part must be complete or, except the encoder, absent. there: the parts of which some tensor was found. Absent parts
   become new_parts, with a note for each tensor. */
static int check_missing(struct weights *w, uint32_t there, const char *folder, struct error *e)
{
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct tensor *t = &w->tensor[k];
        bool whole = t->parameter.part == PART_ENCODER || there & t->parameter.part;
        if (!t->data && whole)
            return error_set(e, ERROR_INPUT, "%s: tensor '%s' is missing", folder,
                             t->parameter.name);
    }
    w->new_parts = w->parts & ~there;
    for (uint32_t k = 0; k < w->n_tensors; k++)
        if (w->tensor[k].parameter.part & w->new_parts)
            weights_note(w, "'%s' is not in the file: newly initialised",
                         w->tensor[k].parameter.name);
    return 0;
}

static int check_finite(const struct weights *w, const char *folder, struct error *e)
{
    int64_t bad = -1;
#pragma omp parallel for schedule(dynamic, 1) reduction(max : bad)
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct tensor *t = &w->tensor[k];
        if (t->data &&
            elements_not_finite(t->element, t->data, t->parameter.count) < t->parameter.count)
            bad = bad > (int64_t)k ? bad : (int64_t)k;
    }
    if (bad < 0)
        return 0;
    const struct tensor *t = &w->tensor[bad];
    return error_set(e, ERROR_INPUT, "%s: tensor '%s' is not finite at element %" PRIu64,
                     folder, t->parameter.name,
                     elements_not_finite(t->element, t->data, t->parameter.count));
}

void weights_begin(const struct model_config *c, uint32_t parts, struct weights *ret)
{
    struct parameter *list = parameters_list(c, parts, &ret->n_tensors);
    ret->arch = c->arch;
    ret->tied = c->tied;
    ret->parts = parts;
    ret->tensor = memory_new(ret->n_tensors, sizeof *ret->tensor);
    for (uint32_t k = 0; k < ret->n_tensors; k++)
        ret->tensor[k].parameter = list[k];
    free(list);
}

/* Takes the values of `from` over. */
static void take_values(struct tensor *to, struct tensor *from)
{
    to->element = from->element;
    to->data = from->data;
    to->own = from->own;
    from->own = NULL;
}

void weights_refit(struct weights *w, const struct model_config *c, uint32_t parts,
                   uint32_t fresh)
{
    struct weights old = *w;
    weights_begin(c, parts, w);
    w->new_parts = 0;
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct parameter *p = &w->tensor[k].parameter;
        struct tensor *from = weights_get(&old, p->id, p->layer);
        if (from && from->data && !(p->part & fresh) && !strcmp(from->parameter.name, p->name))
            take_values(&w->tensor[k], from);
        else
            w->new_parts |= p->part;
    }
    for (uint32_t k = 0; k < old.n_tensors; k++)
        free(old.tensor[k].own);
    free(old.tensor);
}

int weights_read(const char *folder, struct model_config *c, struct weights *ret,
                 struct error *e)
{
    struct weights w = {.arch = c->arch};
    int r = shards_open(&w.files, folder, e);
    if (r == 0) {
        uint32_t there = parts_of(&w);
        if (c->arch->pooler == POOLER_SHARED && config_parts(c) & PART_SPAN &&
            there & PART_CLASSIFIER) /* one name for both */
            there += PART_SPAN - PART_CLASSIFIER;
        const uint32_t named = config_parts(c) | PART_ENCODER;
        if (config_class_is_unknown(c))
            weights_note(&w, "architecture '%.200s' is read as %s", c->architecture,
                         c->arch->classes->name);
        take_labels(&w, c);
        weights_untie(&w, c);
        const uint32_t left_out = leave_out(&w, c, there & ~named);
        there &= ~left_out;
        weights_begin(c, there | named, &w);
        r = weights_match(&w, left_out, e);
        if (r == 0)
            r = check_missing(&w, there, folder, e);
        if (r == 0)
            r = check_finite(&w, folder, e);
    }
    if (r < 0)
        weights_finish(&w);
    else
        *ret = w;
    return r;
}

void tensor_to_f32(const struct tensor *t, uint64_t first, uint64_t count, float *ret)
{
    const uint8_t *bytes = t->data;
    elements_to_f32(t->element, bytes + first * element_bytes(t->element), count, ret);
}

enum element weights_element(const struct weights *w)
{
    uint64_t count[ELEMENT_COUNT] = {0};
    int best = ELEMENT_F32;
    for (uint32_t k = 0; k < w->n_tensors; k++)
        if (w->tensor[k].data)
            count[w->tensor[k].element] += w->tensor[k].parameter.count;
    for (int k = 0; k < ELEMENT_COUNT; k++)
        best = count[k] > count[best] ? k : best;
    return (enum element)best;
}
