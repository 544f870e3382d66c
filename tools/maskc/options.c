/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options (tools/common/program.h), and what masks and kernels are made of them. */
#include "tools/maskc/options.h"
#include "gen/key_shape.h"
#include "masks/base/memory.h"
#include "runtime/artifact/artifact.h"
#include "tools/maskc/command.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum group {
    GROUP_COMMON = 1,
    GROUP_MASK,
    GROUP_SNAP,
    GROUP_KERNEL,
    GROUP_LAUNCH,
    GROUP_OUTPUT
};

const char *const option_titles[] = {
    [GROUP_COMMON] = "Most used:",        [GROUP_MASK] = "Mask:",
    [GROUP_SNAP] = "What is looked for:", [GROUP_KERNEL] = "Kernel:",
    [GROUP_LAUNCH] = "Launch:",           [GROUP_OUTPUT] = "Output:",
};

static int read_lengths_most(const char *text, uint32_t most, struct options *ret,
                             struct error *e)
{
    char *copy = memory_text(text), *rest = copy;
    int r = 0;
    ret->n_lengths = 0;
    for (char *word; r == 0 && (word = strsep(&rest, ","));) {
        uint64_t n = 0;
        if (!whole_number(word, PATTERN_MAX_N, &n) || !n)
            r = error_set(e, ERROR_INPUT, "-n: '%s' is not a length in 1..%d", word,
                          (int)PATTERN_MAX_N);
        else if (ret->n_lengths == most)
            r = error_set(e, ERROR_INPUT, "-n %s: %s", text,
                          most > 1 ? "too many lengths" : "one length is expected");
        else
            ret->length[ret->n_lengths++] = (uint32_t)n;
    }
    free(copy);
    return r;
}

static int read_length(const char *text, struct options *ret, struct error *e)
{
    return read_lengths_most(text, 1, ret, e);
}

static int read_lengths(const char *text, struct options *ret, struct error *e)
{
    return read_lengths_most(text, OPTIONS_MAX_LENGTHS, ret, e);
}

static int read_layer(const char *text, struct options *ret, struct error *e)
{
    uint64_t layer;
    if (!whole_number(text, MASK_MAX_LAYERS - 1, &layer))
        return error_set(e, ERROR_INPUT, "--layer: '%s' is not a number in 0..%d", text,
                         MASK_MAX_LAYERS - 1);
    ret->layer = (int64_t)layer;
    return 0;
}

static int read_head(const char *text, struct options *ret, struct error *e)
{
    uint64_t head;
    if (!whole_number(text, MASK_MAX_HEADS - 1, &head))
        return error_set(e, ERROR_INPUT, "--head: '%s' is not a number in 0..%d", text,
                         MASK_MAX_HEADS - 1);
    ret->head = (int64_t)head;
    return 0;
}

static int read_hops(const char *text, struct options *ret, struct error *e)
{
    uint64_t hops;
    if (!whole_number(text, PATTERN_MAX_N, &hops))
        return error_set(e, ERROR_INPUT, "--hops: '%s' is not a number in 0..%d", text,
                         (int)PATTERN_MAX_N);
    ret->hops = (uint32_t)hops;
    ret->has_hops = true;
    return 0;
}

