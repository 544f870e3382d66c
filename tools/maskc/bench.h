/* SPDX-License-Identifier: Apache-2.0 */
/* What bench measures, for its printers: table, JSON, plot. */
#pragma once
#include "gen/plan/plan.h"
#include "masks/base/error.h"
#include <stdint.h>

struct bench_result {
    char mask[64], lowering[96], reason[sizeof((struct plan_summary *)0)->reason];
    uint32_t length, heads, batch, head_dim;
    enum abi_dtype dtype;
    bool backward;
    double sparsity;                                  /* percent, all heads of the layer */
    double median, p10, p90, dense, predicted, floor; /* seconds */
    double dense_predicted;
    double hard;      /* without the bias; 0: there is none */
    double dropout;   /* the probability */
    double kept;      /* compiled without dropout; 0: there is none */
    char machine[32]; /* that the prediction is for */
};

void bench_print_table(const char *device, uint32_t threads, const struct bench_result *result,
                       uint32_t count);
void bench_print_json(const char *device, uint32_t threads, const struct bench_result *result,
                      uint32_t count);

/* .svg or .png: time over length in log-log, or bars where there is one length. */
int bench_plot(const struct bench_result *r, uint32_t count, const char *path, struct error *e);
