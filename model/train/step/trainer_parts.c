/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/step/trainer_parts.h"

/* Adds the losses of a range, which may be empty, and its gradients to those of *r. */
static int run_part(struct trainer *t, struct gradients_request *r, struct range of,
                    struct batch_loss *loss, struct error *e)
{
    const uint32_t group = train_batch_group(&t->batch->batch);
    struct train_batch part;
    if (of.first == of.end)
        return 0;
    train_batch_slice(&t->batch->batch, of.first * group, (of.end - of.first) * group, &part,
                      t->offsets, t->rows);
    r->batch = &part;
    return gradients_compute(r, t->workspace, loss, e);
}

/* Shared by the parts of a range. */
struct parts {
    struct gradients_request request;
    struct range of;
    uint32_t all, of_group;              /* parts of the range; of a group */
    uint32_t last;                       /* group of this rank */
    const struct gradients_watch *watch; /* of the last part; or null */
};

/* ---- what the last part completes ---- */

/* The trainer of a watch, and the levels whose sums wait for the last group. */
struct completion {
    struct trainer *trainer;
    uint32_t levels;
    bool sums; /* over ranks */
};

/* The gradient from an element on, by buckets: adds the levels, and begins the sums over ranks. */
static int complete(const struct completion *c, uint64_t first, struct error *e)
{
    struct trainer *t = c->trainer;
    struct span next;
    while (buckets_next(&t->buckets, first, &next)) {
        if (part_sums_add_span(&t->sums, c->levels, next, e) < 0)
            return -1;
        if (c->sums)
            t->comm->begin_sum(t->comm, t->state->gradient + next.first, next.count);
    }
    return 0;
}

static int left_layer(void *context, uint32_t layer, struct error *e)
{
    const struct completion *c = context;
    return complete(c, train_state_final(c->trainer->state, layer), e);
}

/* ---- parts ---- */

static struct range range_of_part(const struct trainer *t, const struct parts *p, uint32_t k)
{
    const struct train_batch *b = &t->batch->batch;
    return (struct range){train_batch_cut(b, p->of.first, p->of.end, k, p->all),
                          train_batch_cut(b, p->of.first, p->of.end, k + 1, p->all)};
}

/* The parts of a group, added one after another to what a level has. */
static int run_group(struct trainer *t, const struct parts *p, uint32_t group, uint32_t level,
                     struct batch_loss *loss, struct error *e)
{
    struct gradients_request r = p->request;
    struct train_state state = *t->state;
    struct trained_bias bias;
    if (part_sums_reserve(&t->sums, level, e) < 0)
        return -1;
    state.gradient = t->sums.gradient[level];
    r.state = &state;
    if (r.bias && r.bias->gradient) {
        bias = *r.bias;
        bias.gradient = t->sums.bias[level];
        r.bias = &bias;
    }
    const uint32_t end = (group + 1) * p->of_group;
    for (uint32_t k = group * p->of_group; k < end; k++) {
        r.watch = group == p->last && k + 1 == end ? p->watch : NULL;
        if (run_part(t, &r, range_of_part(t, p, k), loss, e) < 0)
            return -1;
    }
    return 0;
}

/* Groups that follow each other. */
struct groups {
    uint32_t first, count;
};

/* Adds the gradients of groups g, by a binary tree, into the sums of `level`. What the last group is added to waits. */
static int run_tree(struct trainer *t, const struct parts *p, struct groups g, uint32_t level,
                    struct batch_loss *loss, struct error *e)
{
    struct batch_loss upper = {0};
    const uint32_t half = g.count / 2;
    if (g.count == 1)
        return run_group(t, p, g.first, level, loss, e);
    if (run_tree(t, p, (struct groups){g.first, half}, level, loss, e) < 0 ||
        run_tree(t, p, (struct groups){g.first + half, half}, level + 1, &upper, e) < 0)
        return -1;
    batch_loss_add(loss, &upper);
    if (g.first + g.count - 1 == p->last)
        return 0;
    return part_sums_add(&t->sums, level, p->request.bias && p->request.bias->gradient, e);
}

/* This rank's groups. */
int trainer_run_parts(struct trainer *t, const struct gradients_request *r, struct range of,
                      bool sums, struct batch_loss *loss, struct error *e)
{
    const uint32_t ranks = t->comm->size, groups = parts_groups(t->options->accumulate, ranks),
                   all = parts_of_batch(t->options->accumulate, ranks);
    const struct groups own = {t->comm->rank * groups, groups};
    struct completion c = {t, parts_extra(t->options->accumulate, ranks),
                           sums && t->comm->begin_sum};
    const struct gradients_watch watch = {left_layer, &c};
    const struct parts p = {.request = *r,
                            .of = of,
                            .all = all,
                            .of_group = all / (groups * ranks),
                            .last = own.first + groups - 1,
                            .watch = c.sums ? &watch : NULL};
    t->buckets.complete = 0;
    if (run_tree(t, &p, own, 0, loss, e) < 0 || complete(&c, 0, e) < 0)
        return -1;
    return r->bias && r->bias->gradient ? part_sums_add_bias(&t->sums, c.levels, e) : 0;
}
