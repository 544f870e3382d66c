/* SPDX-License-Identifier: Apache-2.0 */
/* A state of a run on the disk, RUN/state/step-N.safetensors: parameters and moments as flat buffers, the kernel file
   of attention, and in the metadata where the run stands, what it depends on, and a checksum of all. Written whole or
   not at all. */
#pragma once
#include "masks/base/file.h"
#include "masks/safetensors.h"
#include "model/gradients/state.h"

#define STATE_FOLDER "state"

struct snapshot_facts {
    uint64_t step, tokens, place; /* steps and tokens done; samples taken, over all epochs */
    double elapsed;               /* seconds of training */
    double best;      /* the highest dev metric so far, and the step that had it; 0: none had */
    double best_loss; /* of that step, on the dev file; 0 in states of older versions */
    uint64_t best_step;
    char options[33]; /* run_options_hash() */
    char *identity;   /* gradients_identity() */
};

/* Contents of a snapshot. */
struct snapshot_of {
    const struct train_state *state, *alpha; /* alpha: of a mask that is learned, or null */
    const struct engine *engine;             /* for its kernel */
};

/* Makes the folder RUN/state where it is missing. */
int snapshot_write(const char *run, const struct snapshot_facts *facts,
                   const struct snapshot_of *of, struct error *e);
/* Removes all but the newest `keep`. */
void snapshot_prune(const char *run, uint32_t keep);

/* One that was read; zeroed: there is none. */
struct snapshot {
    struct file file;
    struct safetensors tensors; /* into the file */
    struct snapshot_facts facts;
    const uint8_t *kernel; /* into the file */
    uint64_t kernel_size;
    uint32_t damaged; /* newer ones that were passed over */
};
/* The newest that is whole. No state at all is no error; a state of damaged files alone is one. */
int snapshot_open(const char *run, struct snapshot *ret, struct error *e);
void snapshot_close(struct snapshot *s);
/* Every whole state, the oldest first, until `see` returns -1. */
int snapshot_each(const char *run,
                  int (*see)(void *context, const struct snapshot *s, struct error *e),
                  void *context, struct error *e);
/* Copies parameters and moments; alpha may be null. */
int snapshot_apply(const struct snapshot *s, struct train_state *to, struct train_state *alpha,
                   struct error *e);
