/* SPDX-License-Identifier: Apache-2.0 */
/* A MASK argument with its options. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct mask_request {
    const char *name;   /* the MASK argument */
    uint32_t n;         /* -n, 0: not given */
    uint32_t heads;     /* --heads, 0: not given; repeats a one-head mask */
    int64_t layer;      /* --layer, -1: all */
    const char *tensor; /* --tensor, or null */
    bool dam, border;   /* --dam, --border */
    bool has_threshold, has_keep;
    bool has_hops; /* --hops: the mask is a graph, whose nodes see those within `hops` steps */
    uint32_t hops;
    const char *order;      /* --order FILE.npy, or null: position p holds token order[p] */
    const uint32_t *tokens; /* the order in memory, or null: [n_tokens] */
    uint32_t n_tokens;
    double threshold, keep; /* active where > threshold; keep percent per head */
};

#define MASK_REQUEST_DEFAULTS .layer = -1
