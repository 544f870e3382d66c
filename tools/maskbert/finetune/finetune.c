/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert finetune: the runs of a command one after another (a grid's, then each seed's), and their summary. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/checkpoint/json.h"
#include "model/train/run/run_score.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/finetune/assess.h"
#include "tools/maskbert/finetune/summary.h"
#include "tools/maskbert/finetune/tune_options.h"
#include "tools/maskbert/session.h"
#include "tools/maskbert/train/pretrain_report.h"
#include "tools/maskbert/train/ranks.h"
#include "tools/maskbert/train/run_signals.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct tuning {
    const struct options *o;
    struct ranks ranks;
    struct run_options run; /* as the command gives them */
    struct tune_grid grid;
    struct summary summary;
    int code; /* of the process, when a run ends badly */
};

/* ---- one run ---- */

/* Evaluates the run's folder by the inference path, on the run's device: the figures of `maskbert eval`. */
static int assess_run(const struct tuning *t, const struct run_options *r, struct tuned_run *to,
                      struct error *e)
{
    const struct assess_request q = {
        .model = r->run,
        .task = r->task,
        .data = r->data,
        .part = TASK_DEV,
        .null_threshold = r->null_threshold,
        .texts = {.max_length = r->max_length, .overlap = r->overlap},
        .engine = {.device = r->device,
                   .dtype = r->dtype,
                   .threads = r->threads,
                   .progress = ranks_watch(&t->ranks)->tell}};
    struct assessment j;
    if (assess(&q, &j, e) < 0)
        return -1;
    to->scores = j.scores;
    to->examples = j.set.count;
    assessment_finish(&j);
    return 0;
}

static int fail(struct tuning *t, const struct error *e)
{
    t->code = ranks_fail(&t->ranks, e);
    return -1;
}

/* Rank 0 assesses the run, and all go on by its figures. */
static int assess_alone(const struct tuning *t, const struct run_options *r,
                        struct tuned_run *to, struct error *e)
{
    const int result = ranks_first(&t->ranks) ? assess_run(t, r, to, e) : 0;
    return comm_follow(t->ranks.comm, result, e) < 0
               ? -1
               : run_score_share(t->ranks.comm, &to->scores, e);
}

/* 0; else t->code is the exit code. */
static int train(struct tuning *t, const struct run_options *r, struct tuned_run *to)
{
    struct error e = {0};
    struct run_result result;
    if (run_train(r, ranks_watch(&t->ranks), &result, &e) < 0)
        return fail(t, &e);
    if (ranks_first(&t->ranks))
        pretrain_summary(r, &result);
    if (result.interrupted) {
        t->code = EXIT_INTERRUPTED;
        return -1;
    }
    *to = (struct tuned_run){.folder = memory_text(r->run),
                             .seed = r->seed,
                             .rate = r->rate,
                             .batch = r->batch,
                             .repeat = r->repeat,
                             .best_epoch = (double)result.best_step / result.epoch_steps,
                             .elapsed = result.elapsed};
    if (assess_alone(t, r, to, &e) < 0) /* the summary frees *to */
        return fail(t, &e);
    if (ranks_first(&t->ranks))
        tuned_run_say(to);
    return 0;
}

/* ---- folders of several runs ---- */

static int new_folder(const struct tuning *t, const char *path, struct error *e)
{
    if (!ranks_first(&t->ranks) || mkdir(path, 0777) == 0)
        return 0;
    const bool there = errno == EEXIST;
    if (there && t->o->goes_on)
        return 0;
    return error_set(e, there ? ERROR_INPUT : ERROR_UNAVAILABLE, "%s: %s", path,
                     there ? "there is one already; --resume goes on with it"
                           : strerror(errno));
}

static int make_folder(struct tuning *t, const char *path)
{
    struct error e = {0};
    return comm_follow(t->ranks.comm, new_folder(t, path, &e), &e) < 0 ? fail(t, &e) : 0;
}

