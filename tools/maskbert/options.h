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
    OPTION_START,
    OPTION_SEED,
    OPTION_OFFSETS,
    OPTION_MAX_LENGTH,
    OPTION_COMPAT,
    OPTION_THREADS,
    OPTION_JSON,
    OPTION_INPUT,
    OPTION_POOLING,
    OPTION_NORMALIZE,
    OPTION_PROMPT,
    OPTION_PROMPT_NAME,
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
    OPTION_DATA,
    OPTION_RUN, /* -o RUN */
    OPTION_STEPS,
    OPTION_RUN_TOKENS, /* --tokens N */
    OPTION_MINUTES,
    OPTION_TRAIN_BATCH,
    OPTION_ACCUMULATE,
    OPTION_RATE,
    OPTION_SCHEDULE,
    OPTION_WARMUP,
    OPTION_OPTIMIZER,
    OPTION_NO_BIAS_CORRECTION,
    OPTION_BETAS,
    OPTION_EPS,
    OPTION_WEIGHT_DECAY,
    OPTION_CLIP,
    OPTION_DROPOUT,
    OPTION_ATTENTION_DROPOUT,
    OPTION_RECOMPUTE,
    OPTION_SAVE_EVERY,
    OPTION_KEEP_STATES, /* --keep N */
    OPTION_EVAL_EVERY,
    OPTION_GOES_ON,
    OPTION_NOT_BITWISE,
    OPTION_RANKS,
    OPTION_RENDEZVOUS,
    OPTION_ZERO,
    OPTION_NO_GRAPHS,
    OPTION_OVERFIT,
    OPTION_SAVE_GRADIENTS,
    OPTION_OBJECTIVE,
    OPTION_MLM_PROBABILITY,
    OPTION_WHOLE_WORD,
    OPTION_MORE_POSITIONS, /* --positions of a run */
    OPTION_DROP,
    OPTION_REPEATS,
    OPTION_PLOT_X,
    OPTION_PLOT_Y,
    OPTION_COLUMNS,
    OPTION_STEP_LENGTH, /* -n of its sequences */
    OPTION_MEASURE,
    OPTION_LEARN_MASK,
    OPTION_DAM_CODE,
    OPTION_PER_LAYER,
    OPTION_SYMMETRIC,
    OPTION_LAMBDA,
    OPTION_TAU,
    OPTION_SOFT_SAMPLE,
    OPTION_LEAK,
    OPTION_MASK_SCALE,
    OPTION_MASK_RATE,       /* --mask-lr */
    OPTION_MASK_RATE_RATIO, /* --mask-lr-ratio */
    OPTION_BI_LEVEL,
    OPTION_SNAP,
    OPTION_SETTLE,
    OPTION_THRESHOLD,
    OPTION_ALPHA,
    OPTION_IMPORTANCE,
    OPTION_FILM,
    OPTION_SAVE_IMPORTANCE, /* --save P.npy */
    OPTION_SHARES,          /* --snap SHARE[,SHARE..] */
    OPTION_PICTURE,
    OPTION_PRICED_BATCH, /* --batch of the times */
    OPTION_ONE_LAYER,    /* --layer, --head of a picture of one */
    OPTION_ONE_HEAD,
    OPTION_TASK,
    OPTION_TASK_DATA, /* --data FOLDER of a task */
    OPTION_EPOCHS,
    OPTION_SEEDS,
    OPTION_GRID,
    OPTION_LAYER_DECAY,
    OPTION_STRIDE,
    OPTION_REGRESSION,
    OPTION_NULL_THRESHOLD,
    OPTION_CSV,
    OPTION_PREDICTIONS,
    OPTION_NBEST,
    OPTION_SPLIT_NAME, /* --split dev|test */
    OPTION_TUNE_RATE,  /* --lr with another default */
    OPTION_TUNE_WARMUP,
    OPTION_COUNT
};

extern const struct option_row option_rows[OPTION_COUNT];
extern const char *const option_titles[];

enum { MAX_ARGUMENTS = 4096 };

/* Options as given. Missing ones are zero or null, and the command sets their defaults. */
struct options {
    union {
        const char *argument; /* DIR, or null */
        const char *arguments[MAX_ARGUMENTS];
    };
    uint32_t n_arguments;
    const char *output, *dtype, *mask, *transform, *size, *vocabulary, *compat;
    const char *input, *pooling, *prompt, *prompt_name, *device, *layer, *head, *keep, *lengths,
        *host, *pairing, *start;
    uint32_t positions, min_frequency, max_length, threads, batch_tokens, top, batch, length,
        dupe;
    uint16_t port;
    double deviation, seconds; /* 0: the default */
    double short_share, held_out;
    uint64_t seed;
    bool cased, offsets, json, normalize, drop_diagonal, random, port_given;
    bool split, stats, short_given, held_out_given;
    const char *data, *schedule, *optimizer, *betas, *recompute, *save_gradients, *objective,
        *drop, *x, *y, *importance, *save, *snap, *picture;
    uint32_t accumulate, keep_states, repeats, ranks, columns;
    uint64_t steps, tokens, save_every, eval_every;
    double minutes, rate, warmup, eps, weight_decay, clip, dropout, attention_dropout,
        mlm_probability;
    bool measure, no_bias_correction, goes_on, not_bitwise, overfit, zero, no_graphs,
        whole_word;
    bool steps_given, tokens_given, minutes_given, rate_given, warmup_given, eps_given,
        weight_decay_given, clip_given, dropout_given, attention_dropout_given,
        mlm_probability_given, save_every_given, seed_given;
    const char *rendezvous;
    const char *learn_mask, *tau, *alpha;
    uint64_t settle;
    double settle_share, threshold, lambda, mask_scale, mask_rate, mask_rate_ratio;
    bool film, dam_code, per_layer, symmetric, relaxed, leaks, bi_level;
    const char *task, *grid, *predictions, *nbest, *part;
    uint32_t seeds, stride;
    double epochs, layer_decay, null_threshold;
    bool regression, csv, epochs_given, layer_decay_given, null_threshold_given;
    bool settle_share_given, threshold_given, settle_given, lambda_given, mask_scale_given,
        mask_rate_given, mask_rate_ratio_given;
};
