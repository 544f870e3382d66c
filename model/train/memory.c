/* SPDX-License-Identifier: Apache-2.0 */
/* The prediction. It counts what is laid out; model/train/memory_measure.c sees what is there. */
#include "model/train/memory.h"
#include "model/train/part_sums.h"

uint64_t train_memory_total(const struct train_memory *m)
{
    return m->parameters + m->gradients + m->optimizer + m->activations + m->attention;
}

/* Number of masked tokens, as masking selects them: 15 % of each sequence. */
static uint32_t masked_of(uint32_t length)
{
    const uint32_t masked = (uint32_t)(0.15 * length + 0.5);
    return masked ? masked : 1;
}

int train_memory_sizes(const struct engine *g, const struct memory_request *r,
                       struct gradients_sizes *ret, struct error *e)
{
    const uint32_t parts = r->accumulate ? r->accumulate : 1;
    if (!r->batch || parts > r->batch)
        return error_set(e, ERROR_INPUT, "--accumulate %u: at most the batch, %u, is expected",
                         parts, r->batch);
    if (!r->length || r->length > g->config.positions)
        return error_set(e, ERROR_INPUT, "-n %u: the model has %u positions", r->length,
                         g->config.positions);
    const uint64_t sequences = (r->batch + (uint64_t)parts - 1) / parts;
    if (sequences * r->length > INT32_MAX / 2)
        return error_set(e, ERROR_INPUT, "--batch %u: at most %d tokens in one part", r->batch,
                         INT32_MAX / 2);
    *ret = (struct gradients_sizes){
        .sequences = (uint32_t)sequences,
        .tokens = (uint32_t)sequences * r->length,
        .longest = r->length,
        .words = g->parts & PART_MLM ? (uint32_t)sequences * masked_of(r->length) : 0,
        .labels = g->parts & PART_NSP ? (uint32_t)sequences : 0,
        .pooled = g->parts & PART_NSP ? (uint32_t)sequences : 0,
        .recompute = r->recompute,
        .read = (g->parts & (PART_MLM | PART_NSP)) == PART_NSP ? (uint32_t)sequences : 0,
    };
    return 0;
}

int train_memory_predict(const struct engine *g, const struct memory_request *r,
                         struct train_memory *ret, struct error *e)
{
    struct gradients_sizes s;
    struct gradients_memory p;
    if (train_memory_sizes(g, r, &s, e) < 0 || gradients_memory(g, &s, &p, e) < 0)
        return -1;
    const uint64_t bytes = train_device(g).does->array_bytes(train_state_count(g));
    *ret = (struct train_memory){
        .parameters = bytes + p.weights,
        .gradients = bytes * (1 + parts_extra(r->accumulate, 1)),
        .optimizer = 2 * bytes,
        .activations = p.activations + p.heads,
        .attention = p.attention,
    };
    return 0;
}
