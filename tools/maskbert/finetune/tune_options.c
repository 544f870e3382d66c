/* SPDX-License-Identifier: Apache-2.0 */
/* From a command line to the options of a run of fine-tuning. */
#include "tools/maskbert/finetune/tune_options.h"
#include "model/base/windows.h"
#include "model/data/tasks/table.h"
#include "tools/maskbert/train/pretrain_options.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_RATE   5e-5
#define DEFAULT_WARMUP 0.1
#define DEFAULT_EPOCHS 3

/* ---- --grid ---- */

static int refuse_grid(const char *grid, struct error *e)
{
    return error_set(e, ERROR_INPUT,
                     "--grid %.80s: as \"lr=1e-4,3e-4 batch=16,32\" is expected, at most %d "
                     "different values each",
                     grid, GRID_MOST);
}

/* The runs of a grid have folders with these names. */
static bool has_equal(const double *value, int count, double x)
{
    char name[32], other[32];
    snprintf(name, sizeof name, "%g", x);
    for (int k = 0; k < count; k++) {
        snprintf(other, sizeof other, "%g", value[k]);
        if (!strcmp(name, other))
            return true;
    }
    return false;
}

/* "1e-4,3e-4", all different, up to a blank or the end. The end in *ret_end; the count, or -1. */
static int read_values(const char *text, double ret[GRID_MOST], const char **ret_end)
{
    int count = 0;
    for (;; text++) {
        char *end;
        const double value = strtod(text, &end);
        if (end == text || count == GRID_MOST || !(value > 0) || !isfinite(value) ||
            has_equal(ret, count, value))
            return -1;
        ret[count++] = value;
        text = *ret_end = end;
        if (*text != ',')
            return count;
    }
}

static int take_rates(const double *value, int count, struct tune_grid *g)
{
    for (int k = 0; k < count; k++)
        g->rate[g->rates++] = value[k];
    return 0;
}

static int take_batches(const double *value, int count, struct tune_grid *g)
{
    for (int k = 0; k < count; k++) {
        if (value[k] > 1 << 20 || value[k] != (double)(uint32_t)value[k])
            return -1;
        g->batch[g->batches++] = (uint32_t)value[k];
    }
    return 0;
}

static int read_grid(const char *grid, struct tune_grid *ret, struct error *e)
{
    for (const char *at = grid; *at;) {
        double value[GRID_MOST];
        const bool rate = !strncmp(at, "lr=", 3), batch = !strncmp(at, "batch=", 6);
        const int count = rate || batch ? read_values(at + (rate ? 3 : 6), value, &at) : -1;
        if (count < 0 || (rate ? ret->rates : ret->batches) ||
            (rate ? take_rates : take_batches)(value, count, ret) < 0 || (*at && *at != ' '))
            return refuse_grid(grid, e);
        at += strspn(at, " ");
    }
    return ret->rates + ret->batches ? 0 : refuse_grid(grid, e);
}

/* ---- the task ---- */

int tune_task(const struct options *o, const struct data_task **ret, struct error *e)
{
    *ret = data_task_find(o->task, e);
    if (!*ret)
        return -1;
    const enum task_format format = (*ret)->format;
    if (o->regression && format != TASK_PLAIN)
        return error_set(e, ERROR_INPUT, "--regression: for the tasks text and pair alone");
    if (o->stride && format != TASK_ANSWERS)
        return error_set(e, ERROR_INPUT, "--stride: for questions and answers alone");
    if (o->null_threshold_given && !(*ret)->unanswerable)
        return error_set(e, ERROR_INPUT, "--null-threshold: for squad2 alone");
    const uint32_t least = format == TASK_ANSWERS ? WINDOW_LEAST : TOKENIZER_MIN_LENGTH;
    if (o->max_length && o->max_length < least)
        return error_set(e, ERROR_INPUT, "--max-length %u: at least %u is expected",
                         o->max_length, least);
    return 0;
}

