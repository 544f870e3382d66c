/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/flops.h"
#include "model/engine/encoder.h"
#include "runtime/pipeline/calibration.h"
#include <string.h>

static double mask_share(const struct engine *g)
{
    const struct mask *m = g->encoder->attention.mask;
    double sum = 0, all = (double)m->layers * m->heads;
    for (uint32_t k = 0; k < m->layers * m->heads; k++)
        sum += (double)m->pattern[m->at[k]]->active;
    return sum / all / ((double)m->n * m->n);
}

double batch_flops(const struct engine *g, const struct train_batch *b)
{
    const struct encoder *c = g->encoder;
    const double hidden = g->config.hidden, inner = g->config.intermediate,
                 first =
                     c->feed.slices * c->layer->inner->shape.out, /* 2 I where it is gated */
        layer = 4 * hidden * hidden + hidden * (first + inner),
                 word = hidden * hidden + hidden * g->config.vocabulary;
    double pairs = 0, heads = 0;
    for (uint32_t k = 0; k < b->targets; k++) {
        const enum target_head head = b->target[k].head;
        const double row = head == TARGET_WORDS ? word
                           : target_form(head)->pooled
                               ? hidden * hidden
                               : hidden * target_labels(&g->config, head);
        heads += b->target[k].count * row;
    }
    for (uint32_t k = 0; k < b->sequences; k++)
        pairs += (double)b->list[k].count * b->list[k].count;
    /* Multiply and add are two; S = Q K^T and P V are two products. */
    return 3 * 2 *
           (g->config.layers * (b->tokens * layer + 2 * pairs * hidden * mask_share(g)) +
            heads);
}

double machine_peak(const struct engine *g)
{
    struct calibration *c = NULL;
    struct error ignored = {0};
    double ret = 0;
    if (strcmp(g->device, "cpu") != 0)
        return 0;
    if (calibration_load(&c, &ignored) == 0 && c) {
        const struct ceilings *p = &c->ceilings;
        ret = g->dtype == ELEMENT_BF16 && p->matrix > 0 ? p->matrix : p->flops;
    }
    calibration_destroy(c);
    return ret * g->threads;
}
