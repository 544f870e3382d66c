/* SPDX-License-Identifier: Apache-2.0 */
/* Models with random weights and batches of random tokens, and BERT in float64 over them: what the tests
   of the encoder share, whatever the device. What cannot be made fails the test. */
#pragma once
#include "tests/model/random/plain_bert.h"

enum { VOCABULARY = 50, POSITIONS = 70, SEQUENCES = 9 };

/* One table for all devices. */
struct bert_case {
    const char *name;
    uint32_t layers, hidden, heads;
    const char *act, *mask, *transform;
    double lambda;
    const char *type; /* "toy" (toy_arch.h), "distilbert"; null: BERT */
};
extern const struct bert_case bert_cases[]; /* ends with a null name */

/* A temporary folder for one model at a time; false: there is none. */
bool random_begin(void);
int random_end(void); /* 0: it is removed */
/* The same as fixtures of a group of cmocka tests. */
int random_setup(void **unused);
int random_teardown(void **unused);
extern char random_folder[];

/* Below `below`; the same numbers in every run. */
uint32_t random_draw(uint32_t below);
/* Draws from the beginning again, so that a test's numbers do not depend on the tests before it. */
void random_restart(void);
/* Biases and norms are random too. */
void random_model(uint32_t layers, uint32_t hidden, uint32_t heads, uint32_t types,
                  const char *act);
/* The same with a pooler and a classifier of LABELS labels. */
enum { LABELS = 5 };
void random_classifier(uint32_t layers, uint32_t hidden, uint32_t heads, const char *act);

/* The case's. */
void random_model_of(const struct bert_case *c);
/* The same as a class of transformers with so many labels. */
void random_head(const struct bert_case *c, const char *class, uint32_t labels);

struct batch {
    uint32_t token_ids[SEQUENCES][POSITIONS];
    struct sequence list[SEQUENCES];
};
/* Lengths from 1 to POSITIONS, pairs among them. */
void batch_make(struct batch *b);
/* No pairs where the model has one type. */
void batch_suit(struct batch *b, const struct model_config *c);
uint32_t batch_tokens(const struct batch *b);

/* By name; null: the model's own. */
struct mask *random_mask(const char *mask, const struct model_config *c, struct error *e);
/* All rows of the last hidden states as f32; caller frees. */
float *workspace_rows(const struct engine *g, struct engine_workspace *workspace);
void batch_encode(const struct engine *g, const struct sequence *list, uint32_t n,
                  struct engine_workspace *workspace);
float *batch_rows(const struct engine *g, const struct sequence *list, uint32_t n);
/* The same in float64. */
double *plain_rows(const struct engine *g, const char *mask, const char *transform,
                   double lambda, const struct batch *b);

/* Checks errors relative to the largest value and to the root mean square. NaN fails both. */
void must_be_close(const char *name, const float *ours, const double *truth, size_t count,
                   double worst_allowed, double rms_allowed);
/* The largest difference; NaN where there is one. */
double worst_of(const float *a, const float *b, size_t count);
