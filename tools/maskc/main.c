/* SPDX-License-Identifier: Apache-2.0 */
/* maskc: the table of its commands, and which of them a command line means. */
#include "runtime/device/machine.h"
#include "runtime/maskc.h"
#include "tools/maskc/command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define O(id) OPTION_BIT(OPTION_##id)

/* A command stands here once it works. */
/* clang-format off */
static const struct command commands[] = {
    {"make", "MASK", "a mask as .mask, .npy or .safetensors",
     "A .mask file states the mask exactly in the mask language; where that is not possible, an error says so.",
     OPTIONS_MASK | O(OUTPUT), 1, 1, command_make},
    {"show", "MASK", "density, structure, empty rows, a picture",
     "With -o a picture is written too (.png or .svg): dark active, white inactive, one panel for each head.",
     OPTIONS_MASK | O(HEAD) | O(OUTPUT) | O(JSON) | O(WIDE), 1, 1, command_show},
    {"gallery", "", "the masks that can be named, with sparsity and papers",
     "Figures are for length 128 unless -n says otherwise; '-' marks a mask that this length is too short or too long for. "
     "The names and their arguments are a MASK: maskc show 'longformer(64, 1)' -n 512",
     O(LENGTH) | O(JSON), 0, 0, command_gallery},
    {"plan", "MASK", "what is visited how, and what it is predicted to cost",
     "Plans for the first target. Nothing is compiled. A one-head mask is repeated to 12 heads.",
     OPTIONS_MASK | OPTIONS_KERNEL | OPTIONS_KEYS | O(FAMILY) | O(MEASURED) | O(BATCH) | O(THREADS) | O(HEAD) | O(JSON) | O(WIDE), 1, 1, command_plan},
    {"snap", "P", "the mask that keeps the most of an importance within a time",
     "P says what each entry is worth: .npy or .safetensors of floats [n,n], [H,n,n] or [L,H,n,n] (attention that was "
     "measured), a boolean mask, or with --dam the parameters of a learned mask. The time is what plans are predicted to "
     "take, allotted over layers, heads and row blocks. The best of all kinds is returned: snap's own, the largest values, "
     "32x32 tiles, a window with globals, distances. Of equal values the one with the larger query, then key, is kept first; "
     "entries of no importance are kept only where they cost nothing. A one-head P is priced for 12 heads. Exit code 1: "
     "no mask is that fast; the least share that can be reached is named.",
     O(LENGTH) | O(HEADS) | O(LAYER) | O(TENSOR) | O(DAM) | O(BORDER) | O(BUDGET) | O(BUDGET_US) | O(RETAIN) | O(OBJECTIVE) |
     O(UNIFORM) | O(KEEP_ROWS) | O(MEASURE) | OPTIONS_KERNEL | O(BATCH) | O(THREADS) | O(CLOCK) | O(OUTPUT) | O(JSON),
     1, 1, command_snap},
    {"order", "MASK", "an order of the tokens in which the mask is cheap",
     "Writes whole numbers [n] to -o ORDER.npy: position p holds token ORDER[p]. `make` and `compile` take it with --order. "
     "Times are predicted for forward and backward together, a one-head mask for 12 heads. "
     "The mask as it is stays where none of --method best is faster; one method named by --method is written even where it is slower.",
     (OPTIONS_MASK & ~O(ORDER)) | O(METHOD) | O(COORDINATES) | OPTIONS_KERNEL | O(BATCH) | O(THREADS) | O(OUTPUT) | O(JSON), 1, 1, command_order},
    {"emit", "MASK", "the source, compilable by hand", NULL,
     OPTIONS_MASK | OPTIONS_KERNEL | OPTIONS_KEYS | O(FAMILY) | O(OUTPUT), 1, 1, command_emit},
    {"compile", "MASK", "a kernel file", NULL,
     OPTIONS_MASK | OPTIONS_KERNEL | OPTIONS_KEYS | O(FAMILY) | O(MEASURED) | O(OUTPUT), 1, 1, command_compile},
    {"info", "FILE.mkb", "what a kernel file holds", NULL, O(LAYER) | O(HEAD) | O(JSON) | O(WIDE), 1, 1, command_info},
    {"verify", "FILE.mkb", "a kernel file against the float64 reference",
     "Forward and backward, every distinct layer, ragged and packed batches, shorter sequences, dropout "
     "if compiled in, equal bits from run to run. A kernel file holds native code: verifying it is running it.",
     O(DEVICE) | O(THREADS) | O(JSON), 1, 1, command_verify},
    {"run", "FILE.mkb", "a kernel on tensors from .npy files",
     "Writes out.npy, lse.npy and with --grad dq.npy, dk.npy, dv.npy (with --soft dsoft.npy), all f32, into the "
     "folder of -o. Of a kernel compiled with --order, tensors are in that order. "
     "A kernel file holds native code: running it is trusting it.",
     O(QUERY) | O(KEY) | O(VALUE) | O(GRAD) | O(SEQUENCE_LENGTHS) | O(OFFSETS) | O(SCALE) | O(DROPOUT) |
     O(SEED) | O(SAMPLES) | O(BIAS_ARRAY) | O(DIAGONALS) | O(LAYER_LAUNCHED) | O(DEVICE) | O(THREADS) | O(OUTPUT), 1, 1, command_run},
    {"bench", "MASK|FILE.mkb...", "times against our own dense kernel",
     "Launches ours and dense interleaved, with --soft or --dropout also the same kernel without. A one-head mask "
     "is repeated to 12 heads.",
     O(LENGTHS) | (OPTIONS_MASK_ONE & ~O(LAYER)) | O(LAYER_LAUNCHED) | O(TARGET) | O(DTYPES) | O(HEAD_DIM) | O(TRANSFORM) | O(FORWARD_ONLY) |
     O(BIAS) | OPTIONS_KEYS | O(MACHINE) | O(FAMILY) | O(BATCH) | O(PASS) | O(THREADS) | O(CLOCK) | O(DEVICE) | O(DROPOUT_MEASURED) | O(SECONDS_EACH) |
     O(MEASURE_PLANS) |
     O(JSON) | O(WIDE) | O(PLOT) | O(COLUMNS),
     1, OPTIONS_MAX_ARGUMENTS, command_bench},
    {"calibrate", "", "measures this machine, for later plans",
     "Takes some seven seconds on one core, also while others work, and longer the first time, when the compiler makes its kernels. plan, compile, emit and bench then use what was "
     "measured wherever this CPU runs the target; --machine NAME has a row of the table instead. With --soft kernels "
     "beside a soft mask are measured, too, which takes as long again; else their rates are the table's. --device cuda "
     "(or cuda:1) measures a GPU, in seconds once its kernels are compiled; plans for its own target then use that.",
     O(BIAS) | O(DEVICE) | O(SECONDS) | O(JSON) | O(TABLE), 0, 0, command_calibrate},
    {"cache", "list|clear", "compiled code that is kept", NULL, 0, 1, 1, command_cache},
    {"support", "", "which kernels exist for which target, type and feature, and where they have run",
     "Asks the code that `plan` and `compile` ask. gen/SUPPORT.md is the table of --markdown, with what its words mean.",
     O(MARKDOWN) | O(JSON), 0, 0, command_support},
    {"devices", "", "what this machine can run and compile for", NULL, 0, 0, 0, command_devices},
    {0},
};
/* clang-format on */

