/* SPDX-License-Identifier: Apache-2.0 */
/* random, random_keys and random_global: rows drawn by Philox, as masks/README.md defines them. */
#include "masks/base/memory.h"
#include "masks/language/primitive.h"
#include <stdlib.h>

int prepare_random(struct call *c, const struct prepare_context *x, struct error *e)
{
    double p = c->real[0];
    if (!(p >= 0 && p <= 1))
        return script_error(x->script, c->given[0]->at, e,
                            "random: %g is out of range, a density of 0..1 is expected", p);
    c->flipped = p > 0.5;
    p = c->flipped ? 1 - p : p;
    if (1 - p < 1)
        c->gaps = gaps_new(p);
    return 0;
}

static void add_part(const struct call *c, struct draws d, int64_t from, int64_t end,
                     struct clip clip, struct runs *ret)
{
    for (int64_t hit = from; from < end; from = hit + 1) {
        hit = from + gaps_draw(&c->gaps, &d);
        hit = hit < end ? hit : end;
        if (c->flipped)
            runs_add(ret, clip, from, hit);
        else if (hit < end)
            runs_add(ret, clip, hit, hit + 1);
    }
}

/* A row is drawn in parts, so that a narrow clip costs little; gaps have no memory, so that nothing
   but the numbers depends on where a part begins. */
void row_random(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    int64_t size = c->gaps.part;
    if (size == 0) {
        runs_add(ret, clip, 0, c->flipped ? c->n : 0);
        return;
    }
    for (int64_t part = clip.begin / size; part * size < clip.end; part++) {
        int64_t end = (part + 1) * size < c->n ? (part + 1) * size : c->n;
        struct draws d = draws_begin((uint64_t)c->whole[1], STREAM_CELLS, i, (uint32_t)part);
        add_part(c, d, part * size, end, clip, ret);
    }
}

/* Draws of a row: the inactive keys where more than half of them are active, else the active ones. */
static uint32_t n_drawn(const struct call *c)
{
    uint32_t k = (uint32_t)c->whole[0];
    return c->flipped ? c->n - k : k;
}

int prepare_random_keys(struct call *c, const struct prepare_context *x, struct error *e)
{
    (void)x, (void)e;
    c->flipped = c->whole[0] > c->n / 2;
    c->keys = memory_new(n_drawn(c), sizeof *c->keys);
    return 0;
}

static void draw_keys(const struct call *c, struct draws d, struct clip clip, struct runs *ret)
{
    draws_distinct(&d, n_drawn(c), c->n, c->keys);
    int64_t from = 0;
    for (uint32_t k = 0; k < n_drawn(c); k++) {
        int64_t key = c->keys[k];
        runs_add(ret, clip, c->flipped ? from : key, c->flipped ? key : key + 1);
        from = key + 1;
    }
    if (c->flipped)
        runs_add(ret, clip, from, c->n);
}

void row_random_keys(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    draw_keys(c, draws_begin((uint64_t)c->whole[1], STREAM_KEYS, i, 0), clip, ret);
}

int prepare_random_global(struct call *c, const struct prepare_context *x, struct error *e)
{
    struct runs drawn = {0};
    prepare_random_keys(c, x, e);
    draw_keys(c, draws_begin((uint64_t)c->whole[1], STREAM_GLOBALS, 0, 0),
              (struct clip){0, c->n}, &drawn);
    free(c->span);
    c->span = memory_new(drawn.count, sizeof *c->span);
    for (; c->n_spans < drawn.count; c->n_spans++)
        c->span[c->n_spans] =
            (struct span){drawn.run[c->n_spans].begin, (int64_t)drawn.run[c->n_spans].end - 1};
    runs_finish(&drawn);
    return 0;
}
