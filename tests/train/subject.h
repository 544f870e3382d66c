/* SPDX-License-Identifier: Apache-2.0 */
/* A random model that trains and a random batch: shared by the tests of gradients. What cannot be made fails the test. */
#pragma once
#include "model/gradients/gradients.h"
#include "tests/model/random/random_bert.h"

enum { MASKED = 60, ROWS = MASKED + SEQUENCES };
/* The targets of its batch. */
enum { SUBJECT_WORDS, SUBJECT_NEXT };

struct train_subject {
    struct engine *engine;
    struct train_state *state;
    struct gradients_workspace *workspace;
    struct batch tokens;
    struct train_batch batch; /* of these */
    int32_t offsets[SEQUENCES + 1];
    uint32_t sample[SEQUENCES], row[MASKED], label[MASKED];
    uint32_t first[SEQUENCES], next[SEQUENCES]; /* rows of next sentences, and their labels */
};

struct subject_options {
    const char *mask, *transform;
    enum element dtype;
    uint32_t threads;
    bool no_pairs;
    uint32_t parts; /* 0: those of words and next sentences */
    bool as_loaded; /* weights are not packed again */
};

/* Engines run on far_backend() (tests/train/far_memory.h) from here on. */
void subjects_are_far(void);
/* Engines run on that device from here on; null: the CPU. */
void subjects_are_on(const char *device);

/* The model of random_model(), which is there. Subjects of one seed have the same batch. */
void subject_begin(struct train_subject *s, const struct subject_options *o);
void subject_end(struct train_subject *s);

/* A request over the whole batch: no dropout, weights of the mean. */
struct gradients_request subject_request(const struct train_subject *s);
/* Clears the gradients and runs. */
struct batch_loss subject_run(struct train_subject *s, const struct gradients_request *r);
/* Between an array of the state and the host. */
void state_read(const struct train_state *s, const float *from, uint64_t count, float *ret);
void state_write(const struct train_state *s, float *to, uint64_t count, const float *value);
/* The state's gradient; the caller frees it. */
float *state_gradient(const struct train_state *s);
/* Multiplies each parameter by a random number from 0.9 to 1.1. */
void state_shake(const struct train_state *s);
/* The request's loss. */
double total_loss(const struct gradients_request *r, const struct batch_loss *l);
