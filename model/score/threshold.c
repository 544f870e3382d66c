/* SPDX-License-Identifier: Apache-2.0 */
#include "model/score/threshold.h"
#include "masks/base/memory.h"
#include "model/score/answers.h"
#include <math.h>
#include <stdlib.h>

struct question {
    double none;
    double exact, f1; /* what answering it adds, less what leaving it out does */
};

static int by_none(const void *a, const void *b)
{
    const double x = ((const struct question *)a)->none, y = ((const struct question *)b)->none;
    return x < y ? -1 : x > y;
}

/* A question without an answer is right while it gets none. */
static struct question question_of(const struct dataset *d, const struct predictions *found,
                                   const double *none, size_t k)
{
    const struct task_example *x = &d->example[k];
    const struct answer_score s =
        answer_score(found->of[k].part[0], x->gold, x->golds, ANSWERS_V2);
    const double left_out = x->golds ? 0 : 1;
    return (struct question){none[k], s.exact - left_out, s.f1 - left_out};
}

/* The sum rises from `least`, question by question; equal scores count together. */
static void climb(const struct question *q, size_t count, double least,
                  struct best_threshold *ret)
{
    double exact = least, f1 = least;
    *ret = (struct best_threshold){least, -INFINITY, least, -INFINITY};
    for (size_t k = 0; k < count; k++) {
        exact += q[k].exact;
        f1 += q[k].f1;
        if (k + 1 < count && q[k + 1].none == q[k].none)
            continue;
        if (exact > ret->exact) {
            ret->exact = exact;
            ret->exact_threshold = q[k].none;
        }
        if (f1 > ret->f1) {
            ret->f1 = f1;
            ret->f1_threshold = q[k].none;
        }
    }
}

struct best_threshold score_best_threshold(const struct dataset *d,
                                           const struct predictions *found, const double *none)
{
    struct best_threshold ret;
    struct question *q = memory_new(d->count, sizeof *q);
    double unanswerable = 0;
    for (size_t k = 0; k < d->count; k++) {
        q[k] = question_of(d, found, none, k);
        unanswerable += d->example[k].golds == 0;
    }
    qsort(q, d->count, sizeof *q, by_none);
    climb(q, d->count, unanswerable, &ret);
    free(q);
    ret.exact *= 100 / (double)d->count;
    ret.f1 *= 100 / (double)d->count;
    return ret;
}
