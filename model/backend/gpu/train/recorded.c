/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of passes: the forward pass and the way back through each layer. Heads, embeddings and sums over ranks lie between
   them and are submitted one by one. The first pass of a key runs as it is, so that what a library does once is done; the
   second one is recorded. If a recording fails, passes go on without. */
#include "masks/base/memory.h"
#include "model/backend/gpu/train/train.h"
#include <stdlib.h>
#include <string.h>

static struct batch_key key_of(const struct op_batch *p)
{
    static const struct trained_bias none;
    const struct gradients_request *r = p->request;
    const struct trained_bias *b = r->bias ? r->bias : &none;
    return (struct batch_key){.value = r->state->value,
                              .gradient = r->state->gradient,
                              .bias = b->value,
                              .bias_gradient = b->gradient,
                              .bias_part = b->part,
                              .attention = p->c->attention.kernel,
                              .bias_form = (uint64_t)b->per_layer | (uint64_t)b->diagonals << 1,
                              .seed = r->seed,
                              .hidden_dropout = r->hidden_dropout,
                              .attention_dropout = r->attention_dropout,
                              .sequences = p->sizes.sequences,
                              .tokens = p->sizes.tokens,
                              .longest = p->sizes.longest,
                              .recompute = (uint64_t)r->recompute,
                              .loss_only = r->loss_only};
}

/* ---- keeping ---- */

static void forget(const struct backend_training *m, struct recorded_batch *r)
{
    const struct backend_state *s = m->ops.state;
    for (uint32_t k = 0; k < m->segments; k++)
        if (r->segment[k])
            s->driver->forget(s->gpu, r->segment[k]);
    free(r->segment);
    *r = (struct recorded_batch){0};
}

void gpu_train_forget(struct backend_training *m)
{
    struct recorded_batches *all = &m->recorded;
    for (uint32_t k = 0; k < all->count; k++)
        forget(m, &all->each[k]);
    all->count = all->next = 0;
}

static struct recorded_batch *find(struct recorded_batches *all, const struct batch_key *key)
{
    for (uint32_t k = 0; k < all->count; k++)
        if (!memcmp(&all->each[k].key, key, sizeof *key))
            return &all->each[k];
    return NULL;
}

/* A place for this key. If all are used, the oldest one is forgotten. */
static struct recorded_batch *remember(struct backend_training *m, const struct batch_key *key)
{
    struct recorded_batches *all = &m->recorded;
    struct recorded_batch *ret = &all->each[all->next];
    if (all->next < all->count)
        forget(m, ret);
    ret->key = *key;
    ret->segment = memory_new(m->segments, sizeof(struct recording *));
    all->count += all->count < RECORDED_BATCHES;
    all->next = (all->next + 1) % RECORDED_BATCHES;
    return ret;
}

void gpu_train_find_recorded(struct op_batch *p)
{
    const struct backend_state *s = p->state;
    const struct batch_key key = key_of(p);
    p->recorded = NULL;
    if (!s->driver->record || p->request->no_graphs || s->no_graphs)
        return;
    p->recorded = find(&p->memory->recorded, &key);
    p->repeats = p->recorded != NULL;
    if (!p->recorded)
        p->recorded = remember(p->memory, &key);
}

/* ---- recording ---- */

/* Launches are counted when they are submitted, that is, when the recording is replayed. */
static struct recording *record(struct op_batch *p, const struct segment *s, struct error *e)
{
    struct backend_state *b = p->state;
    struct gpu_stream *products = &p->memory->ops.stream;
    const uint64_t before = b->stream.launches, before_products = products->launches;
    struct error ignored;
    if (b->driver->record(b->gpu, &b->stream, e) < 0)
        return NULL;
    const int r = s->run(p, s->index, e);
    struct recording *ret = b->driver->record_end(b->gpu, &b->stream, r < 0 ? &ignored : e);
    b->stream.launches = before;
    products->launches = before_products;
    if (r == 0)
        return ret;
    if (ret)
        b->driver->forget(b->gpu, ret);
    return NULL;
}

static void give_up(struct op_batch *p, const struct error *why)
{
    p->state->no_graphs = memory_copy(why->text, strlen(why->text) + 1);
    p->memory->sums = (struct pending_sums){0};
    p->recorded = NULL;
}

int gpu_train_segment(struct op_batch *p, const struct segment *s, struct error *e)
{
    struct backend_state *b = p->state;
    struct error why;
    if (!p->recorded || !p->repeats)
        return s->run(p, s->index, e);
    struct recording **to = &p->recorded->segment[s->index];
    if (!*to)
        *to = record(p, s, &why);
    if (*to)
        return b->driver->replay(b->gpu, &b->stream, *to, e);
    give_up(p, &why);
    return s->run(p, s->index, e);
}
