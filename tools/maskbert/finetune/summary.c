/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/finetune/summary.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct tuned_run *summary_add(struct summary *s, enum summary_part part)
{
    struct tuned_run *r = MEMORY_PUSH(s->run[part], s->runs[part], s->capacity[part]);
    *r = (struct tuned_run){0};
    return r;
}

void summary_finish(struct summary *s)
{
    for (int part = 0; part < SUMMARY_PARTS; part++) {
        for (uint32_t k = 0; k < s->runs[part]; k++)
            free(s->run[part][k].folder);
        free(s->run[part]);
    }
    *s = (struct summary){0};
}

/* ---- numbers ---- */

struct spread {
    double mean, deviation; /* deviation: by n - 1; NaN for one run */
};

static double value_of(const struct summary *s, uint32_t k, int metric)
{
    return s->run[SUMMARY_RUN][k].scores.score[metric].value;
}

static struct spread spread_of(const struct summary *s, int metric)
{
    const uint32_t n = s->runs[SUMMARY_RUN];
    double sum = 0, squares = 0;
    for (uint32_t k = 0; k < n; k++)
        sum += value_of(s, k, metric);
    const double mean = sum / n;
    for (uint32_t k = 0; k < n; k++)
        squares += (value_of(s, k, metric) - mean) * (value_of(s, k, metric) - mean);
    return (struct spread){mean, n > 1 ? sqrt(squares / (n - 1)) : (double)NAN};
}

/* The metrics that each run has. */
static const struct task_scores *metrics_of(const struct summary *s)
{
    return &s->run[SUMMARY_RUN][0].scores;
}

/* ---- for people ---- */

void tuned_run_say(const struct tuned_run *r)
{
    struct text scores = {0};
    task_scores_text(&r->scores, &scores);
    fprintf(stderr, "maskbert: %s: dev %s (%zu examples; best after epoch %.2f)\n", r->folder,
            text_get(&scores), r->examples, r->best_epoch);
    text_finish(&scores);
}

void summary_say(const struct summary *s)
{
    const struct task_scores *m = metrics_of(s);
    if (s->runs[SUMMARY_GRID])
        fprintf(stderr, "maskbert: best of the grid: --lr %g --batch %u\n", s->best.rate,
                s->best.batch);
    for (int k = 0; k < m->count && s->runs[SUMMARY_RUN] > 1; k++) {
        const struct spread x = spread_of(s, k);
        fprintf(stderr, "maskbert: dev %s: mean %.4f, deviation %.4f of %u runs\n",
                m->score[k].name, x.mean, x.deviation, s->runs[SUMMARY_RUN]);
    }
}

/* ---- JSON ---- */

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *run_json(const struct tuned_run *r)
{
    json_t *metrics = json_object();
    for (int k = 0; k < r->scores.count; k++)
        json_object_set_new(metrics, r->scores.score[k].name, real(r->scores.score[k].value));
    return json_pack("{s:s, s:I, s:f, s:I, s:I, s:f, s:f, s:o}", "run", r->folder, "seed",
                     (json_int_t)r->seed, "lr", r->rate, "batch", (json_int_t)r->batch,
                     "repeat", (json_int_t)r->repeat, "best_epoch", r->best_epoch, "elapsed_s",
                     r->elapsed, "metrics", metrics);
}

static json_t *part_json(const struct summary *s, enum summary_part part)
{
    json_t *all = json_array();
    for (uint32_t k = 0; k < s->runs[part]; k++)
        json_array_append_new(all, run_json(&s->run[part][k]));
    return all;
}

static json_t *metric_json(const struct summary *s, int metric)
{
    const struct spread x = spread_of(s, metric);
    json_t *each = json_array();
    for (uint32_t k = 0; k < s->runs[SUMMARY_RUN]; k++)
        json_array_append_new(each, real(value_of(s, k, metric)));
    return json_pack("{s:s, s:o, s:o, s:o}", "name", metrics_of(s)->score[metric].name, "mean",
                     real(x.mean), "deviation", real(x.deviation), "each", each);
}

static json_t *summary_json(const struct summary *s)
{
    const struct task_scores *m = metrics_of(s);
    json_t *metrics = json_object();
    for (int k = 0; k < m->count; k++)
        json_object_set_new(metrics, m->score[k].name, metric_json(s, k));
    json_t *all = json_pack("{s:s, s:s, s:I, s:o, s:o, s:o}", "task", s->task->name, "split",
                            "dev", "examples", (json_int_t)s->run[SUMMARY_RUN][0].examples,
                            "metric", metric_json(s, m->chief), "metrics", metrics, "runs",
                            part_json(s, SUMMARY_RUN));
    if (s->runs[SUMMARY_GRID])
        json_object_set_new(all, "grid", part_json(s, SUMMARY_GRID));
    return all;
}

int summary_write(const struct summary *s, const char *folder, struct error *e)
{
    json_t *json = summary_json(s);
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    int r = json_write_line(folder, "summary.json", text, e);
    free(text);
    json_decref(json);
    return r;
}

void summary_print_json(const struct summary *s)
{
    json_t *json = summary_json(s);
    json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(json);
}

/* ---- CSV ---- */

/* In quotes, with those inside doubled, as RFC 4180 has it. */
static void print_quoted(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

void summary_print_csv(const struct summary *s)
{
    static const char *const name[SUMMARY_PARTS] = {"run", "grid"};
    const struct task_scores *m = metrics_of(s);
    printf("part,run,seed,lr,batch,repeat,best_epoch,elapsed_s");
    for (int k = 0; k < m->count; k++)
        printf(",%s", m->score[k].name);
    putchar('\n');
    for (int part = SUMMARY_PARTS - 1; part >= 0; part--)
        for (uint32_t k = 0; k < s->runs[part]; k++) {
            const struct tuned_run *r = &s->run[part][k];
            printf("%s,", name[part]);
            print_quoted(r->folder);
            printf(",%" PRIu64 ",%.9g,%u,%u,%.4f,%.3f", r->seed, r->rate, r->batch, r->repeat,
                   r->best_epoch, r->elapsed);
            for (int i = 0; i < m->count; i++)
                printf(",%.9g", r->scores.score[i].value);
            putchar('\n');
        }
}
