/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate of each step. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* After the warm-up, where t goes from 0 to 1 over what is left of the run (poly: over the whole run): */
enum schedule_decay {
    SCHEDULE_LINEAR,   /* 1 - t */
    SCHEDULE_POLY,     /* (1 - t)^0.5, as NVIDIA's BERT */
    SCHEDULE_COSINE,   /* (1 + cos(pi t)) / 2 */
    SCHEDULE_CONSTANT, /* 1 */
    SCHEDULE_COUNT,
};

struct schedule {
    enum schedule_decay decay;
    double peak;
    double warmup; /* steps; below 1: this share of all steps, rounded to nearest */
    uint64_t steps;
};

const char *schedule_name(enum schedule_decay d);                /* "linear" */
bool schedule_parse(const char *name, enum schedule_decay *ret); /* false: no such */
uint64_t schedule_warmup_steps(const struct schedule *s);        /* at most all */

/* step counts from 1. The warm-up is peak * step / its steps, and reaches the peak; the step after it has the peak
   again (poly: what NVIDIA's curve has there). No step within the run has rate 0; those after it have, unless
   constant. */
double schedule_rate(const struct schedule *s, uint64_t step);
