/* SPDX-License-Identifier: Apache-2.0 */
/* Box-Muller on the four words of a Philox call: elements 4k .. 4k + 3 of a tensor. See init.h. */
#include "model/checkpoint/init.h"
#include "masks/base/memory.h"
#include "masks/base/random.h"
#include <math.h>
#include <string.h>
#include <xxhash.h>

/* Two normal values of two words. The logarithm is of (word + 1/2) / 2^32, which is never 0. */
static void draw_pair(uint32_t a, uint32_t b, double deviation, float ret[2])
{
    double radius = sqrt(-2 * log((a + 0.5) * 0x1p-32)) * deviation;
    double angle = 2 * 3.14159265358979323846 * (b + 0.5) * 0x1p-32;
    ret[0] = (float)(radius * cos(angle));
    ret[1] = (float)(radius * sin(angle));
}

static void fill_normal(float *values, uint64_t count, const char *name, double deviation,
                        uint64_t seed)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint64_t stream = XXH64(name, strlen(name), 0);
#pragma omp parallel for
    for (uint64_t k = 0; k < count; k += 4) {
        const uint32_t counter[4] = {(uint32_t)(k / 4), (uint32_t)(k / 4 >> 32),
                                     (uint32_t)stream, (uint32_t)(stream >> 32)};
        uint32_t word[4];
        float draw[4];
        philox(counter, key, word);
        draw_pair(word[0], word[1], deviation, draw);
        draw_pair(word[2], word[3], deviation, draw + 2);
        memcpy(values + k, draw, (count - k < 4 ? count - k : 4) * sizeof *values);
    }
}

static void initialise(struct tensor *t, const struct model_config *c, double deviation,
                       uint64_t seed)
{
    const struct parameter *p = &t->parameter;
    float *values = memory_aligned(p->count, sizeof *values);
    if (p->first == VALUE_ONE)
        for (uint64_t k = 0; k < p->count; k++)
            values[k] = 1;
    if (p->first == VALUE_NORMAL || p->first == VALUE_NORMAL_PAD)
        fill_normal(values, p->count, p->name, deviation, seed);
    if (p->first == VALUE_NORMAL_PAD && c->pad != NO_PADDING)
        memset(values + c->pad * p->shape[1], 0, p->shape[1] * sizeof *values);
    t->element = ELEMENT_F32;
    t->data = t->own = values;
}

void weights_initialise(struct weights *w, const struct model_config *c, double deviation,
                        uint64_t seed)
{
    for (uint32_t k = 0; k < w->n_tensors; k++)
        if (!w->tensor[k].data)
            initialise(&w->tensor[k], c, deviation, seed);
}
