/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/subject.h"
#include "masks/base/memory.h"
#include "tests/support/test.h"
#include "tests/train/far_memory.h"
#include <stdlib.h>

static void make_batch(struct train_subject *s, bool no_pairs)
{
    struct train_batch *b = &s->batch;
    batch_make(&s->tokens);
    batch_suit(&s->tokens, &s->engine->config);
    for (uint32_t k = 0; k < SEQUENCES;
         k++) /* the padding token's row has no gradient to compare */
        for (uint32_t i = 0; i < s->tokens.list[k].count; i++)
            s->tokens.token_ids[k][i] += s->tokens.token_ids[k][i] == s->engine->config.pad;
    *b = (struct train_batch){.sequences = SEQUENCES,
                              .list = s->tokens.list,
                              .offsets = s->offsets,
                              .sample = s->sample,
                              .targets = no_pairs ? 1 : 2};
    for (uint32_t k = 0; k < SEQUENCES; k++) {
        s->first[k] = b->tokens;
        b->tokens += b->list[k].count;
        s->offsets[k + 1] = (int32_t)b->tokens;
        s->sample[k] = 1000 + random_draw(1000);
        s->next[k] = random_draw(2);
    }
    uint32_t masked = 0;
    for (uint32_t r = random_draw(5); r < b->tokens && masked < MASKED;
         r += 1 + random_draw(9)) {
        s->row[masked] = r;
        s->label[masked++] = random_draw(VOCABULARY);
    }
    b->target[SUBJECT_WORDS] = (struct train_target){TARGET_WORDS, masked, s->row, s->label};
    b->target[SUBJECT_NEXT] = (struct train_target){TARGET_NEXT, SEQUENCES, s->first, s->next};
}

static bool is_far;

void subjects_are_far(void)
{
    is_far = true;
}

static const char *on;

void subjects_are_on(const char *device)
{
    on = device;
}

void subject_begin(struct train_subject *s, const struct subject_options *o)
{
    struct error e = {0};
    const uint32_t usual = PART_MLM | (o->no_pairs ? 0 : PART_POOLER | PART_NSP);
    const struct engine_options options = {.mask = o->mask,
                                           .transform = o->transform,
                                           .dtype = o->dtype,
                                           .threads = o->threads,
                                           .backend = is_far ? far_backend() : NULL,
                                           .device = on,
                                           .parts = o->parts ? o->parts : usual,
                                           .trains = true,
                                           .dropout = true};
    *s = (struct train_subject){.engine = engine_load(random_folder, &options, &e)};
    if (!s->engine || train_state_new(s->engine, &s->state, &e) < 0 ||
        (!o->as_loaded && engine_repack(s->engine, &e) < 0))
        fail_msg("%s", e.text);
    s->workspace = gradients_workspace_new(s->engine);
    make_batch(s, o->no_pairs);
}

void subject_end(struct train_subject *s)
{
    gradients_workspace_destroy(s->workspace);
    train_state_destroy(s->state);
    engine_destroy(s->engine);
}

struct gradients_request subject_request(const struct train_subject *s)
{
    struct gradients_request r = {
        .engine = s->engine, .state = s->state, .batch = &s->batch, .seed = 5};
    for (uint32_t k = 0; k < s->batch.targets; k++)
        r.weight[k] = 1.0 / s->batch.target[k].count;
    return r;
}

struct batch_loss subject_run(struct train_subject *s, const struct gradients_request *r)
{
    struct error e = {0};
    struct batch_loss loss = {0};
    if (train_state_clear(s->state, s->engine->threads, &e) < 0 ||
        gradients_compute(r, s->workspace, &loss, &e) < 0)
        fail_msg("%s", e.text);
    return loss;
}

void state_read(const struct train_state *s, const float *from, uint64_t count, float *ret)
{
    struct error e = {0};
    if (s->device.does->array_read(s->device.state, from, count, ret, &e) < 0)
        fail_msg("%s", e.text);
}

void state_write(const struct train_state *s, float *to, uint64_t count, const float *value)
{
    struct error e = {0};
    if (s->device.does->array_write(s->device.state, to, count, value, &e) < 0)
        fail_msg("%s", e.text);
}

float *state_gradient(const struct train_state *s)
{
    float *ret = memory_new(s->count, sizeof *ret);
    state_read(s, s->gradient, s->count, ret);
    return ret;
}

void state_shake(const struct train_state *s)
{
    float *value = memory_new(s->count, sizeof *value);
    state_read(s, s->value, s->count, value);
    for (uint64_t i = 0; i < s->count; i++)
        value[i] *= 0.9F + (float)random_draw(200) / 1000;
    state_write(s, s->value, s->count, value);
    free(value);
}

double total_loss(const struct gradients_request *r, const struct batch_loss *l)
{
    double ret = 0;
    for (uint32_t k = 0; k < r->batch->targets; k++)
        ret += r->weight[k] * l->target[k].sum;
    return ret;
}
