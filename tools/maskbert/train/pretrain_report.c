/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/train/pretrain_report.h"
#include "masks/base/text.h"
#include "model/checkpoint/config.h"
#include "model/data/tasks/table.h"
#include "tools/maskbert/session.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

static void print_time(double seconds, char ret[32])
{
    const int s = (int)fmin(fmax(seconds, 0), 1e9);
    if (s >= 3600)
        snprintf(ret, 32, "%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(ret, 32, "%d:%02d", s / 60, s % 60);
}

static void describe(const struct run_progress *p, struct text *to)
{
    char left[32];
    text_add(to, "step %" PRIu64, p->step);
    if (p->steps)
        text_add(to, " of %" PRIu64, p->steps);
    text_add(to, ", ");
    p->objective->loss_text(p->loss, p->mean, to);
    if (p->dev.name)
        text_add(to, ", dev %s %.4f", p->dev.name, p->dev.value);
    text_add(to, ", rate %.3g, %.0f tokens/s", p->rate, p->tokens_per_s);
    if (isfinite(p->mfu))
        text_add(to, ", MFU %.1f %%", 100 * p->mfu);
    print_time(p->left, left);
    text_add(to, ", %s left", left);
}

void pretrain_progress(const struct run_progress *p)
{
    struct text line = {0};
    describe(p, &line);
    if (isatty(STDERR_FILENO))
        session_tell(text_get(&line));
    else if (p->due)
        pretrain_say(text_get(&line));
    text_finish(&line);
}

void pretrain_say(const char *line)
{
    session_tell(NULL);
    fprintf(stderr, "maskbert: %s\n", line);
}

static void say_length(const struct run_result *r)
{
    struct text line = {0};
    char time[32];
    print_time(r->elapsed, time);
    text_add(&line, "%" PRIu64 " step%s, %" PRIu64 " tokens, ", r->step,
             r->step == 1 ? "" : "s", r->tokens);
    if (r->elapsed < 60)
        text_add(&line, "%.1f s", r->elapsed);
    else
        text_add(&line, "%s", time);
    if (isnan(r->loss)) {
        text_add(&line, "; no step was left to do");
    } else {
        text_add(&line, ", %.0f tokens/s; training ", (double)r->tokens / r->elapsed);
        r->objective->loss_text(r->loss, r->mean, &line);
        text_add(&line, ", mean of the last steps");
    }
    pretrain_say(text_get(&line));
    text_finish(&line);
}

static void say_held_out(const struct run_result *r)
{
    struct text line = {0};
    text_add(&line, "held-out ");
    r->held_out.objective->text(&r->held_out.losses, &line);
    pretrain_say(text_get(&line));
    text_finish(&line);
}

static void say_device(const struct run_result *r)
{
    struct text line = {0};
    text_add(&line, "the device: %" PRIu64 " launches in the last step, at most %.1f MiB",
             r->launches, (double)r->device_bytes / (1 << 20));
    pretrain_say(text_get(&line));
    text_finish(&line);
}

/* The mask that a run has learned: the file that it settled on, or alpha. */
static void add_learned(const struct run_options *r, const char *run, struct text *to)
{
    struct model_config c = {0};
    if (r->learn.settle && config_read(r->run, &c, NULL) == 0 && c.mask)
        text_add(to, ", maskc plan %s/%s", run, c.mask);
    else
        text_add(to, ", maskc plan %s/alpha.safetensors --dam", run);
    config_finish(&c);
}

static void say_next(const struct run_options *r, const struct run_result *result)
{
    struct text line = {0}, run = {0}, data = {0};
    text_add_word(&run, r->run);
    text_add_word(&data, r->data);
    if (result->interrupted)
        text_add(&line, "interrupted and saved in %s; --resume goes on", r->run);
    else
        text_add(&line, "%s holds the model; next: maskbert eval %s%s%s --data %s", r->run,
                 text_get(&run), r->task ? " --task " : "", r->task ? r->task->name : "",
                 text_get(&data));
    if (!result->interrupted && r->learn.kind != LEARN_NOTHING)
        add_learned(r, text_get(&run), &line);
    pretrain_say(text_get(&line));
    text_finish(&line);
    text_finish(&run);
    text_finish(&data);
}

void pretrain_summary(const struct run_options *r, const struct run_result *result)
{
    say_length(result);
    if (result->launches)
        say_device(result);
    if (result->evaluated && !r->task)
        say_held_out(result);
    say_next(r, result);
}
