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
    OPTION_WORDS,       /* --vocab FILE|DIR */
    OPTION_PREP_LENGTH, /* --length N of samples */
    OPTION_PAIRING,
    OPTION_SHORT,
    OPTION_DUPE,
    OPTION_HELD_OUT,
    OPTION_JOBS,
    OPTION_SPLIT,
    OPTION_STATS,
    OPTION_HOST,
    OPTION_PORT,
    OPTION_STEP_BATCH,  /* --batch of a step */
    OPTION_STEP_LENGTH, /* -n of its sequences */
    OPTION_ACCUMULATE,
    OPTION_RECOMPUTE,
    OPTION_MEASURE,
    OPTION_COUNT
};

extern const struct option_row option_rows[OPTION_COUNT];

enum { MAX_ARGUMENTS = 4096 };

/* As given. What was not given is zero or null, and the command has a default for it. */
struct options {
    union {
        const char *argument; /* DIR, or null */
        const char *arguments[MAX_ARGUMENTS];
    };
    uint32_t n_arguments;
    const char *output, *dtype, *mask, *transform, *size, *vocabulary, *compat;
    const char *input, *pooling, *device, *layer, *head, *keep, *lengths, *host, *pairing,
        *recompute;
    uint32_t positions, min_frequency, max_length, threads, batch_tokens, top, batch, length,
        dupe, accumulate;
    uint16_t port;
    double deviation, seconds; /* 0: the default */
    double short_share, held_out;
    uint64_t seed;
    bool cased, offsets, json, normalize, drop_diagonal, random, port_given;
    bool split, stats, short_given, held_out_given, measure;
};
