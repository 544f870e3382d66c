/* SPDX-License-Identifier: Apache-2.0 */
#include "model/score/score.h"
#include "masks/base/memory.h"
#include "model/score/answers.h"
#include "model/score/classification.h"
#include "model/score/correlation.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- classes ---- */

struct pairs {
    uint32_t *gold, *found;
    size_t count;
    uint32_t classes; /* those of the gold labels, then those that were only predicted */
    const char **name;
    size_t named, capacity;
};

static uint32_t class_of(struct pairs *p, const char *name)
{
    for (size_t k = 0; k < p->named; k++)
        if (!strcmp(p->name[k], name))
            return (uint32_t)k;
    *MEMORY_PUSH(p->name, p->named, p->capacity) = name;
    return (uint32_t)p->named - 1;
}

static size_t count_labels(const struct dataset *d)
{
    size_t count = 0;
    for (size_t k = 0; k < d->count; k++)
        count += d->example[k].labels;
    return count;
}

static struct pairs pairs_of(const struct dataset *d, const struct predictions *p)
{
    size_t count = count_labels(d);
    struct pairs s = {.gold = memory_new(count, sizeof *s.gold),
                      .found = memory_new(count, sizeof *s.found)};
    for (uint32_t k = 0; k < d->n_classes; k++)
        class_of(&s, d->classes[k]);
    for (size_t k = 0; k < d->count; k++)
        for (uint32_t j = 0; j < d->example[k].labels; j++) {
            s.gold[s.count] = d->example[k].class_of[j];
            s.found[s.count++] = class_of(&s, p->of[k].part[j]);
        }
    s.classes = (uint32_t)s.named;
    return s;
}

static int score_classes(const struct dataset *d, const struct predictions *p,
                         struct score ret[SCORES])
{
    struct pairs s = pairs_of(d, p);
    int n = 0, positive = dataset_class(d, "1");
    if (d->task->metrics & METRIC_ACCURACY)
        ret[n++] = (struct score){"accuracy", score_accuracy(s.gold, s.found, s.count)};
    if (d->task->metrics & METRIC_F1)
        ret[n++] = (struct score){"f1", score_f1(s.gold, s.found, s.count, (uint32_t)positive)};
    if (d->task->metrics & METRIC_MATTHEWS)
        ret[n++] =
            (struct score){"matthews", score_matthews(s.gold, s.found, s.count, s.classes)};
    free(s.gold);
    free(s.found);
    free(s.name);
    return n;
}

/* ---- numbers ---- */

static int score_numbers(const struct dataset *d, const struct predictions *p,
                         struct score ret[SCORES])
{
    double *gold = memory_new(d->count, sizeof *gold);
    double *found = memory_new(d->count, sizeof *found);
    for (size_t k = 0; k < d->count; k++) {
        gold[k] = d->example[k].value;
        dataset_number(p->of[k].part[0], &found[k]);
    }
    ret[0] = (struct score){"pearson", score_pearson(gold, found, d->count)};
    ret[1] = (struct score){"spearman", score_spearman(gold, found, d->count)};
    free(gold);
    free(found);
    return 2;
}

/* ---- answers ---- */

struct answer_sum {
    double exact, f1;
    size_t count;
};

static double percent(double sum, size_t count)
{
    return count ? 100 * sum / (double)count : NAN;
}

static int score_answers(const struct dataset *d, const struct predictions *p,
                         struct score ret[SCORES])
{
    enum answer_rules rules = d->task->unanswerable ? ANSWERS_V2 : ANSWERS_V1;
    struct answer_sum sum[2] = {{0}}; /* without an answer, with one */
    for (size_t k = 0; k < d->count; k++) {
        const struct task_example *x = &d->example[k];
        struct answer_score s = answer_score(p->of[k].part[0], x->gold, x->golds, rules);
        struct answer_sum *to = &sum[x->golds > 0];
        to->exact += s.exact;
        to->f1 += s.f1;
        to->count++;
    }
    ret[0] = (struct score){"exact_match", percent(sum[0].exact + sum[1].exact, d->count)};
    ret[1] = (struct score){"f1", percent(sum[0].f1 + sum[1].f1, d->count)};
    if (rules == ANSWERS_V1)
        return 2;
    ret[2] = (struct score){"has_answer_exact_match", percent(sum[1].exact, sum[1].count)};
    ret[3] = (struct score){"has_answer_f1", percent(sum[1].f1, sum[1].count)};
    ret[4] = (struct score){"no_answer_exact_match", percent(sum[0].exact, sum[0].count)};
    ret[5] = (struct score){"no_answer_f1", percent(sum[0].f1, sum[0].count)};
    return 6;
}

int score_predictions(const struct dataset *d, const struct predictions *p,
                      struct score ret[SCORES])
{
    if (d->task->format == TASK_ANSWERS)
        return score_answers(d, p, ret);
    return d->numbers ? score_numbers(d, p, ret) : score_classes(d, p, ret);
}

struct task_scores task_scores_of(const struct dataset *d, const struct predictions *p)
{
    struct task_scores s = {.chief = d->task->format == TASK_ANSWERS ? 1 : 0};
    s.count = score_predictions(d, p, s.score);
    return s;
}

void task_scores_text(const struct task_scores *s, struct text *to)
{
    for (int k = 0; k < s->count; k++)
        text_add(to, "%s%s %.4f", k ? ", " : "", s->score[k].name, s->score[k].value);
}