static const struct program maskc = {
    .name = "maskc",
    .version = MASKC_VERSION,
    .purpose = "Compiles attention masks into kernels that visit only what the mask keeps.",
    .closing =
        "MASK is a file (.mask, .npy, .npz, .safetensors, .tsv, .mkb), a gallery name (star, "
        "longformer, ...)\n"
        "or an expression: maskc show 'window(4) | global(0)' -n 128\n"
        "maskc COMMAND --help lists the options of a command; maskc --version the version.\n"
        "MASKC_MAX_CPU=x86-64-v3 (or -v2, -v4, -bf16, -amx) in the environment limits the "
        "CPU's\n"
        "instruction set.\n"
        "Exit codes: 0 done, 1 what was asked does not hold, 2 bad input, 3 this machine "
        "cannot.",
    .commands = commands,
    .rows = option_rows,
    .n_rows = OPTION_COUNT,
    .titles = option_titles,
    .arguments_at = offsetof(struct options, argument),
    .n_arguments_at = offsetof(struct options, n_arguments),
};

int command_fail(const struct error *e)
{
    return program_fail(&maskc, e);
}

void command_note(const char *text)
{
    fprintf(stderr, "maskc: %s\n", text);
}

/* True if something is planned or launched for a GPU. CPU commands do not wait for a driver. */
static bool means_gpu(const struct options *o)
{
    static const char *const words[] = {"cuda", "sm_", "compute_"};
    bool found = !o->target && !o->device && has_suffix(o->argument[0], ".mkb");
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        found = found || (o->target && strstr(o->target, words[k])) ||
                (o->device && strstr(o->device, words[k]));
    return found;
}

/* Where a row of the table is asked for, none is needed; one that cannot be read is no more than
   worth a word, unless it is asked for. */
static int load_calibration(struct options *o)
{
    struct error e = {0};
    bool asked = o->machine && !strcmp(o->machine, CALIBRATED);
    if (o->machine && !asked)
        return 0;
    for (int gpus = 0; gpus <= means_gpu(o); gpus++) {
        if (!(gpus ? calibration_load_gpus : calibration_load)(&o->calibration, &e))
            continue;
        if (asked)
            return command_fail(&e);
        fprintf(stderr, "maskc: %s; it is ignored\n", e.text);
    }
    return 0;
}

/* Reads the model's shape from the folder of the only mask. plan prints it with the plan, the other commands at
   once. */
static int take_model(const struct command *c, struct options *o)
{
    struct error e = {0};
    if (!(c->options & O(HEAD_DIM)) || c->max_arguments != 1)
        return 0;
    const bool repeats =
        c->run == command_plan || c->run == command_snap || c->run == command_order;
    if (options_take_model(o, o->argument[0], repeats, &e) < 0)
        return command_fail(&e);
    if (o->model_note && c->run != command_plan)
        command_note(o->model_note);
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {.layer = -1, .head = -1};
    int code;
    const struct command *c = program_begin(&maskc, argc, argv, &o, &code);
    if (!c)
        return code;
    struct error e = {0};
    code = machine_check_cap(&e) < 0 ? command_fail(&e) : 0;
    if (!code && c->options & O(MACHINE))
        code = load_calibration(&o);
    if (!code)
        code = take_model(c, &o);
    if (!code)
        code = c->run(&o);
    free(o.model_note);
    calibration_destroy(o.calibration);
    return program_end(&maskc, code);
}
