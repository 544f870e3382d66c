/* SPDX-License-Identifier: Apache-2.0 */
/* The options of all commands of maskc: one table (options.c) is parser and --help alike; a command says
   which rows of it it takes. */
#pragma once
#include "gen/target.h"
#include "masks/input/load.h"
#include "tools/common/program.h"
#include <stdbool.h>
#include <stdint.h>

/* Rows of the table. Two rows may share a name where commands mean different things by it. */
enum option_id {
    /* the mask */
    OPTION_LENGTH,  /* -n N */
    OPTION_LENGTHS, /* -n N,N */
    OPTION_HEADS,
    OPTION_LAYER,          /* one layer of the mask */
    OPTION_LAYER_LAUNCHED, /* the same, of run and bench, which launch one */
    OPTION_HEAD,
    OPTION_TENSOR,
    OPTION_THRESHOLD,
    OPTION_KEEP,
    OPTION_DAM,
    OPTION_BORDER,
    OPTION_HOPS,
    OPTION_ORDER,
    /* the kernel */
    OPTION_TARGET,
    OPTION_DTYPE,
    OPTION_DTYPES,
    OPTION_HEAD_DIM,
    OPTION_TRANSFORM,
    OPTION_WITH_DROPOUT, /* --dropout, a flag */
    OPTION_FORWARD_ONLY,
    OPTION_KV_HEADS,
    OPTION_KV_LENGTH,
    OPTION_ALIGN,
    OPTION_BIAS, /* --soft bias|scale */
    OPTION_MACHINE,
    OPTION_FAMILY,
    /* what snap looks for */
    OPTION_BUDGET,
    OPTION_BUDGET_US,
    OPTION_RETAIN,
    OPTION_OBJECTIVE,
    OPTION_UNIFORM,
    OPTION_KEEP_ROWS,
    OPTION_MEASURE,
    /* how order looks for one */
    OPTION_METHOD,
    OPTION_COORDINATES,
    /* the launch */
    OPTION_BATCH,
    OPTION_THREADS,
    OPTION_CLOCK,
    OPTION_DEVICE,
    OPTION_PASS,
    OPTION_QUERY,
    OPTION_KEY,
    OPTION_VALUE,
    OPTION_GRAD,
    OPTION_SEQUENCE_LENGTHS, /* --lengths FILE */
    OPTION_OFFSETS,
    OPTION_SCALE,
    OPTION_DROPOUT,          /* --dropout P */
    OPTION_DROPOUT_MEASURED, /* the same, of bench */
    OPTION_SEED,
    OPTION_SAMPLES,
    OPTION_BIAS_ARRAY, /* --soft FILE */
    OPTION_DIAGONALS,
    /* the output */
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_WIDE,
    OPTION_PLOT,
    OPTION_COLUMNS,
    OPTION_TABLE,
    OPTION_MARKDOWN,
    OPTION_SECONDS,
    OPTION_SECONDS_EACH,
    OPTION_MEASURE_PLANS, /* --measure-plans K, of bench */
    OPTION_MEASURED,      /* --measured: what that stored */
    OPTION_COUNT
};

#define OPTIONS_MASK_ONE                                                               \
    (OPTION_BIT(OPTION_HEADS) | OPTION_BIT(OPTION_LAYER) | OPTION_BIT(OPTION_TENSOR) | \
     OPTION_BIT(OPTION_THRESHOLD) | OPTION_BIT(OPTION_KEEP) | OPTION_BIT(OPTION_DAM) | \
     OPTION_BIT(OPTION_BORDER) | OPTION_BIT(OPTION_HOPS) | OPTION_BIT(OPTION_ORDER))
#define OPTIONS_MASK (OPTION_BIT(OPTION_LENGTH) | OPTIONS_MASK_ONE)
#define OPTIONS_KERNEL                                                                    \
    (OPTION_BIT(OPTION_TARGET) | OPTION_BIT(OPTION_DTYPE) | OPTION_BIT(OPTION_HEAD_DIM) | \
     OPTION_BIT(OPTION_TRANSFORM) | OPTION_BIT(OPTION_WITH_DROPOUT) |                     \
     OPTION_BIT(OPTION_FORWARD_ONLY) | OPTION_BIT(OPTION_BIAS) | OPTION_BIT(OPTION_MACHINE))