#define AT(field) offsetof(struct options, field)
/* clang-format off */
const struct option_row option_rows[OPTION_COUNT] = {
    [OPTION_LENGTH]    = {"length", 'n', "N", "Length of the mask: needed by expressions and the gallery, crops a stored one", GROUP_COMMON, VALUE_OWN, .read = read_length},
    [OPTION_LENGTHS]   = {"length", 'n', "N,N", "Lengths, one result for each", GROUP_COMMON, VALUE_OWN, .read = read_lengths},
    [OPTION_HEADS]     = {"heads", 0, "H", "Repeat a one-head mask; .tsv: query heads, a multiple of its heads", GROUP_COMMON, VALUE_COUNT, AT(heads), .most = MASK_MAX_HEADS},
    [OPTION_LAYER]     = {"layer", 0, "L", "One layer alone, counted from 0", GROUP_MASK, VALUE_OWN, .read = read_layer},
    [OPTION_LAYER_LAUNCHED] = {"layer", 0, "L", "One layer alone, counted from 0 (default: layer 0)", GROUP_MASK, VALUE_OWN, .read = read_layer},
    [OPTION_HEAD]      = {"head", 0, "H", "Print one head, counted from 0", GROUP_MASK, VALUE_OWN, .read = read_head},
    [OPTION_TENSOR]    = {"tensor", 0, "NAME", "Which tensor of a safetensors file", GROUP_MASK, VALUE_TEXT, AT(tensor)},
    [OPTION_THRESHOLD] = {"threshold", 0, "T", "A float file is active where > T; .tsv: heads of at least T are full (default 0.5)", GROUP_MASK, VALUE_REAL, AT(threshold), .given = AT(has_threshold)},
    [OPTION_KEEP]      = {"keep", 0, "P", "Keep the largest P percent of a float file, per head; .tsv: P percent of the heads are full", GROUP_MASK, VALUE_REAL, AT(keep), .given = AT(has_keep)},
    [OPTION_DAM]       = {"dam", 0, 0, "The file holds DAM parameters: alpha [H,n,n], [H,n-2] for each distance, or [H,n,2] logits for each; maybe with layers in front", GROUP_MASK, VALUE_FLAG, AT(dam)},
    [OPTION_BORDER]    = {"border", 0, 0, "With --dam: first and last row and column on", GROUP_MASK, VALUE_FLAG, AT(border)},
    [OPTION_HOPS]      = {"hops", 0, "K", "The mask is a graph: a query sees all nodes within K steps, and itself", GROUP_MASK, VALUE_OWN, .read = read_hops},
    [OPTION_ORDER]     = {"order", 0, "ORDER.npy", "Tokens in another order: position p holds token ORDER[p], as `order` finds it", GROUP_MASK, VALUE_TEXT, AT(order)},
    [OPTION_METHOD]    = {"method", 0, "M", "rcm (reverse Cuthill-McKee), bisection, curve (Hilbert's, through --coordinates), or best (default): the one that is predicted to be the fastest", GROUP_MASK, VALUE_TEXT, AT(method)},
    [OPTION_COORDINATES] = {"coordinates", 0, "X.npy", "Where the tokens are, [n, 1 to 3], for curve", GROUP_MASK, VALUE_TEXT, AT(coordinates)},

    [OPTION_TARGET]    = {"target", 0, "T", "cpu, x86-64-v2, -v3, -v4, -bf16, -amx, sm_80, sm_90a, compute_80, cuda; a comma list for compile (default cpu)", GROUP_COMMON, VALUE_TEXT, AT(target)},
    [OPTION_DTYPE]     = {"dtype", 0, "T", "f32, bf16, f16 or, on GPUs, tf32 (default: of the model in whose folder the mask is, else f32)", GROUP_COMMON, VALUE_TEXT, AT(dtype)},
    [OPTION_DTYPES]    = {"dtype", 0, "T,T", "f32, bf16, f16, tf32 (default: of the model in whose folder the mask is, else f32,bf16)", GROUP_COMMON, VALUE_TEXT, AT(dtype)},
    [OPTION_HEAD_DIM]  = {"head-dim", 0, "D", "16..256, a multiple of 8 (default: of the model in whose folder the mask is, else 64)", GROUP_COMMON, VALUE_COUNT, AT(head_dim)},
    [OPTION_TRANSFORM] = {"transform", 0, "T", "softmax (default) or sparsegen=LAMBDA, LAMBDA < 1", GROUP_KERNEL, VALUE_TEXT, AT(transform)},
    [OPTION_WITH_DROPOUT] = {"dropout", 0, 0, "The kernel can drop out probabilities", GROUP_KERNEL, VALUE_FLAG, AT(with_dropout)},
    [OPTION_FORWARD_ONLY] = {"forward-only", 0, 0, "No backward pass", GROUP_KERNEL, VALUE_FLAG, AT(forward_only)},
    [OPTION_BIAS]      = {"soft", 0, "KIND", "A soft mask X beside the mask, for learning one: bias (scores + X) or scale (probabilities * X)", GROUP_KERNEL, VALUE_TEXT, AT(bias)},
    [OPTION_KV_HEADS]  = {"kv-heads", 0, "K", "Heads of K and V, which divide the query heads (grouped-query attention; default: as many)", GROUP_KERNEL, VALUE_COUNT, AT(kv_heads), .most = MASK_MAX_HEADS},
    [OPTION_KV_LENGTH] = {"kv-length", 0, "M", "Keys, where they are not as many as the queries (-n); the mask then has the larger length", GROUP_KERNEL, VALUE_COUNT, AT(kv_length), .most = PATTERN_MAX_N},
    [OPTION_ALIGN]     = {"align", 0, "WHERE", "With --kv-length: queries and keys stand at the mask's start (default) or end: query i at i + M - N", GROUP_KERNEL, VALUE_TEXT, AT(align)},
    [OPTION_MACHINE]   = {"machine", 0, "NAME", "Row of the machine table that the plan is made for: x86-sse, x86-avx2, x86-avx512, x86-bf16, x86-amx, a100, h100, rtx3090, rtx4090, rtx5090, l4, b200 (of the GPUs, NAME-mma for bf16 and f16), or 'calibrated' (default: this machine as calibrated where it runs the target, else by target)", GROUP_KERNEL, VALUE_TEXT, AT(machine)},
    [OPTION_FAMILY]    = {"family", 0, "NAME", "Kernel family of the passes that it takes: cpu_matrix, cpu_vector, cuda_resident, cuda_hopper, cuda_tiled, cuda_simt (default: the cheapest by prediction)", GROUP_KERNEL, VALUE_TEXT, AT(family)},

    [OPTION_BUDGET]    = {"budget", 0, "SHARE", "The most that is kept within this share of dense's predicted time, above 0 and at most 1", GROUP_COMMON, VALUE_REAL, AT(budget), .given = AT(has_budget)},
    [OPTION_BUDGET_US] = {"budget-us", 0, "T", "The most that is kept within T predicted microseconds, of all layers", GROUP_SNAP, VALUE_REAL, AT(budget_us), .given = AT(has_budget_us)},
    [OPTION_RETAIN]    = {"retain", 0, "R", "The fastest that keeps this share of the importance, above 0 and at most 1", GROUP_SNAP, VALUE_REAL, AT(retain), .given = AT(has_retain)},
    [OPTION_OBJECTIVE] = {"objective", 0, "WHAT", "Whose time: forward (default) or training (forward and backward)", GROUP_SNAP, VALUE_TEXT, AT(objective)},
    [OPTION_UNIFORM]   = {"uniform", 0, 0, "Each head has the same share of the time", GROUP_SNAP, VALUE_FLAG, AT(uniform)},
    [OPTION_KEEP_ROWS] = {"keep-rows", 0, 0, "Each query keeps its most important key at least; else it may lose all", GROUP_SNAP, VALUE_FLAG, AT(keep_rows)},
    [OPTION_MEASURE]   = {"measure", 0, "K", "Compile and time the K best and take the fastest of those that keep as much", GROUP_SNAP, VALUE_COUNT, AT(measure)},

    [OPTION_BATCH]     = {"batch", 0, "B", "Sequences (default 1)", GROUP_COMMON, VALUE_COUNT, AT(batch)},
    [OPTION_THREADS]   = {"threads", 0, "N", "CPU threads (default: all)", GROUP_COMMON, VALUE_COUNT, AT(threads), .most = THREADS_MOST},
    [OPTION_CLOCK]     = {"clock", 0, "WHICH", "wall (default), or cpu: the time that one thread of a CPU ran, for a machine that others use; needs --threads 1", GROUP_LAUNCH, VALUE_TEXT, AT(clock)},
    [OPTION_DEVICE]    = {"device", 0, "D", "cpu, cuda, cuda:1, emulated (default: what the file holds and the machine has)", GROUP_COMMON, VALUE_TEXT, AT(device)},
    [OPTION_PASS]      = {"pass", 0, "P,P", "forward, backward (default both)", GROUP_LAUNCH, VALUE_TEXT, AT(pass)},
    [OPTION_QUERY]     = {"query", 0, "Q.npy", "Queries [B,N,H,D], f16, f32 or f64 (packed: [T,H,D])", GROUP_COMMON, VALUE_TEXT, AT(query)},
    [OPTION_KEY]       = {"key", 0, "K.npy", "Keys, shaped alike, with the heads and the length that the kernel has for them", GROUP_COMMON, VALUE_TEXT, AT(key)},
    [OPTION_VALUE]     = {"value", 0, "V.npy", "Values, shaped as the keys", GROUP_COMMON, VALUE_TEXT, AT(value)},
    [OPTION_GRAD]      = {"grad", 0, "DO.npy", "Gradient of the output: runs backward too", GROUP_LAUNCH, VALUE_TEXT, AT(grad)},
    [OPTION_SEQUENCE_LENGTHS] = {"lengths", 0, "L.npy", "Lengths [B] of right-padded sequences, i32 or i64", GROUP_LAUNCH, VALUE_TEXT, AT(sequence_lengths)},
    [OPTION_OFFSETS]   = {"offsets", 0, "O.npy", "Offsets [B+1] of a packed batch, i32 or i64", GROUP_LAUNCH, VALUE_TEXT, AT(offsets)},
    [OPTION_SCALE]     = {"scale", 0, "S", "Factor of the scores (default 1/sqrt(D)); 0 makes attention uniform", GROUP_LAUNCH, VALUE_REAL, AT(scale), .given = AT(has_scale)},
    [OPTION_DROPOUT]   = {"dropout", 0, "P", "Probability, 0 <= P < 1; needs a kernel compiled with --dropout", GROUP_LAUNCH, VALUE_REAL, AT(dropout)},
    [OPTION_DROPOUT_MEASURED] = {"dropout", 0, "P", "Probability, 0 <= P < 1: also measures the same kernel without dropout", GROUP_LAUNCH, VALUE_REAL, AT(dropout)},
    [OPTION_SEED]      = {"seed", 0, "S", "Of the dropout", GROUP_LAUNCH, VALUE_WHOLE, AT(seed)},
    [OPTION_SAMPLES]   = {"samples", 0, "S.npy", "Dropout draws by these numbers [B], 0..2^32-1, instead of the positions in the batch", GROUP_LAUNCH, VALUE_TEXT, AT(samples)},
    [OPTION_BIAS_ARRAY] = {"soft", 0, "X.npy", "Soft mask [H,n,n] of a kernel compiled with --soft, n the mask's length, f16, f32 or f64", GROUP_LAUNCH, VALUE_TEXT, AT(bias_array)},
    [OPTION_DIAGONALS] = {"diagonals", 0, 0, "With --soft and --grad: dsoft.npy is [H,2n-1], summed along diagonals, offset key - query = o at o + n - 1", GROUP_LAUNCH, VALUE_FLAG, AT(diagonals)},

    [OPTION_OUTPUT]    = {"output", 'o', "PATH", "Where the result goes", GROUP_COMMON, VALUE_TEXT, AT(output)},
    [OPTION_JSON]      = {"json", 0, 0, "JSON on stdout and nothing else", GROUP_COMMON, VALUE_FLAG, AT(json)},
    [OPTION_WIDE]      = {"wide", 0, 0, "Print all heads and columns, lines of any length (default: 100 columns)", GROUP_OUTPUT, VALUE_FLAG, AT(wide)},
    [OPTION_SECONDS]   = {"seconds", 0, "S", "How long to measure (default 6)", GROUP_LAUNCH, VALUE_REAL, AT(seconds), .given = AT(has_seconds)},
    [OPTION_SECONDS_EACH] = {"seconds", 0, "S", "How long to measure each mask, dtype and pass (default 1)", GROUP_LAUNCH, VALUE_REAL, AT(seconds), .given = AT(has_seconds)},
    [OPTION_MEASURE_PLANS] = {"measure-plans", 0, "K", "First time the K best predicted plans (at most 8), interleaved, bench the fastest and store it for --measured", GROUP_KERNEL, VALUE_COUNT, AT(measure_plans)},
    [OPTION_MEASURED]  = {"measured", 0, 0, "Take the plan that bench --measure-plans found fastest here, where there is one", GROUP_KERNEL, VALUE_FLAG, AT(measured)},
    [OPTION_MARKDOWN]  = {"markdown", 0, 0, "A table in Markdown, a column for each feature", GROUP_OUTPUT, VALUE_FLAG, AT(markdown)},
    [OPTION_TABLE]     = {"table", 0, 0, "Rows for the table of machines (gen/cost/machines.c)", GROUP_OUTPUT, VALUE_FLAG, AT(table)},
    [OPTION_PLOT]      = {"plot", 0, "FIGURE", "Draw the times, .pdf, .svg or .png", GROUP_OUTPUT, VALUE_TEXT, AT(plot)},
    [OPTION_COLUMNS]   = {"columns", 0, "N", "Width of the figure: 1 column of a paper (3.3 in) or 2 (6.9 in, default)", GROUP_OUTPUT, VALUE_COUNT, AT(columns)},
};
/* clang-format on */

