/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of every parameter against differences of a loss. A parameter is moved along a random direction; its gradient
   says how the loss moves. */
#pragma once
#include "tests/train/subject.h"

typedef double loss_function(void *context, const struct gradients_request *r);

struct difference {
    float distance;
    double tolerance, noise; /* a part of the gradient; and of the loss */
    loss_function *loss;
    void *context;
};

/* Every third parameter is moved from here on, others in each case: with sanitizers, which look at the pass that computes
   all gradients. Other builds say of each gradient whether it is right. */
void differences_are_few(void);
/* The state has the gradients of the request. */
void gradients_must_fit(const char *name, const struct gradients_request *r,
                        const struct difference *d);
/* Our own loss in f32; context: the train_subject. */
loss_function own_loss;
