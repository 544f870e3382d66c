/* SPDX-License-Identifier: Apache-2.0 */
/* Layers are compared as their rows of pattern numbers, so nothing is compared but small arrays. */
#include "masks/picture/panels.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/places.h"
#include <stdlib.h>
#include <string.h>

static const uint32_t *heads_of(const struct mask *m, uint32_t layer)
{
    return m->at + (size_t)layer * m->heads;
}

/* Marks the layers from `layer` on that have its masks in all heads. */
static void mark_alike(const struct mask *m, uint32_t layer, uint8_t *done, uint8_t *ret)
{
    memset(ret, 0, m->layers);
    for (uint32_t l = layer; l < m->layers; l++)
        if (!done[l] &&
            !memcmp(heads_of(m, layer), heads_of(m, l), m->heads * sizeof(uint32_t)))
            ret[l] = done[l] = 1;
}

static char *name_panel(const char *layers, bool several, uint32_t head)
{
    struct text out = {0};
    if (layers)
        text_add(&out, "layer%s %s ", several ? "s" : "", layers);
    text_add(&out, "head %u", head);
    return text_take(&out);
}

static uint32_t add_layer(const struct mask *m, uint32_t layer, const uint8_t *alike,
                          struct panel *panel, uint32_t capacity)
{
    bool all = !memchr(alike, 0, m->layers);
    char *layers = all ? NULL : places_list(alike, m->layers);
    bool several = layers && strpbrk(layers, ",-");
    uint32_t n = m->heads < capacity ? m->heads : capacity;
    for (uint32_t h = 0; h < n; h++)
        panel[h] = (struct panel){heads_of(m, layer)[h], name_panel(layers, several, h)};
    free(layers);
    return n;
}

uint32_t mask_panels(const struct mask *m, uint32_t most, struct panel **ret, uint64_t *all)
{
    uint8_t *done = memory_new(m->layers, 1), *alike = memory_new(m->layers, 1);
    uint32_t n = 0;
    *ret = memory_new(most, sizeof **ret);
    *all = 0;
    for (uint32_t l = 0; l < m->layers; l++) {
        if (done[l])
            continue;
        mark_alike(m, l, done, alike);
        *all += m->heads;
        n += add_layer(m, l, alike, *ret + n, most - n);
    }
    free(done);
    free(alike);
    return n;
}

void panels_destroy(struct panel *panels, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        free(panels[k].title);
    free(panels);
}
