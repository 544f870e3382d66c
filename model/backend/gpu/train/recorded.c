/* SPDX-License-Identifier: Apache-2.0 */
/* Passes recorded as CUDA graphs, in segments. Copies, sums over ranks and the host's loss of targets with few labels run
   between segments. After a failed recording, passes are no longer recorded. */
#include "masks/base/memory.h"
#include "model/backend/gpu/train/train.h"

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

static struct heads_key heads_key_of(const struct op_batch *p)
{
    const struct train_batch *b = p->request->batch;
    struct heads_key ret = {.batch = key_of(p), .dropout = p->request->head_dropout};
    for (uint32_t k = 0; k < b->targets; k++) {
        ret.target[k].head = (uint64_t)b->target[k].head;
        ret.target[k].rows = gpu_train_target_rows(&b->target[k]);
    }
    return ret;
}

void gpu_train_forget(struct backend_training *m)
{
    gpu_recordings_forget(m->ops.state, &m->passes);
    gpu_recordings_forget(m->ops.state, &m->heads);
}

void gpu_train_find_recorded(struct op_batch *p)
{
    struct backend_state *s = p->state;
    const struct batch_key key = key_of(p);
    const struct heads_key heads = heads_key_of(p);
    p->recorded = p->recorded_heads = NULL;
    s->records = s->driver->record && !p->request->no_graphs && !s->no_graphs;
    if (!s->records)
        return;
    p->recorded = gpu_recordings_find(s, &p->memory->passes, &key, sizeof key);
    p->recorded_heads = gpu_recordings_find(s, &p->memory->heads, &heads, sizeof heads);
}

void gpu_give_up_graphs(struct backend_state *s, const struct error *why)
{
    s->no_graphs = memory_text(why->text);
    s->records = false;
}

static void give_up(struct op_batch *p, const struct error *why)
{
    gpu_give_up_graphs(p->state, why);
    p->memory->sums = (struct pending_sums){0};
    p->recorded = p->recorded_heads = NULL;
}

int gpu_train_segment(struct op_batch *p, const struct train_segment *s, struct error *e)
{
    struct backend_state *b = p->state;
    struct recorded *of = s->of_heads ? p->recorded_heads : p->recorded;
    const struct segment part = {of, s->index, s->run, p};
    const uint64_t products = p->memory->ops.stream.launches;
    struct error why;
    if (!of || !of->repeats)
        return s->run(p, s->index, e);
    const struct recording *recording = gpu_recording_of(b, &b->stream, &part, &why);
    p->memory->ops.stream.launches = products; /* the replay is counted */
    if (!recording) {
        give_up(p, &why);
        return s->run(p, s->index, e);
    }
    return b->driver->replay(b->gpu, &b->stream, recording, e);
}
