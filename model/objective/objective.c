/* SPDX-License-Identifier: Apache-2.0 */
#include "model/objective/objective.h"
#include "model/objective/pretrain.h"

#include <string.h>

/* of model/objective/tasks/ */
extern const struct objective objective_classify, objective_regress, objective_choose,
    objective_tokens, objective_span;

/* clang-format off */
const struct objective *const objectives[] = {
    &objective_mlm_nsp,
    &objective_mlm,
    &objective_classify,
    &objective_regress,
    &objective_choose,
    &objective_tokens,
    &objective_span,
    NULL,
};
/* clang-format on */

const struct objective *objective_find(const char *name)
{
    for (uint32_t k = 0; objectives[k]; k++)
        if (!strcmp(objectives[k]->name, name))
            return objectives[k];
    return NULL;
}

double objective_loss(const struct objective *o, const struct batch_loss *l,
                      double ret_mean[TARGETS_MOST])
{
    double loss = 0;
    for (uint32_t k = 0; k < TARGETS_MOST; k++) {
        const struct target_loss *t = &l->target[k];
        ret_mean[k] = t->count ? t->sum / (double)t->count : 0;
        if (k < o->targets)
            loss += o->weight[k] * ret_mean[k];
    }
    return loss;
}
