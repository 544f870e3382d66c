/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of a model's folder: model.safetensors or the shards of model.safetensors.index.json,
   mapped, checked against config.json and free of NaN and infinity. */
#pragma once
#include "masks/base/error.h"
#include "model/checkpoint/config.h"
#include "model/checkpoint/parameters.h"
#include "model/checkpoint/shards.h"
#include "model/element.h"

struct tensor {
    struct parameter parameter;
    enum element element;
    const void *data; /* row-major, perhaps unaligned; null: the file has none */
    void *own;        /* the same, where it was made here */
};

struct weights {
    struct tensor *tensor; /* parameters_list() of the parts */
    uint32_t n_tensors;
    uint32_t parts;     /* which the list has */
    uint32_t new_parts; /* of them, those that the files lack: every tensor of theirs is null */
    char **note;        /* what a user should know, a line each */
    uint32_t n_notes, notes_capacity;
    struct shards files; /* that data points into */
};

/* The parts of the files and those that the architecture names. c->labels is set by the file where
   config.json did not say. Fails with the tensor's name where one is missing, has another shape or
   is not finite. *ret is empty on failure. */
int weights_read(const char *folder, struct model_config *c, struct weights *ret,
                 struct error *e);
/* No tensors but those of the parts, all null: for a new model. */
void weights_begin(const struct model_config *c, uint32_t parts, struct weights *ret);
void weights_finish(struct weights *w); /* a zeroed one is fine */
/* Adds a line to w->note. */
void weights_note(struct weights *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Lets go of the pages of the files that were read: they come back when they are read again. For
   those who have made something else of most tensors. */
void weights_release(const struct weights *w);

/* By the name of parameters.h; null: not there. */
struct tensor *weights_find(const struct weights *w, const char *name);
/* count elements from the first; data must be there. */
void tensor_to_f32(const struct tensor *t, uint64_t first, uint64_t count, float *ret);

/* The dtype that most elements have. */
enum element weights_element(const struct weights *w);
