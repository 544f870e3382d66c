/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/cpu/forward/workspace.h"
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/engine/encoder.h"
#include <stdlib.h>

struct backend_workspace *cpu_workspace_of(struct engine_workspace *w)
{
    if (!w->memory)
        w->memory = memory_new(1, sizeof *w->memory);
    return w->memory;
}

static void finish_panels(struct backend_workspace *m)
{
    for (uint32_t k = 0; k < m->panels; k++)
        product_workspace_finish(&m->panel[k].product);
    pool_finish(&m->panel_memory);
    free(m->panel);
    m->panel = NULL;
    m->panels = m->panel_rows = 0;
}

static void take_panel(const struct engine *g, uint32_t rows, struct pool *from,
                       struct panel_workspace *ret)
{
    const struct feed_form *feed = &g->encoder->feed;
    const size_t inner = (size_t)rows * (g->config.intermediate / feed->slices),
                 sum = (size_t)rows * g->config.hidden;
    ret->sum = pool_take(from, sum * sizeof(float));
    ret->inner = pool_take(from, inner * element_bytes(g->dtype));
    const bool plain = !cpu_fuses(g->config.arch);
    if (feed->own_gelu || g->trains || g->config.arch->gated)
        ret->between = pool_take(from, (g->config.arch->gated ? 2 : 1) * inner * sizeof(float));
    if (g->trains && g->config.arch->gated)
        ret->glu = pool_take(from, 4 * (size_t)g->config.intermediate * sizeof(float));
    if (g->trains || plain)
        ret->normed = pool_take(from, sum * sizeof(float));
}

void cpu_workspace_grow_panels(const struct engine *g, struct backend_workspace *m,
                               uint32_t rows)
{
    if (m->panels >= g->threads && m->panel_rows >= rows)
        return;
    finish_panels(m);
    m->panels = g->threads;
    m->panel_rows = rows;
    m->panel = memory_new(m->panels, sizeof *m->panel);
    for (uint32_t k = 0; k < m->panels; k++)
        take_panel(g, rows, &m->panel_memory, &m->panel[k]);
}

uint64_t cpu_workspace_panels_bytes(const struct engine *g, uint32_t rows)
{
    struct pool counted = {.counts = true};
    struct panel_workspace nothing;
    for (uint32_t k = 0; k < g->threads; k++)
        take_panel(g, rows, &counted, &nothing);
    const uint64_t ret = pool_held(&counted);
    pool_finish(&counted);
    return ret;
}

void cpu_workspace_clear(struct backend_workspace *m)
{
    struct buffer *all[] = {&m->projection, &m->context, &m->lse,    &m->attention,
                            &m->gathered,   &m->between, &m->logits, &m->normed,
                            &m->inner,      &m->wide};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]->data);
    finish_panels(m);
}

void cpu_workspace_finish(struct backend_workspace *m)
{
    if (!m)
        return;
    cpu_workspace_clear(m);
    free(m);
}