struct mask_request options_mask_request(const struct options *o, const char *name, uint32_t n)
{
    return (struct mask_request){
        .name = name,
        .n = n,
        .heads = o->heads,
        .layer = o->layer,
        .tensor = o->tensor,
        .dam = o->dam,
        .border = o->border,
        .has_hops = o->has_hops,
        .hops = o->hops,
        .order = o->order,
        .has_threshold = o->has_threshold,
        .has_keep = o->has_keep,
        .threshold = o->threshold,
        .keep = o->keep,
    };
}

uint32_t options_heads(const struct options *o, uint32_t default_heads)
{
    return o->model_heads ? o->model_heads : default_heads;
}

static struct mask *load(const struct options *o, const char *name, uint32_t n,
                         uint32_t default_heads, mask_mkb_reader reader, struct error *e)
{
    const struct mask_request request = options_mask_request(o, name, n);
    struct mask *m = mask_load(&request, reader, e);
    if (!m || m->heads != 1 || o->heads || default_heads < 2)
        return m;
    struct mask *repeated = mask_repeat_heads(m, options_heads(o, default_heads), e);
    mask_destroy(m);
    return repeated;
}

struct mask *options_mask(const struct options *o, const char *name, uint32_t n,
                          uint32_t default_heads, struct error *e)
{
    return load(o, name, n, default_heads, artifact_read_mask, e);
}

