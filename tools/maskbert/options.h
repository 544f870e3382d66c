/* SPDX-License-Identifier: Apache-2.0 */
/* The options of all commands of maskbert. One table (options.c) is both parser and --help; a command names
   the rows that it takes. */
#pragma once
#include "tools/common/program.h"

enum option_id {
    OPTION_OUTPUT,
    OPTION_DTYPE,
    OPTION_MASK,
    OPTION_TRANSFORM,
    OPTION_POSITIONS,
    OPTION_SIZE,
    OPTION_TOKENS, /* --size V */
    OPTION_CASED,
    OPTION_MIN_FREQUENCY,
    OPTION_VOCABULARY,
    OPTION_DEVIATION,
    OPTION_SEED,
    OPTION_OFFSETS,
    OPTION_MAX_LENGTH,
    OPTION_COMPAT,
    OPTION_THREADS,
    OPTION_JSON,
    OPTION_INPUT,
    OPTION_POOLING,
    OPTION_NORMALIZE,
    OPTION_RUN_DTYPE,     /* --dtype of activations */
    OPTION_RUN_TRANSFORM, /* --transform of a run */
    OPTION_DEVICE,
    OPTION_BATCH_TOKENS,
    OPTION_TOP,
    OPTION_LAYER,
    OPTION_HEAD,
    OPTION_KEEP,
    OPTION_DROP_DIAGONAL,
    OPTION_RANDOM,
    OPTION_BATCH,
    OPTION_LENGTH,
    OPTION_LENGTHS,
    OPTION_SECONDS,
    OPTION_HOST,
    OPTION_PORT,
    OPTION_COUNT
};

extern const struct option_row option_rows[OPTION_COUNT];

/* As given. What was not given is zero or null, and the command has a default for it. */
struct options {
    const char *argument; /* DIR, or null */
    uint32_t n_arguments;
    const char *output, *dtype, *mask, *transform, *size, *vocabulary, *compat;
    const char *input, *pooling, *device, *layer, *head, *keep, *lengths, *host;
    uint32_t positions, min_frequency, max_length, threads, batch_tokens, top, batch, length;
    uint16_t port;
    double deviation, seconds; /* 0: the default */
    uint64_t seed;
    bool cased, offsets, json, normalize, drop_diagonal, random, port_given;
};
