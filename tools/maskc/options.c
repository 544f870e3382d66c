/* SPDX-License-Identifier: Apache-2.0 */
/* One table of options. A row says where its value goes and how it is read; argp's own table is
   made from the rows that a command takes, so that help and parser cannot differ. */
#include "tools/maskc/options.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "runtime/artifact/artifact.h"
#include "tools/maskc/command.h"
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { FLAG, TEXT, U32, U64, INDEX, REAL, LENGTHS };
enum group { GROUP_MASK = 1, GROUP_KERNEL, GROUP_LAUNCH, GROUP_OUTPUT, GROUP_END };
enum { KEY_BASE = 1000 }; /* argp key of row 0: above any character */

static const char *const group_title[] = {
    [GROUP_MASK] = "Mask:",
    [GROUP_KERNEL] = "Kernel:",
    [GROUP_LAUNCH] = "Launch:",
    [GROUP_OUTPUT] = "Output:",
};

struct row {
    const char *name;
    char letter; /* short option, or 0 */
    const char *argument;
    const char *help;
    enum group group;
    enum kind kind;
    size_t at;    /* in struct options */
    size_t given; /* flag to set in struct options; 0: none */
};

#define AT(field) offsetof(struct options, field)
/* clang-format off */
static const struct row rows[OPTION_COUNT] = {
    [OPTION_LENGTH]    = {"length", 'n', "N", "Length of the mask: needed by expressions and the gallery, crops a stored one", GROUP_MASK, LENGTHS, AT(length)},
    [OPTION_LENGTHS]   = {"length", 'n', "N,N", "Lengths, one result for each", GROUP_MASK, LENGTHS, AT(length)},
    [OPTION_HEADS]     = {"heads", 0, "H", "Repeat a one-head mask", GROUP_MASK, U32, AT(heads)},
    [OPTION_LAYER]     = {"layer", 0, "L", "One layer alone, counted from 0", GROUP_MASK, INDEX, AT(layer)},
    [OPTION_TENSOR]    = {"tensor", 0, "NAME", "Which tensor of a safetensors file", GROUP_MASK, TEXT, AT(tensor)},
    [OPTION_THRESHOLD] = {"threshold", 0, "T", "A float file is active where > T", GROUP_MASK, REAL, AT(threshold), AT(has_threshold)},
    [OPTION_KEEP]      = {"keep", 0, "P", "Keep the largest P percent of a float file, per head", GROUP_MASK, REAL, AT(keep), AT(has_keep)},
    [OPTION_DAM]       = {"dam", 0, 0, "The file holds DAM parameters: [H,n,2] logits per distance or [H,n,n] alpha", GROUP_MASK, FLAG, AT(dam)},
    [OPTION_BORDER]    = {"border", 0, 0, "With --dam: first and last row and column on", GROUP_MASK, FLAG, AT(border)},

    [OPTION_TARGET]    = {"target", 0, "T", "cpu, x86-64-v2, -v3, -v4, sm_80, sm_90a, compute_80, cuda; a comma list for compile (default cpu)", GROUP_KERNEL, TEXT, AT(target)},
    [OPTION_DTYPE]     = {"dtype", 0, "T", "f32, bf16, f16 or, on GPUs, tf32 (default f32)", GROUP_KERNEL, TEXT, AT(dtype)},
    [OPTION_DTYPES]    = {"dtype", 0, "T,T", "f32, bf16, f16, tf32 (default f32,bf16)", GROUP_KERNEL, TEXT, AT(dtype)},
    [OPTION_HEAD_DIM]  = {"head-dim", 0, "D", "16..256, a multiple of 8 (default 64)", GROUP_KERNEL, U32, AT(head_dim)},
    [OPTION_TRANSFORM] = {"transform", 0, "T", "softmax (default) or sparsegen=LAMBDA, LAMBDA < 1", GROUP_KERNEL, TEXT, AT(transform)},
    [OPTION_WITH_DROPOUT] = {"dropout", 0, 0, "The kernel can drop out probabilities", GROUP_KERNEL, FLAG, AT(with_dropout)},
    [OPTION_FORWARD_ONLY] = {"forward-only", 0, 0, "No backward pass", GROUP_KERNEL, FLAG, AT(forward_only)},
    [OPTION_SOFT]      = {"soft", 0, "KIND", "A soft mask X beside the mask, for learning one: bias (scores + X) or scale (probabilities * X)", GROUP_KERNEL, TEXT, AT(soft)},
    [OPTION_MACHINE]   = {"machine", 0, "NAME", "Row of the machine table that the plan is made for, or 'calibrated' (default: this machine as calibrated where it runs the target, else by target)", GROUP_KERNEL, TEXT, AT(machine)},

    [OPTION_BATCH]     = {"batch", 0, "B", "Sequences (default 1)", GROUP_LAUNCH, U32, AT(batch)},
    [OPTION_THREADS]   = {"threads", 0, "N", "CPU threads (default: all)", GROUP_LAUNCH, U32, AT(threads)},
    [OPTION_DEVICE]    = {"device", 0, "D", "cpu, cuda, cuda:1, emulated (default: what the file holds and the machine has)", GROUP_LAUNCH, TEXT, AT(device)},
    [OPTION_PASS]      = {"pass", 0, "P,P", "forward, backward (default both)", GROUP_LAUNCH, TEXT, AT(pass)},
    [OPTION_QUERY]     = {"query", 0, "Q.npy", "Queries [B,N,H,D], f32 or f64 (packed: [T,H,D])", GROUP_LAUNCH, TEXT, AT(query)},
    [OPTION_KEY]       = {"key", 0, "K.npy", "Keys, shaped alike", GROUP_LAUNCH, TEXT, AT(key)},
    [OPTION_VALUE]     = {"value", 0, "V.npy", "Values, shaped alike", GROUP_LAUNCH, TEXT, AT(value)},
    [OPTION_GRAD]      = {"grad", 0, "DO.npy", "Gradient of the output: runs backward too", GROUP_LAUNCH, TEXT, AT(grad)},
    [OPTION_SEQUENCE_LENGTHS] = {"lengths", 0, "L.npy", "Lengths [B] of right-padded sequences, i32 or i64", GROUP_LAUNCH, TEXT, AT(sequence_lengths)},
    [OPTION_OFFSETS]   = {"offsets", 0, "O.npy", "Offsets [B+1] of a packed batch, i32 or i64", GROUP_LAUNCH, TEXT, AT(offsets)},
    [OPTION_SCALE]     = {"scale", 0, "S", "Of the scores (default 1/sqrt(D))", GROUP_LAUNCH, REAL, AT(scale)},
    [OPTION_DROPOUT]   = {"dropout", 0, "P", "Probability, 0 <= P < 1; needs a kernel compiled with --dropout", GROUP_LAUNCH, REAL, AT(dropout)},
    [OPTION_SEED]      = {"seed", 0, "S", "Of the dropout", GROUP_LAUNCH, U64, AT(seed)},
    [OPTION_SOFT_ARRAY] = {"soft", 0, "X.npy", "Soft mask [H,n,n] of a kernel compiled with --soft, n the mask's length, f32 or f64", GROUP_LAUNCH, TEXT, AT(soft_array)},
    [OPTION_DIAGONALS] = {"diagonals", 0, 0, "With --soft and --grad: dsoft.npy is [H,2n-1], summed along diagonals, offset key - query = o at o + n - 1", GROUP_LAUNCH, FLAG, AT(diagonals)},

    [OPTION_OUTPUT]    = {"output", 'o', "PATH", "Where the result goes", GROUP_OUTPUT, TEXT, AT(output)},
    [OPTION_JSON]      = {"json", 0, 0, "JSON on stdout and nothing else", GROUP_OUTPUT, FLAG, AT(json)},
    [OPTION_SECONDS]   = {"seconds", 0, "S", "How long to measure (default 3)", GROUP_LAUNCH, REAL, AT(seconds)},
    [OPTION_TABLE]     = {"table", 0, 0, "Rows for the table of machines (gen/cost/machines.c)", GROUP_OUTPUT, FLAG, AT(table)},
    [OPTION_PLOT]      = {"plot", 0, "FILE.svg", "Draw the times", GROUP_OUTPUT, TEXT, AT(plot)},
};
/* clang-format on */

