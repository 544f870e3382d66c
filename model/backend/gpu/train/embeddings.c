/* SPDX-License-Identifier: Apache-2.0 */
/* The way back through the embeddings: their dropout and LayerNorm, then sums of the rows of each word, position and
   type, without atomics: pieces of rows first, then the pieces of each. */
#include "model/backend/gpu/train/train.h"
#include "model/gradients/linear_gradients.h"

static int drop(const struct op_batch *p, float *d, struct error *e)
{
    struct train_args args = {.rows = p->sizes.tokens, .wide_y = 1, .d = d, .y = d};
    gpu_train_drop(p, SITE_EMBEDDINGS, &args);
    return args.keep_below ? gpu_train_run(p, TRAIN_OP_NORM_BACK, &args, e) : 0;
}

static int add_rows(const struct op_batch *p, const struct segments *s, const float *d,
                    float *table, struct error *e)
{
    const struct train_args pieces = {.rows = s->pieces,
                                      .wide = 1,
                                      .begin = p->staged + s->begin,
                                      .from = p->staged + s->from,
                                      .x = d,
                                      .y = p->sum},
                            whole = {.rows = s->targets,
                                     .wide = 1,
                                     .adds = 1,
                                     .begin = p->staged + s->begin_of_target,
                                     .target = p->staged + s->target,
                                     .x = p->sum,
                                     .y = table};
    return !table ? 0
           : gpu_train_run(p, TRAIN_OP_SEGMENTS, &pieces, e) < 0
               ? -1
               : gpu_train_run(p, TRAIN_OP_SEGMENTS, &whole, e);
}

int gpu_train_embeddings(const struct op_batch *p, float *d, struct error *e)
{
    const struct train_state *s = p->request->state;
    const struct norm_back norm = {&p->c->embeddings.norm,
                                   &p->tape.embeddings_norm,
                                   p->sizes.tokens,
                                   0,
                                   PARAMETER_EMBEDDINGS_GAIN,
                                   PARAMETER_EMBEDDINGS_SHIFT,
                                   true};
    const struct {
        const struct segments *rows;
        enum parameter_id id;
    } tables[] = {{&p->inputs.words, PARAMETER_WORDS},
                  {&p->inputs.positions, PARAMETER_POSITIONS},
                  {&p->inputs.types, PARAMETER_TYPES}};
    if (drop(p, d, e) < 0 || gpu_train_norm_back(p, &norm, d, e) < 0)
        return -1;
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        if (add_rows(p, tables[k].rows, d, train_state_gradient(s, tables[k].id, 0), e) < 0)
            return -1;
    return 0;
}
