/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/cpu/forward/cpu.h"
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/engine/encoder.h"
#include <stdlib.h>

static void close(struct backend_state *s)
{
    if (!s)
        return;
    matmul_destroy(s->matmul);
    pool_finish(&s->kept);
    free(s);
}

static struct backend_state *open(const struct backend *b, const struct backend_options *o,
                                  struct error *e)
{
    struct matmul *m = matmul_new(e);
    (void)b;
    if (!m)
        return NULL;
    struct backend_state *s = memory_new(1, sizeof *s);
    s->matmul = m;
    s->kept.counts = o->outline;
    if (o->outline)
        matmul_outline(m);
    s->ops = cpu_encoder_ops();
    s->train_ops = cpu_train_ops();
    return s;
}

/* ---- weights ---- */

/* Number of slices of the feed forward. Each slice goes up and down again before the next one and adds to the sum. The
   array between the two products stays small, and threads that share a small batch compute a slice each. */
enum { FEED_SLICES = 4 };

bool cpu_fuses(const struct arch *a)
{
    static const struct block known[] = {{BLOCK_ATTENTION, NORM_AFTER},
                                         {BLOCK_FEED, NORM_AFTER}};
    return arch_blocks_are(a, known, sizeof known / sizeof *known);
}

/* Slices are whole vectors of the products' library. */
static struct feed_form feed_form(const struct model_config *c, enum element dtype)
{
    enum { WIDTH = 64 };
    uint32_t slices = FEED_SLICES;
    if (!cpu_fuses(c->arch))
        return (struct feed_form){.slices = 1};
    while (slices > 1 && c->intermediate % (slices * WIDTH))
        slices--;
    return (struct feed_form){slices,
                              dtype == ELEMENT_BF16 && c->activation == ACTIVATION_GELU};
}

static void *keep(struct backend_state *s, enum element type, const float *value,
                  uint64_t count, struct error *e)
{
    void *ret = pool_take(&s->kept, count * element_bytes(type));
    (void)e;
    if (ret)
        elements_from_f32(type, value, count, ret);
    return ret;
}

static int pack(struct backend_state *s, const struct linear_shape *shape, const float *weight,
                const float *bias, struct linear *ret, struct error *e)
{
    return matmul_pack(s->matmul, shape, weight, bias, ret, e);
}

/* ---- forward pass and heads ---- */

/* The hidden states are there already. */
static int fetch(const struct engine *g, struct engine_workspace *w, struct error *e)
{
    (void)g, (void)w, (void)e;
    return 0;
}

const struct backend backend_cpu = {
    .device = &device_cpu,
    .open = open,
    .close = close,
    .feed_form = feed_form,
    .keep = keep,
    .pack = pack,
    .encode = cpu_encode,
    .fetch = fetch,
    .head = cpu_head,
    .mean = cpu_mean,
    .workspace_finish = cpu_workspace_finish,
    .training = &cpu_training,
};
