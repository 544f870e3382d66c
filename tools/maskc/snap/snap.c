/* SPDX-License-Identifier: Apache-2.0 */
/* maskc snap P: the mask that keeps the most of an importance within a predicted time, or the fastest that keeps so
   much of it. */
#include "masks/base/memory.h"
#include "masks/readers/readers.h"
#include "tools/maskc/command.h"
#include "tools/maskc/progress.h"
#include "tools/maskc/snap/task.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void show_progress(void *context, double done, const char *what)
{
    char line[80];
    (void)context;
    snprintf(line, sizeof line, "%3.0f %% %s", 100 * done, what);
    progress_show(line);
}

/* The search may take a minute: what would fail after it fails before. */
static int check_folder(const char *path, struct error *e)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? memory_text(path) : NULL;
    if (folder)
        folder[slash - path + 1] = 0;
    int failed =
        access(folder ? folder : ".", W_OK)
            ? error_set(e, ERROR_INPUT, "%s: cannot be written: %s", path, strerror(errno))
            : 0;
    free(folder);
    return failed;
}

static int check_output(const struct options *o, struct error *e)
{
    static const char *const suffix[] = {".mask", ".npy", ".safetensors"};
    bool known = false;
    for (size_t k = 0; k < sizeof suffix / sizeof *suffix; k++)
        known = known || (o->output && has_suffix(o->output, suffix[k]));
    if (!known)
        return error_set(e, ERROR_INPUT,
                         "snap: -o FILE.npy, FILE.safetensors or FILE.mask is expected");
    return check_folder(o->output, e);
}

static int read_goal(const struct options *o, struct snap_request *r, struct error *e)
{
    if (o->has_budget + o->has_budget_us + o->has_retain != 1)
        return error_set(
            e, ERROR_INPUT,
            "snap: one of --budget SHARE, --budget-us T and --retain R is expected");
    if (o->has_budget && !(o->budget > 0 && o->budget <= 1))
        return error_set(
            e, ERROR_INPUT,
            "--budget %g is out of range, a share above 0 and at most 1 is expected",
            o->budget);
    if (o->has_budget_us && !(o->budget_us > 0))
        return error_set(e, ERROR_INPUT, "--budget-us %g: a time above 0 is expected",
                         o->budget_us);
    if (o->has_retain && !(o->retain > 0 && o->retain <= 1))
        return error_set(
            e, ERROR_INPUT,
            "--retain %g is out of range, a share above 0 and at most 1 is expected",
            o->retain);
    r->share = o->budget;
    r->seconds = o->budget_us * 1e-6;
    r->retain = o->retain;
    return 0;
}

static int check_clock(const struct options *o, struct error *e)
{
    if (o->clock && !o->measure)
        return error_set(e, ERROR_INPUT, "--clock goes with --measure");
    return options_check_clock(o, e);
}

static int read_objective(const struct options *o, struct snap_request *r, struct error *e)
{
    r->training = o->objective && !strcmp(o->objective, "training");
    if (o->objective && !r->training && strcmp(o->objective, "forward"))
        return error_set(e, ERROR_INPUT, "--objective %s: forward or training is expected",
                         o->objective);
    if (r->training && o->forward_only)
        return error_set(e, ERROR_INPUT,
                         "--objective training needs the backward pass: no --forward-only");
    return 0;
}

static int read_request(const struct options *o, struct snap_request *r, struct error *e)
{
    const struct target *target[ARTIFACT_MAX_TARGETS];
    struct compile_request compile;
    if (command_one_target(o, "cpu", target, &compile, e) < 0)
        return -1;
    r->machine =
        machine_choose(compile.machine, compile.calibration, target[0], &compile.request, e);
    r->target = target[0];
    r->kernel = compile.request;
    r->batch = o->batch ? o->batch : 1;
    r->threads = command_threads(o);
    r->uniform = o->uniform;
    r->keep_rows = o->keep_rows;
    r->progress = show_progress;
    return r->machine ? 0 : -1;
}

/* The plan of a one-head mask is one for 12 heads: so is the price. */
static int read_importance(struct task *t, struct error *e)
{
    const struct mask_request request =
        options_mask_request(t->o, t->o->argument[0], t->o->length[0]);
    if (importance_read(&request, &t->p, e) < 0)
        return -1;
    t->request.repeat =
        t->p.heads == 1 && !t->o->heads ? options_heads(t->o, COMMAND_HEADS) : 1;
    return 0;
}

/* The kinds that keep as much as the best does, to be measured. */
static int solve_equal(struct task *t, struct error *e)
{
    struct snap_request r = t->request;
    r.share = r.seconds = 0;
    r.retain = t->result.best.retained;
    return snap_solve(&t->p, &r, &t->equal, e) < 0 ? -1 : task_measure(t, e);
}

static int solve(struct task *t, struct error *e)
{
    if (snap_solve(&t->p, &t->request, &t->result, e) < 0)
        return -1;
    t->chosen = t->result.best;
    return t->o->measure ? solve_equal(t, e) : 0;
}

static int finish(const struct task *t, struct error *e)
{
    progress_clear();
    if (command_write_mask(t->chosen.mask, t->o->output, e) < 0)
        return -1;
    (t->o->json ? task_print_json : task_print)(t);
    return 0;
}

int command_snap(const struct options *o)
{
    struct error e = {0};
    struct task t = {.o = o};
    int failed = check_output(o, &e) < 0 || check_clock(o, &e) < 0 ||
                 read_goal(o, &t.request, &e) < 0 || read_objective(o, &t.request, &e) < 0 ||
                 read_request(o, &t.request, &e) < 0 || read_importance(&t, &e) < 0 ||
                 solve(&t, &e) < 0 || finish(&t, &e) < 0;
    progress_clear();
    snap_result_finish(&t.result);
    snap_result_finish(&t.equal);
    importance_finish(&t.p);
    return failed ? command_fail(&e) : 0;
}
