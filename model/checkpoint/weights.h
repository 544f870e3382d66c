/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of a model's folder: model.safetensors or the shards of model.safetensors.index.json,
   mapped, checked against config.json and free of NaN and infinity. */
#pragma once
#include "masks/base/error.h"
#include "model/arch/parameter.h"
#include "model/base/element.h"
#include "model/checkpoint/config.h"
#include "model/checkpoint/shards.h"

struct tensor {
    struct parameter parameter;
    enum element element;
    const void *data; /* row-major, perhaps unaligned; null: the file has none */
    void *own;        /* the same where it is our own memory, else null */
    bool
        on_device; /* data is in an array of a backend (model/gradients/state.h), f32: read it with array_read() */
};

struct weights {
    const struct arch *arch; /* of the config */
    struct tensor *tensor;   /* parameters_list() of the parts */
    uint32_t n_tensors;
    bool tied;          /* the config's */
    uint32_t parts;     /* which the list has */
    uint32_t new_parts; /* parts that the files lack: all of their tensors are null */
    char **note;        /* what a user should know, a line each */
    uint32_t n_notes, notes_capacity;
    struct shards files; /* that data points into */
};

/* Reads the parts that the class names, and others that the files have whole. Sets c->labels from the file
   where config.json does not say it, and c->tied to false where the file's decoder differs from the embeddings. Fails with the name of a tensor that is missing, has another shape or is
   not finite; *ret is then empty. */
int weights_read(const char *folder, struct model_config *c, struct weights *ret,
                 struct error *e);
/* For a new model: the tensors of the parts, all null. */
void weights_begin(const struct model_config *c, uint32_t parts, struct weights *ret);
void weights_finish(struct weights *w); /* a zeroed one is fine */
/* For another class of the same encoder: the tensors become those of c and `parts`. Values stay, but of the parts `fresh`,
   whose tensors are all null. */
void weights_refit(struct weights *w, const struct model_config *c, uint32_t parts,
                   uint32_t fresh);
/* Adds a line to w->note. */
void weights_note(struct weights *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Gives back the pages of the files that were read; they return when read again. For callers that have packed
   most tensors. */
void weights_release(const struct weights *w);

/* Null: not there. `layer` is 0 for what is in no layer. */
struct tensor *weights_get(const struct weights *w, enum parameter_id id, uint32_t layer);
/* The tensor of this parameter name, as the architecture spells it; null: not there. */
struct tensor *weights_find(const struct weights *w, const char *name);
/* count elements from the first; data must be there, and on the host. */
void tensor_to_f32(const struct tensor *t, uint64_t first, uint64_t count, float *ret);

/* The dtype that most elements have. */
enum element weights_element(const struct weights *w);
