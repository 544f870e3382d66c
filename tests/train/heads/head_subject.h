/* SPDX-License-Identifier: Apache-2.0 */
/* A random model with one head and a random batch for its loss. */
#pragma once
#include "tests/train/gradients/plain_loss.h"
#include "tests/train/subject.h"

enum { GROUP = 3, HEAD_ROWS = SEQUENCES * POSITIONS };

struct head_case {
    const char *name, *class;
    const char *type; /* model_type; null: bert */
    uint32_t labels;
    enum target_head head;
    enum target_loss_kind loss;
};
extern const struct head_case head_cases[]; /* ends with a null name */
const struct head_case *head_case(const char *name);

struct head_subject {
    struct train_subject base;
    struct mask *mask;
    uint32_t row[HEAD_ROWS], label[HEAD_ROWS];
    float value[HEAD_ROWS];
};

void head_begin(struct head_subject *s, const struct head_case *c, enum element dtype,
                uint32_t threads);
void head_end(struct head_subject *s);
/* The same batch, for an engine with other threads. */
void head_lend(struct head_subject *to, const struct head_subject *from);

/* The weights of means; hidden and attention's dropout are 0. */
struct gradients_request head_request(const struct head_subject *s, double head_dropout);
struct plain_bert head_plain(const struct head_subject *s);
/* The factors of a request's dropout before the head (plain_loss()). Caller frees. */
float *head_kept(const struct gradients_request *r);
