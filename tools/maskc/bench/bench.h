/* SPDX-License-Identifier: Apache-2.0 */
/* Results of bench for its printers: table, JSON, figure. */
#pragma once
#include "gen/plan/plan.h"
#include "masks/base/error.h"
#include "runtime/load/load.h"
#include "runtime/pipeline/calibration.h"
#include "tools/maskc/options.h"
#include "tools/reference/check.h"
#include <jansson.h>
#include <stdint.h>

struct bench_result {
    char mask[64], lowering[96], reason[sizeof((struct plan_summary *)0)->reason];
    uint32_t length, keys, heads, batch, head_dim; /* length: queries */
    uint32_t layer;                                /* that was launched, as the mask counts */
    bool one_layer; /* the mask has others, or --layer named this one */
    enum abi_dtype dtype;
    bool backward;
    double sparsity;                                  /* percent, all heads of the layer */
    double median, p10, p90, dense, predicted, floor; /* seconds */
    double dense_predicted;
    uint32_t dense_length, dense_keys; /* that dense was measured at; of others it is
                                          extrapolated */
    double hard;                       /* without the bias; 0: there is none */
    double dropout;                    /* the probability */
    double kept;                       /* compiled without dropout; 0: there is none */
    char machine[32];                  /* that the prediction is for */
    double cpu_share;                  /* of the time that the threads ran; 1 on a GPU */
};

enum { BENCH_SIZE = 24 };
/* "512", or "1x4096" for other numbers of queries and keys. */
void bench_size(uint32_t queries, uint32_t keys, char ret[BENCH_SIZE]);
/* Percent of the layer's entries that are off. */
double bench_sparsity(const struct problem *p);
/* Problem that bench launches. */
struct problem bench_problem(const struct options *o, const struct mask *m,
                             const struct kernel_request *r, uint32_t layer);
/* Sets the numbers of queries and keys from the request. */
void bench_problem_lengths(struct problem *p, const struct kernel_request *r);

/* Input of predictions. */
struct bench_prediction {
    const struct maskc_kernel *ours, *dense;
    const struct calibration *calibration; /* or null */
    uint32_t layer, threads;
    double times; /* as many entries as the dense kernel's, which may be of another length */
};
/* Fills in what is predicted, and how our kernel visits its mask. */
int bench_predict(const struct bench_prediction *x, struct bench_result *r, struct error *e);
/* The length that dense is measured at: ours, or the longest that is a half, a quarter .. of it and fits `seconds`. */
int bench_dense_length(const struct bench_prediction *x, uint32_t batch, bool backward,
                       double seconds, uint32_t *ret, struct error *e);
/* The plan in a kernel's file: new, or null with *e set. */
struct plan *bench_plan(const struct maskc_kernel *k, const struct calibration *calibration,
                        struct error *e);

/* The line about a busy machine, or nothing. */
void bench_say_busy(uint32_t threads, const struct bench_result *result, uint32_t count);
/* wide: all figures in one table of any width. */
void bench_print_table(const char *device, uint32_t threads, const struct bench_result *result,
                       uint32_t count, bool wide);
/* Output of --json; a new reference. */
json_t *bench_json(const char *device, uint32_t threads, const struct bench_result *result,
                   uint32_t count);
