/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: masks and lengths that together contain every unit of work that plans count. */
#pragma once
#include "gen/plan/plan.h"
#include <stdbool.h>

/* Kind of piece that a probe's plan favours, regardless of current prices. */
enum favour { AS_IT_IS, TILES, LINES, GATHERS, ROWS, MIXED };

struct probe {
    const char *mask;
    uint32_t n;
    enum favour favour;
    bool single;       /* GPU: one sequence instead of a batch that fills it */
    bool bias;         /* with a bias; only if a bias is requested */
    uint32_t head_dim; /* 0: MICROBENCH_HEAD_DIM */
};

enum { PROBES_MOST = 72, BIAS_LONGEST = 512, PROBE_LONGEST = 4096 };

/* The probes for a kind of machine, *ret_count of them. lines: also those of GPU kernels that walk lines; bias: also those
   with a bias (CPU). */
const struct probe *probe_table(enum target_kind kind, bool lines, bool bias,
                                uint32_t *ret_count);

/* Sets ret[] to the coefficient of each rate in the predicted seconds of a GPU pass, without launches. Work is spread over
   workers as plan_spread() predicts; byte terms are divided among all workers. Returns the seconds that depend on no rate
   (bytes only). */
double probe_gpu_terms(const struct plan *p, enum machine_pass pass, uint32_t batch,
                       double ret[RATES]);

/* A copy of the machine with rates scaled so that plans choose the favoured kind. */
struct machine probe_machine(const struct machine *row, enum favour favour);