struct input {
    const struct command *command;
    struct options *options;
};

static bool read_u64(const char *text, uint64_t limit, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || v > limit)
        return false;
    *ret = v;
    return true;
}

static void read_lengths(struct argp_state *state, const char *text, struct options *o)
{
    char *copy = memory_text(text), *rest = copy;
    bool list = (((const struct input *)state->input)->command->options &
                 OPTION_BIT(OPTION_LENGTHS)) != 0;
    o->n_lengths = 0;
    for (char *word; (word = strsep(&rest, ","));) {
        uint64_t n = 0;
        if (!read_u64(word, PATTERN_MAX_N, &n) || !n)
            argp_error(state, "-n: '%s' is not a length in 1..%d", word, (int)PATTERN_MAX_N);
        if (o->n_lengths == (list ? OPTIONS_MAX_LENGTHS : 1))
            argp_error(state, "-n %s: %s", text,
                       list ? "too many lengths" : "one length is expected");
        o->length[o->n_lengths++] = (uint32_t)n;
    }
    free(copy);
}

static void read_value(struct argp_state *state, const struct row *r, char *text,
                       struct options *o)
{
    void *to = (char *)o + r->at;
    uint64_t whole = 0;
    char *end;
    switch (r->kind) {
    case FLAG:
        *(bool *)to = true;
        break;
    case TEXT:
        *(const char **)to = text;
        break;
    case U32:
        if (!read_u64(text, UINT32_MAX, &whole) || !whole)
            argp_error(state, "--%s: '%s' is not a whole number from 1", r->name, text);
        *(uint32_t *)to = (uint32_t)whole;
        break;
    case U64:
        if (!read_u64(text, UINT64_MAX, &whole))
            argp_error(state, "--%s: '%s' is not a whole number from 0", r->name, text);
        *(uint64_t *)to = whole;
        break;
    case INDEX:
        if (!read_u64(text, MASK_MAX_LAYERS - 1, &whole))
            argp_error(state, "--%s: '%s' is not a number in 0..%d", r->name, text,
                       MASK_MAX_LAYERS - 1);
        *(int64_t *)to = (int64_t)whole;
        break;
    case REAL:
        *(double *)to = strtod(text, &end);
        if (end == text || *end || !isfinite(*(double *)to))
            argp_error(state, "--%s: '%s' is not a number", r->name, text);
        break;
    case LENGTHS:
        read_lengths(state, text, o);
        break;
    }
    if (r->given)
        *(bool *)((char *)o + r->given) = true;
}

