/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as threads of this process, each with a trainer of a random model. */
#pragma once
#include "model/train/step/trainer.h"
#include <pthread.h>

/* The last step's batch reaches over the end of an epoch of 40 samples. */
enum { MOST_RANKS = 4, STEPS = 4, BATCH = 7, FIRST_STEP = 3 };

struct meeting {
    pthread_barrier_t barrier;
    uint32_t ranks;
    bool poisons_last;   /* a parameter of the last rank is NaN */
    bool loses_bias;     /* the last rank cannot read the gradient of the mask's bias */
    bool shares_moments; /* --zero */
    void *array[MOST_RANKS];
    struct comm_move move[MOST_RANKS];
    uint64_t sent; /* floats that rank 0 gave away */
    uint64_t sums; /* how many there were */
};

struct rank {
    struct comm comm;
    const char *device; /* null: the CPU */
    struct run_options options;
    struct trainer trainer;
    struct step_result step[STEPS];
    struct evaluation held_out; /* before the first step */
    float *gradient[STEPS];
    float *d_alpha[STEPS];
    int result;
    struct error error;
};

void must(int r, const struct error *e);
void rank_begin(struct rank *r, const struct learn_options *learn);
void rank_end(struct rank *r);
void *rank_run(void *rank);  /* an evaluation and STEPS steps */
void *rank_save(void *rank); /* run_save() of step 7, in no folder; rank_save.c */
/* Calls body(&rank[k]) in a thread for each of m->ranks. */
void run_threads(struct rank rank[MOST_RANKS], struct meeting *m, void *(*body)(void *rank));
/* Begins and runs m->ranks of them, with the batch in so many parts. */
void run_ranks(struct rank rank[MOST_RANKS], uint32_t parts, const struct learn_options *learn,
               struct meeting *m);
