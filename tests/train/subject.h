/* SPDX-License-Identifier: Apache-2.0 */
/* A random model that trains and a random batch: shared by the tests of gradients. What cannot be made fails the test. */
#pragma once
#include "model/gradients/gradients.h"
#include "tests/model/random/random_bert.h"

enum { MASKED = 60 };

struct train_subject {
    struct engine *engine;
    struct train_state *state;
    struct gradients_workspace *workspace;
    struct batch tokens;
    struct train_batch batch; /* of these */
    int32_t offsets[SEQUENCES + 1];
    uint32_t sample[SEQUENCES], row[MASKED], label[MASKED];
    uint8_t next[SEQUENCES];
};

struct subject_options {
    const char *mask, *transform;
    enum element dtype;
    uint32_t threads;
    bool no_pairs;
    bool as_loaded; /* weights are not packed again */
};

/* The model of random_model(), which is there. Subjects of one seed have the same batch. */
void subject_begin(struct train_subject *s, const struct subject_options *o);
void subject_end(struct train_subject *s);

/* A request over the whole batch: no dropout, weights of the mean. */
struct gradients_request subject_request(const struct train_subject *s);
/* Clears the gradients and runs. */
struct batch_loss subject_run(struct train_subject *s, const struct gradients_request *r);
/* The request's loss. */
double total_loss(const struct gradients_request *r, const struct batch_loss *l);