static int key_of(enum option_id id)
{
    return rows[id].letter ? rows[id].letter : KEY_BASE + (int)id;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    const struct input *in = state->input;
    struct options *o = in->options;
    for (int k = 0; k < OPTION_COUNT; k++)
        if (in->command->options & OPTION_BIT(k) && key == key_of(k)) {
            read_value(state, &rows[k], text, o);
            return 0;
        }
    if (key == ARGP_KEY_ARG) {
        if (o->n_arguments == in->command->max_arguments)
            argp_error(state, "unexpected argument '%s'", text);
        o->argument[o->n_arguments++] = text;
        return 0;
    }
    if (key == ARGP_KEY_END && o->n_arguments < in->command->min_arguments)
        argp_error(state, "%s is missing", in->command->arguments);
    return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}

/* The rows that the command takes, under their groups' titles. */
static void make_table(const struct command *c, struct argp_option *ret)
{
    enum group last = 0;
    for (int k = 0; k < OPTION_COUNT; k++) {
        const struct row *r = &rows[k];
        if (!(c->options & OPTION_BIT(k)))
            continue;
        if (r->group != last)
            *ret++ = (struct argp_option){.doc = group_title[r->group], .group = r->group};
        last = r->group;
        *ret++ = (struct argp_option){r->name, key_of(k), r->argument, 0, r->help, r->group};
    }
    *ret = (struct argp_option){0};
}

void options_parse(const struct command *command, int argc, char **argv, struct options *ret)
{
    struct argp_option table[OPTION_COUNT + GROUP_END + 1];
    make_table(command, table);
    struct text about = {0};
    text_add(&about, "%s.%s%s", command->summary, command->details ? "\v" : "",
             command->details ? command->details : "");
    /* An empty table, unlike none, leaks in glibc. */
    struct argp argp = {command->options ? table : NULL, parse, command->arguments,
                        text_get(&about)};
    char name[64];
    snprintf(name, sizeof name, "maskc %s", command->name);
    argv[0] = name;
    *ret = (struct options){.layer = -1};
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &(struct input){command, ret});
    text_finish(&about);
}

struct mask *options_mask(const struct options *o, const char *name, uint32_t n,
                          uint32_t default_heads, struct error *e)
{
    struct mask_request request = {
        .name = name,
        .n = n,
        .heads = o->heads,
        .layer = o->layer,
        .tensor = o->tensor,
        .dam = o->dam,
        .border = o->border,
        .has_threshold = o->has_threshold,
        .has_keep = o->has_keep,
        .threshold = o->threshold,
        .keep = o->keep,
    };
    struct mask *m = mask_load(&request, artifact_read_mask, e);
    if (!m || m->heads != 1 || o->heads || default_heads < 2)
        return m;
    struct mask *repeated = mask_repeat_heads(m, default_heads, e);
    mask_destroy(m);
    return repeated;
}

int options_features(const struct options *o, const char *dtype, struct features *ret,
                     struct error *e)
{
    *ret = (struct features){
        .head_dim = o->head_dim ? o->head_dim : 64,
        .dropout = o->with_dropout,
        .backward = !o->forward_only,
    };
    dtype = dtype ? dtype : o->dtype;
    if (dtype && dtype_parse(dtype, &ret->dtype, e))
        return -1;
    if (o->soft && soft_parse(o->soft, &ret->soft, e))
        return -1;
    return o->transform ? transform_parse(o->transform, ret, e) : 0;
}