#define OPTIONS_KEYS \
    (OPTION_BIT(OPTION_KV_HEADS) | OPTION_BIT(OPTION_KV_LENGTH) | OPTION_BIT(OPTION_ALIGN))

enum { OPTIONS_MAX_LENGTHS = 32, OPTIONS_MAX_ARGUMENTS = 64 };

extern const struct option_row option_rows[OPTION_COUNT];
extern const char *const option_titles[];

/* Options as given. Missing ones are zero or null (layer, head: -1), and the command sets their defaults. */
struct options {
    const char *argument[OPTIONS_MAX_ARGUMENTS]; /* MASK, FILE.mkb, list|clear */
    uint32_t n_arguments;

    uint32_t length[OPTIONS_MAX_LENGTHS], n_lengths;
    uint32_t heads;
    int64_t layer, head;
    const char *tensor;
    double threshold, keep;
    bool has_threshold, has_keep, has_hops, has_scale, dam, border;
    uint32_t hops;
    const char *order, *method, *coordinates;

    const char *target, *dtype, *transform, *machine, *family;
    struct calibration *calibration; /* stored for this machine, or null; main's */
    uint32_t head_dim;
    bool with_dropout, forward_only;
    const char *bias; /* of --soft: bias or scale */
    uint32_t kv_heads, kv_length;
    const char *align; /* start or end */

    uint32_t
        model_heads; /* of the model whose folder holds the mask: a one-head mask is repeated to these; 0: none */
    char *model_note; /* what that folder's files gave, and which files; or null. Owned */

    double budget, budget_us, retain; /* snap */
    bool has_budget, has_budget_us, has_retain, uniform, keep_rows;
    const char *objective;
    uint32_t measure;

    uint32_t batch, threads;
    const char *device, *pass, *clock;
    const char *query, *key, *value, *grad, *sequence_lengths, *offsets, *samples;
    double scale, dropout, seconds;
    uint64_t seed;
    const char *bias_array;
    bool diagonals, has_seconds;

    const char *output, *plot;
    bool wide;
    uint32_t columns;
    bool json, table, markdown;
    uint32_t measure_plans;
    bool measured;
};

/* Request by the options for the mask named `name`, at length n (0: its own). */
struct mask_request options_mask_request(const struct options *o, const char *name, uint32_t n);

/* The mask named `name` as the options say, at length n (0: its own). A one-head mask is repeated to
   `default_heads` (0: left as it is) where --heads was not given. Null with *e set on failure. */
struct mask *options_mask(const struct options *o, const char *name, uint32_t n,
                          uint32_t default_heads, struct error *e);

/* Head dim and dtype that were not given, and with `heads` the model's heads, from config.json and run.json beside the
   mask's file; nothing where these are not a model's. Sets o->model_note. */
int options_take_model(struct options *o, const char *mask, bool heads, struct error *e);

/* The heads that a one-head mask is repeated to without --heads. */
uint32_t options_heads(const struct options *o, uint32_t default_heads);

/* dtype, head dim (64), transform, dropout, backward, bias; `dtype` null: --dtype, else f32. */
int options_request(const struct options *o, const char *dtype, struct kernel_request *ret,
                    struct error *e);

/* A mask for so many queries, and the request that says what shape K and V have beside it; `name` and n as above.
   Null with *e set. */
struct mask *options_kernel_mask(const struct options *o, const char *name, uint32_t n,
                                 uint32_t default_heads, struct kernel_request *request,
                                 struct error *e);

/* --clock cpu: times are the thread's own. The check refuses another word, and cpu with more than one thread. */
bool options_own_clock(const struct options *o);
int options_check_clock(const struct options *o, struct error *e);
/* Refuses --seconds of 0 and below. */
int options_check_seconds(const struct options *o, struct error *e);
