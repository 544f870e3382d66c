/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the server, as Prometheus reads them. Any thread may count. */
#pragma once
#include "masks/base/text.h"
#include <stdatomic.h>
#include <stdint.h>

enum {
    METRIC_PATHS = 12,
    METRIC_CODES = 9, /* see metric_codes */
    METRIC_BUCKETS = 10
};
extern const unsigned metric_codes[METRIC_CODES];  /* the last one counts all others */
extern const double metric_bounds[METRIC_BUCKETS]; /* seconds */

struct metrics {
    _Atomic uint64_t requests[METRIC_PATHS][METRIC_CODES];
    _Atomic uint64_t bucket[METRIC_BUCKETS + 1], microseconds, answered;
    _Atomic uint64_t texts, tokens, batches;
};

void metrics_request(struct metrics *m, unsigned path, unsigned code);
/* From a request's headers to its reply. */
void metrics_time(struct metrics *m, double seconds);
void metrics_print(struct metrics *m, const char *const *paths, uint64_t waiting,
                   struct text *out);
