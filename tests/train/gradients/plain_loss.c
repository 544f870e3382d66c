/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/gradients/plain_loss.h"
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include <math.h>
#include <stdlib.h>

/* ---- logits ---- */

/* The pooler of a row; kept: dropout before a dense layer that has one. */
static double *pool(const struct plain_bert *b, const double *x, const float *kept)
{
    const uint32_t h = b->config->hidden;
    double *own = memory_copy(x, h * sizeof *x);
    if (kept && arch_pooler(b->config) == POOLER_DROPS)
        for (uint32_t k = 0; k < h; k++)
            own[k] *= (double)kept[k];
    double *ret = plain_pooled(b, own);
    free(own);
    return ret;
}

/* Returns the logits of row x: the linear layer of the target's head, after the pooler where it has one. */
static double *label_logits(const struct plain_bert *b, enum target_head head, const double *x,
                            const float *kept)
{
    const uint32_t h = b->config->hidden, labels = target_labels(b->config, head);
    const struct target_form *form = target_form(head);
    float *w = plain_tensor(b, form->weight, 0), *bias = plain_tensor(b, form->bias, 0);
    const bool shared = arch_pooler(b->config) == POOLER_SHARED;
    double *pooled = form->pooled || shared ? pool(b, x, kept ? kept + h : NULL) : NULL,
           *z = memory_new(labels, sizeof *z);
    for (uint32_t c = 0; c < labels; c++) {
        z[c] = (double)bias[c];
        for (uint32_t k = 0; k < h; k++)
            z[c] += (pooled ? pooled[k] : x[k]) * (kept ? (double)kept[k] : 1) *
                    (double)w[c * h + k];
    }
    free(pooled);
    free(w);
    free(bias);
    return z;
}

static double *row_logits(const struct plain_bert *b, enum target_head head, const double *x,
                          const float *kept)
{
    return head == TARGET_WORDS ? plain_words(b, x) : label_logits(b, head, x, kept);
}

static double *mean_of(const double *x, uint32_t rows, uint32_t h)
{
    double *ret = memory_new(h, sizeof *ret);
    for (size_t k = 0; k < (size_t)rows * h; k++)
        ret[k % h] += x[k] / rows;
    return ret;
}

/* Logits of all rows of all targets, one after another; caller frees them and the list. */
static double **all_logits(const struct plain_bert *b, const struct train_batch *batch,
                           const float *kept)
{
    const uint32_t h = b->config->hidden;
    double **ret = memory_new(train_batch_rows(batch), sizeof *ret);
#pragma omp parallel for num_threads(2) schedule(dynamic, 1)
    for (uint32_t s = 0; s < batch->sequences; s++) {
        const uint32_t first = (uint32_t)batch->offsets[s],
                       end = (uint32_t)batch->offsets[s + 1];
        double *x = plain_hidden(b, &batch->list[s]);
        double *mean = mean_of(x, end - first, h);
        uint64_t at = 0;
        for (uint32_t t = 0; t < batch->targets; t++)
            for (uint32_t k = 0; k < batch->target[t].count; k++, at++) {
                const uint32_t row = batch->target[t].row[k];
                if (row >= first && row < end)
                    ret[at] = row_logits(b, batch->target[t].head,
                                         target_form(batch->target[t].head)->pooled &&
                                                 b->config->mean_pooling
                                             ? mean
                                             : x + (size_t)(row - first) * h,
                                         kept ? kept + at * 2 * h : NULL);
            }
        free(x);
        free(mean);
    }
    return ret;
}

static void free_logits(double **z, const struct train_batch *batch)
{
    for (uint64_t k = 0; k < train_batch_rows(batch); k++)
        free(z[k]);
    free(z);
}

/* ---- losses ---- */

static double cross_entropy(const double *z, uint32_t n, uint32_t label)
{
    double most = -HUGE_VAL, sum = 0;
    for (uint32_t k = 0; k < n; k++)
        most = fmax(most, z[k]);
    for (uint32_t k = 0; k < n; k++)
        sum += exp(z[k] - most);
    return most + log(sum) - z[label];
}

/* A target with the logits of its rows. */
struct judged {
    const struct plain_bert *bert;
    const struct train_batch *batch;
    const struct train_target *target;
    double **z;
};

static uint32_t sequence_of(const struct train_batch *b, uint32_t row)
{
    uint32_t s = 0;
    while ((uint32_t)b->offsets[s + 1] <= row)
        s++;
    return s;
}

