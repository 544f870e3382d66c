/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_say.h"
#include "masks/base/text.h"
#include <inttypes.h>
#include <math.h>

void run_say(const struct run *r, const char *line)
{
    if (r->watch->say)
        r->watch->say(line);
}

bool run_line_due(double elapsed, double *last)
{
    enum { FIRST_SECONDS = 1, MOST_SECONDS = 10 };
    const double doubled = fmin(2 * *last, *last + MOST_SECONDS),
                 next = *last < 0 ? 0 : fmax(FIRST_SECONDS, doubled);
    const bool due = elapsed >= next;
    if (due)
        *last = elapsed;
    return due;
}

void run_say_evaluation(const struct run *r, const struct evaluation *v,
                        const struct task_scores *s)
{
    struct text line = {0};
    text_add(&line, "step %" PRIu64 ": ", r->facts.step);
    if (r->options.task)
        text_add(&line, "epoch %.2f: dev ", (double)r->facts.place / (double)r->data->count);
    else
        text_add(&line, "held-out ");
    v->objective->text(&v->losses, &line);
    text_add(&line, "%s", s->count ? ", " : "");
    task_scores_text(s, &line);
    if (s->count && r->facts.best_step == r->facts.step)
        text_add(&line, " (best so far)");
    run_say(r, text_get(&line));
    text_finish(&line);
}

static void say_data(const struct run *r)
{
    struct text line = {0};
    r->options.objective->describe(r->data, &line);
    if (r->resumed)
        text_add(&line, "; goes on after step %" PRIu64, r->facts.step);
    run_say(r, text_get(&line));
    text_finish(&line);
}

/* Prints the penalty if every entry were on, which shows how its lambda is normalised. */
static void say_learning(const struct run *r)
{
    const struct learn_options *o = &r->options.learn;
    const struct alpha_shape *s = &r->learner->shape;
    const double entries = (double)s->layers * s->heads * s->n * s->n;
    struct text line = {0};
    text_add(&line,
             "learns %s%s: %" PRIu64
             " numbers; penalty: lambda %g times the sum of %s, at most "
             "lambda%s H n^2 = %g",
             learn_kind_names[o->kind], o->code ? " (code)" : "", alpha_count(s), o->lambda,
             o->kind == LEARN_P ? "P" : "M", s->per_layer ? " L" : "", o->lambda * entries);
    run_say(r, text_get(&line));
    text_finish(&line);
    if (r->data->length < s->n)
        run_say(r,
                "samples are shorter than the model's positions: keys beyond them learn from "
                "the penalty alone");
}

void run_say_begin(const struct run *r)
{
    say_data(r);
    if (r->learner)
        say_learning(r);
}
