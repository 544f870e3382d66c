/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/cpu/workspace.h"
#include "masks/base/memory.h"
#include "model/encoder.h"
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

void cpu_workspace_grow_panels(const struct engine *g, struct backend_workspace *m,
                               uint32_t rows)
{
    if (m->panels >= g->threads && m->panel_rows >= rows)
        return;
    finish_panels(m);
    m->panels = g->threads;
    m->panel_rows = rows;
    m->panel = memory_new(m->panels, sizeof *m->panel);
    const struct feed_form *feed = &g->encoder->feed;
    size_t inner = (size_t)rows * (g->config.intermediate / feed->slices);
    size_t sum = (size_t)rows * g->config.hidden;
    for (uint32_t k = 0; k < m->panels; k++) {
        m->panel[k].sum = pool_take(&m->panel_memory, sum * sizeof(float));
        m->panel[k].inner = pool_take(&m->panel_memory, inner * element_bytes(g->dtype));
        if (feed->own_gelu || g->trains)
            m->panel[k].between = pool_take(&m->panel_memory, inner * sizeof(float));
        if (g->trains)
            m->panel[k].normed = pool_take(&m->panel_memory, sum * sizeof(float));
    }
}

uint64_t cpu_workspace_panel_bytes(const struct engine *g, uint32_t rows)
{
    const struct feed_form *feed = &g->encoder->feed;
    const uint64_t inner = (uint64_t)rows * (g->config.intermediate / feed->slices),
                   sum = (uint64_t)rows * g->config.hidden * sizeof(float);
    return sum * (g->trains ? 2 : 1) + inner * element_bytes(g->dtype) +
           (feed->own_gelu || g->trains ? inner * sizeof(float) : 0);
}

void cpu_workspace_clear(struct backend_workspace *m)
{
    struct buffer *all[] = {&m->projection, &m->context, &m->lse,   &m->attention,
                            &m->gathered,   &m->between, &m->logits};
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