static char *name_run(const char *folder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static char *name_run(const char *folder, const char *format, ...)
{
    char name[128];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    return path_join(folder, name);
}

/* ---- a grid ---- */

static double value_of(const struct tuned_run *r)
{
    const double value = r->scores.score[r->scores.chief].value;
    return isnan(value) ? -INFINITY : value;
}

/* The combinations, each with the first seed; *r gets the best. */
static int search(struct tuning *t, struct run_options *r)
{
    const struct tune_grid *g = &t->grid;
    const uint32_t rates = g->rates ? g->rates : 1, batches = g->batches ? g->batches : 1;
    char *folder = path_join(t->o->output, "grid");
    struct run_options best = *r;
    int result = make_folder(t, folder);
    for (uint32_t k = 0; k < rates * batches && result == 0; k++) {
        struct run_options each = *r;
        each.rate = g->rates ? g->rate[k / batches] : r->rate;
        each.batch = g->batches ? g->batch[k % batches] : r->batch;
        char *run = name_run(folder, "lr-%g-batch-%u", each.rate, each.batch);
        struct tuned_run *to = summary_add(&t->summary, SUMMARY_GRID);
        each.run = run;
        result = train(t, &each, to);
        if (result == 0 && (k == 0 || value_of(to) > value_of(&t->summary.best))) {
            t->summary.best = *to;
            best.rate = each.rate;
            best.batch = each.batch;
        }
        free(run);
    }
    free(folder);
    *r = best;
    return result;
}

/* ---- seeds and repeats ---- */

/* RUN/seed-3, RUN/repeat-2, RUN/seed-3-repeat-2. */
static char *name_one(const struct tuning *t, const struct run_options *r, const char *folder)
{
    const unsigned long long seed = r->seed;
    if (!t->o->repeats)
        return name_run(folder, "seed-%llu", seed);
    return t->o->seeds ? name_run(folder, "seed-%llu-repeat-%u", seed, r->repeat)
                       : name_run(folder, "repeat-%u", r->repeat);
}

static int train_one(struct tuning *t, struct run_options r, const char *folder)
{
    const bool several = t->o->seeds || t->o->grid || t->o->repeats;
    char *run = several ? name_one(t, &r, folder) : memory_text(folder);
    r.run = run;
    int result = train(t, &r, summary_add(&t->summary, SUMMARY_RUN));
    free(run);
    return result;
}

static int train_all(struct tuning *t)
{
    const struct options *o = t->o;
    const uint32_t seeds = o->seeds ? o->seeds : 1, repeats = o->repeats ? o->repeats : 1;
    struct run_options r = t->run;
    r.repeat = o->repeats ? 1 : 0;
    if ((o->seeds || o->grid || o->repeats) && make_folder(t, o->output) < 0)
        return -1;
    if (o->grid && search(t, &r) < 0)
        return -1;
    for (uint64_t k = 0; k < (uint64_t)seeds * repeats; k++) {
        struct run_options each = r;
        each.seed = r.seed + k / repeats;
        each.repeat = o->repeats ? 1 + (uint32_t)(k % repeats) : 0;
        if (train_one(t, each, o->output) < 0)
            return -1;
    }
    return 0;
}

static int finish(const struct tuning *t)
{
    struct error e = {0};
    if (!ranks_first(&t->ranks))
        return 0;
    summary_say(&t->summary);
    if (summary_write(&t->summary, t->o->output, &e) < 0)
        return command_fail(&e);
    if (t->o->json)
        summary_print_json(&t->summary);
    if (t->o->csv)
        summary_print_csv(&t->summary);
    return 0;
}

static int fail_to_begin(struct tuning *t, const struct error *e)
{
    fail(t, e);
    ranks_finish(&t->ranks);
    return t->code;
}

int command_finetune(const struct options *o)
{
    struct error e = {0};
    struct tuning t = {.o = o};
    run_hold_signals();
    int result = ranks_begin(o, &t.ranks, &e);
    if (result == 0 && t.ranks.ended)
        return t.ranks.code;
    if (result == 0)
        result = comm_agree(t.ranks.comm, tune_options(o, &t.run, &t.grid, &e), &e);
    if (result < 0)
        return fail_to_begin(&t, &e);
    ranks_set(&t.ranks, &t.run);
    t.summary.task = t.run.task;
    const int code = train_all(&t) < 0 ? t.code : finish(&t);
    summary_finish(&t.summary);
    ranks_finish(&t.ranks);
    return code;
}