static int read_names(const struct options *o, struct run_options *ret, struct error *e)
{
    if (!o->task)
        return error_set(e, ERROR_INPUT, "finetune: --task TASK is expected");
    if (!o->data)
        return error_set(e, ERROR_INPUT, "finetune: --data FOLDER is expected");
    if (!o->output)
        return error_set(e, ERROR_INPUT, "finetune: -o RUN is expected");
    if (o->repeats && (!o->drop || strncmp(o->drop, "random:", 7) != 0))
        return error_set(e, ERROR_INPUT,
                         "--repeats: only --drop random:K differs from run to run");
    *ret = (struct run_options){.model = o->argument,
                                .data = o->data,
                                .run = o->output,
                                .mask = o->mask,
                                .transform = o->transform,
                                .drop = o->drop,
                                .positions = o->positions,
                                .seed = o->seed,
                                .overfit = o->overfit,
                                .zero = o->zero,
                                .goes_on = o->goes_on,
                                .not_bitwise = o->not_bitwise,
                                .device = o->device,
                                .save_gradients = o->save_gradients,
                                .regression = o->regression,
                                .max_length = o->max_length,
                                .overlap = o->stride,
                                .null_threshold = o->null_threshold};
    return tune_task(o, &ret->task, e);
}

/* ---- how long ---- */

static int read_length(const struct options *o, struct run_options *ret, struct error *e)
{
    if (o->epochs_given + o->steps_given + o->minutes_given > 1)
        return error_set(e, ERROR_INPUT,
                         "finetune: at most one of --epochs N, --steps N, --minutes M");
    if (o->epochs_given && !(o->epochs > 0 && o->epochs <= 1e6))
        return error_set(e, ERROR_INPUT, "--epochs %g: above 0 and at most 1e6 is expected",
                         o->epochs);
    if (o->steps_given && (!o->steps || o->steps >= UINT64_C(1) << 40))
        return error_set(e, ERROR_INPUT, "--steps: a whole number from 1 is expected");
    if (o->minutes_given && !(o->minutes > 0))
        return error_set(e, ERROR_INPUT, "--minutes %g: more than 0 is expected", o->minutes);
    ret->steps = o->steps;
    ret->minutes = o->minutes;
    ret->epochs = o->epochs_given ? o->epochs : o->steps || o->minutes > 0 ? 0 : DEFAULT_EPOCHS;
    return 0;
}

static int read_rates(const struct options *o, struct run_options *ret, struct error *e)
{
    if (!o->rate_given)
        ret->rate = DEFAULT_RATE;
    if (!o->warmup_given)
        ret->warmup = DEFAULT_WARMUP;
    if (o->layer_decay_given && !(o->layer_decay > 0 && o->layer_decay <= 1))
        return error_set(e, ERROR_INPUT, "--layer-decay %g: above 0 and at most 1 is expected",
                         o->layer_decay);
    ret->layer_decay = o->layer_decay_given ? o->layer_decay : 0;
    return 0;
}

int tune_options(const struct options *o, struct run_options *ret, struct tune_grid *ret_grid,
                 struct error *e)
{
    *ret_grid = (struct tune_grid){0};
    if (read_names(o, ret, e) < 0 || read_length(o, ret, e) < 0 ||
        training_options(o, ret, e) < 0 || read_rates(o, ret, e) < 0)
        return -1;
    if (o->seeds && o->seed > INT64_MAX - (uint64_t)o->seeds + 1)
        return error_set(e, ERROR_INPUT, "--seeds %u: seeds up to 2^63 - 1 are expected",
                         o->seeds);
    if (o->json && o->csv)
        return error_set(e, ERROR_INPUT, "--json and --csv: one of them is expected");
    if (o->save_gradients && (o->seeds || o->repeats || o->grid))
        return error_set(e, ERROR_INPUT, "--save-gradients: for one run alone");
    return o->grid ? read_grid(o->grid, ret_grid, e) : 0;
}
