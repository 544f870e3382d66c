/* SPDX-License-Identifier: Apache-2.0 */
/* An evaluation as people read it. */
#include "model/train/pretrain/pretrainer.h"

void evaluation_text(const struct evaluation *v, struct text *to)
{
    text_add(to, "MLM loss %.4f, perplexity %.3f, accuracy %.2f %% of the masked tokens",
             v->mlm, v->perplexity, 100 * v->accuracy);
    if (v->pairs)
        text_add(to, "; NSP loss %.4f, accuracy %.2f %%; sum of losses %.4f", v->next,
                 100 * v->next_accuracy, v->loss);
}
