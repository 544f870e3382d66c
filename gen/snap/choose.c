/* SPDX-License-Identifier: Apache-2.0 */
/* The merged steps of all row blocks: a greedy multiple-choice knapsack. */
#include "gen/snap/internal.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

/* A row block goes from one point of its hull to the next. */
struct step {
    double ratio, price, value;
    uint64_t block;
    uint32_t point;
};

struct choice {
    struct points *hull; /* [blocks], not owned */
    struct step *step;   /* in the order of taking */
    uint64_t steps, blocks;
    double *price, *value; /* [steps + 1]: of the row blocks, after so many steps */
    uint64_t stretch;      /* steps of a mask of the path after the one before */
};

static int by_ratio(const void *x, const void *y)
{
    const struct step *a = x, *b = y;
    if (a->ratio != b->ratio)
        return a->ratio > b->ratio ? -1 : 1;
    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    return a->point < b->point ? -1 : a->point > b->point;
}

static void list_steps(struct choice *c)
{
    uint64_t capacity = 0;
    for (uint64_t b = 0; b < c->blocks; b++)
        for (uint32_t k = 1; k < c->hull[b].count; k++) {
            const struct point *from = &c->hull[b].point[k - 1], *to = from + 1;
            double price = to->price - from->price, value = to->value - from->value;
            *MEMORY_PUSH(c->step, c->steps, capacity) =
                (struct step){value / price, price, value, b, k};
        }
    qsort(c->step, c->steps, sizeof *c->step, by_ratio);
}

static void add_up(struct choice *c)
{
    c->price = memory_new(c->steps + 1, sizeof *c->price);
    c->value = memory_new(c->steps + 1, sizeof *c->value);
    for (uint64_t b = 0; b < c->blocks; b++) {
        c->price[0] += c->hull[b].point[0].price;
        c->value[0] += c->hull[b].point[0].value;
    }
    for (uint64_t k = 0; k < c->steps; k++) {
        c->price[k + 1] = c->price[k] + c->step[k].price;
        c->value[k + 1] = c->value[k] + c->step[k].value;
    }
}

/* How many steps the path's mask k has taken. */
static uint64_t steps_of(const struct choice *c, uint64_t k)
{
    return k * c->stretch < c->steps ? k * c->stretch : c->steps;
}

static struct pattern *head_pattern(const struct problem *x, const struct choice *c,
                                    const uint32_t *taken, uint64_t first)
{
    size_t stride = ((size_t)x->p->n + 63) / 64;
    uint64_t *words = memory_new(x->p->n * stride, sizeof *words);
    for (uint64_t b = first; b < first + c->blocks / ((uint64_t)x->p->layers * x->p->heads);
         b++) {
        struct block block = problem_block(x, b);
        memcpy(words + block.row0 * stride, c->hull[b].point[taken[b]].words,
               block_words(&block) * sizeof *words);
    }
    struct pattern *p = pattern_from_bits(words, x->p->n, stride);
    free(words);
    return p;
}

static struct mask *mask(const struct path *path, uint64_t k)
{
    const struct choice *c = path->data;
    const struct importance *p = path->problem->p;
    uint64_t heads = (uint64_t)p->layers * p->heads;
    uint32_t *taken = memory_new(c->blocks, sizeof *taken);
    struct pattern **given = memory_new(heads, sizeof *given);
    for (uint64_t s = 0; s < steps_of(c, k); s++)
        taken[c->step[s].block] = c->step[s].point;
    for (uint64_t h = 0; h < heads; h++)
        given[h] = head_pattern(path->problem, c, taken, h * (c->blocks / heads));
    struct mask *m = mask_new(p->layers, p->heads, given, "snap");
    free(taken);
    free(given);
    return m;
}

static double retained(const struct path *path, uint64_t k)
{
    const struct choice *c = path->data;
    return c->value[steps_of(c, k)] / path->problem->total;
}

void choose_begin(const struct problem *x, struct points *hulls, struct path *ret)
{
    struct choice *c = memory_new(1, sizeof *c);
    *c = (struct choice){.hull = hulls, .blocks = problem_blocks(x), .stretch = 1};
    list_steps(c);
    add_up(c);
    *ret = (struct path){
        .last = c->steps, .mask = mask, .retained = retained, .problem = x, .data = c};
}

void choose_finish(struct path *path)
{
    struct choice *c = path->data;
    free(c->step);
    free(c->price);
    free(c->value);
    free(c);
}

double choose_price(const struct path *path, uint64_t k)
{
    const struct choice *c = path->data;
    return c->price[steps_of(c, k)];
}

double choose_bound(const struct path *path, double price)
{
    const struct choice *c = path->data;
    uint64_t k = 0;
    while (k < c->steps && c->price[k + 1] <= price)
        k++;
    double part =
        k < c->steps && price > c->price[k] ? (price - c->price[k]) / c->step[k].price : 0;
    double value = c->value[k] + (part > 0 ? part * c->step[k].value : 0);
    return value < path->problem->total ? value / path->problem->total : 1;
}