/* For kernels without --order: a note where the one in the file has an order. */
static struct mask *read_without_order(const char *path, struct error *e)
{
    bool ordered;
    struct mask *m = artifact_read_tokens(path, &ordered, e);
    if (m && ordered)
        fprintf(stderr,
                "maskc: %s: the mask is in the order of tokens; the order of this kernel is "
                "not taken over, compile and plan accept one as --order ORDER.npy\n",
                path);
    return m;
}

static int read_key_shape(const struct options *o, struct key_shape *ret, struct error *e)
{
    *ret = (struct key_shape){o->kv_heads, o->kv_length, MASK_ALIGN_START};
    if (o->align && !o->kv_length)
        return error_set(e, ERROR_INPUT, "--align goes with --kv-length");
    if (!o->align || !strcmp(o->align, "start"))
        return 0;
    if (strcmp(o->align, "end"))
        return error_set(e, ERROR_INPUT, "--align %.64s: start or end is expected", o->align);
    ret->align = MASK_ALIGN_END;
    return 0;
}

struct mask *options_kernel_mask(const struct options *o, const char *name, uint32_t n,
                                 uint32_t default_heads, struct kernel_request *request,
                                 struct error *e)
{
    struct key_shape shape;
    if (read_key_shape(o, &shape, e))
        return NULL;
    struct mask *m = load(o, name, key_shape_side(&shape, n), default_heads,
                          o->order ? artifact_read_mask : read_without_order, e);
    return m && key_shape_apply(&shape, n, &m, request, e) ? NULL : m;
}