/* Whether two rows are of one group (CHOICE) or of one sequence (SPAN). */
static bool compete(const struct judged *j, uint32_t a, uint32_t b)
{
    const uint32_t of = j->target->loss == LOSS_CHOICE ? j->batch->group : 1;
    return sequence_of(j->batch, j->target->row[a]) / of ==
           sequence_of(j->batch, j->target->row[b]) / of;
}

/* The cross-entropy of row k among those that it competes with. */
static double among_rows(const struct judged *j, uint32_t k, uint32_t label)
{
    const double own = j->z[k][label];
    double most = own, sum = 0;
    for (uint32_t i = 0; i < j->target->count; i++)
        if (compete(j, i, k))
            most = fmax(most, j->z[i][label]);
    for (uint32_t i = 0; i < j->target->count; i++)
        if (compete(j, i, k))
            sum += exp(j->z[i][label] - most);
    return most - own + log(sum);
}

static double target_loss(const struct judged *j)
{
    const struct train_target *t = j->target;
    const uint32_t labels = target_labels(j->bert->config, t->head);
    double ret = 0;
    for (uint32_t k = 0; k < t->count; k++) {
        if (t->loss == LOSS_LABELS)
            ret += cross_entropy(j->z[k], labels, t->label[k]);
        if (t->loss == LOSS_SQUARE)
            ret += pow(j->z[k][0] - (double)t->value[k], 2);
        if (t->loss == LOSS_CHOICE && t->label[k])
            ret += among_rows(j, k, 0);
        for (uint32_t bit = 0; bit < 2 && t->loss == LOSS_SPAN; bit++)
            if (t->label[k] >> bit & 1)
                ret += among_rows(j, k, bit) / 2;
    }
    return ret;
}

double plain_loss(const struct plain_bert *b, const struct gradients_request *r,
                  const float *kept)
{
    double **z = all_logits(b, r->batch, kept), **at = z, ret = 0;
    for (uint32_t k = 0; k < r->batch->targets; k++) {
        const struct train_target *t = &r->batch->target[k];
        ret += r->weight[k] * target_loss(&(struct judged){b, r->batch, t, at});
        at += t->count;
    }
    free_logits(z, r->batch);
    return ret;
}

/* ---- right ones ---- */

/* Returns whether the prediction may be `own` rather than `other`, if logits are wrong by up to `slack`. Of two equal logits the first
   is the prediction; `first`: `own` comes before `other`. */
static bool exceeds(double own, double other, bool first, double slack)
{
    return first ? own + slack >= other : own + slack > other;
}

static bool label_is_right(const double *z, uint32_t labels, uint32_t label, double slack)
{
    for (uint32_t c = 0; c < labels; c++)
        if (c != label && !exceeds(z[label], z[c], label < c, slack))
            return false;
    return true;
}

static bool row_is_right(const struct judged *j, uint32_t k, uint32_t label, double slack)
{
    for (uint32_t i = 0; i < j->target->count; i++)
        if (i != k && compete(j, i, k) &&
            !exceeds(j->z[k][label], j->z[i][label], k < i, slack))
            return false;
    return true;
}

/* A span counts at its start, where its end is right too. */
static bool span_is_right(const struct judged *j, uint32_t start, double slack)
{
    bool ret = row_is_right(j, start, 0, slack);
    for (uint32_t k = 0; k < j->target->count; k++)
        if (j->target->label[k] & 2 && compete(j, k, start))
            ret &= row_is_right(j, k, 1, slack);
    return ret;
}

uint32_t plain_right(const struct plain_bert *b, const struct gradients_request *r,
                     uint32_t target, double slack)
{
    double **z = all_logits(b, r->batch, NULL), **at = z;
    const struct train_target *t = &r->batch->target[target];
    uint32_t ret = 0;
    for (uint32_t k = 0; k < target; k++)
        at += r->batch->target[k].count;
    const struct judged j = {b, r->batch, t, at};
    for (uint32_t k = 0; k < t->count; k++) {
        bool right = false;
        if (t->loss == LOSS_LABELS)
            right =
                label_is_right(at[k], target_labels(b->config, t->head), t->label[k], slack);
        if (t->loss == LOSS_CHOICE && t->label[k])
            right = row_is_right(&j, k, 0, slack);
        if (t->loss == LOSS_SPAN && t->label[k] & 1)
            right = span_is_right(&j, k, slack);
        ret += right;
    }
    free_logits(z, r->batch);
    return ret;
}