int options_request(const struct options *o, const char *dtype, struct kernel_request *ret,
                    struct error *e)
{
    *ret = (struct kernel_request){
        .head_dim = o->head_dim ? o->head_dim : 64,
        .dropout = o->with_dropout,
        .backward = !o->forward_only,
    };
    dtype = dtype ? dtype : o->dtype;
    if (dtype && dtype_parse(dtype, &ret->dtype, e))
        return -1;
    if (o->bias && bias_parse(o->bias, &ret->bias, e))
        return -1;
    return o->transform ? transform_parse(o->transform, ret, e) : 0;
}

bool options_own_clock(const struct options *o)
{
    return o->clock && !strcmp(o->clock, "cpu");
}

int options_check_seconds(const struct options *o, struct error *e)
{
    return o->has_seconds && !(o->seconds > 0)
               ? error_set(e, ERROR_INPUT, "--seconds %g: a time above 0 is expected",
                           o->seconds)
               : 0;
}

int options_check_clock(const struct options *o, struct error *e)
{
    if (o->clock && !options_own_clock(o) && strcmp(o->clock, "wall"))
        return error_set(e, ERROR_INPUT, "--clock %s: wall or cpu is expected", o->clock);
    if (options_own_clock(o) && o->threads != 1)
        return error_set(e, ERROR_INPUT,
                         "--clock cpu is the time of one thread: --threads 1 is expected");
    return 0;
}
