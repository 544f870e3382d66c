/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/places.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

char *places_list(const uint8_t *flag, uint32_t n)
{
    struct text out = {0};
    for (uint32_t a = 0; a < n; a++) {
        if (!flag[a])
            continue;
        uint32_t b = a;
        while (b + 1 < n && flag[b + 1])
            b++;
        text_add(&out, out.length ? ",%u" : "%u", a);
        if (b > a)
            text_add(&out, b > a + 1 ? "-%u" : ",%u", b);
        a = b;
    }
    return text_take(&out);
}

static uint32_t mark_heads(const struct mask *m, uint32_t pattern, uint32_t layer,
                           uint8_t *flag)
{
    uint32_t count = 0;
    for (uint32_t h = 0; h < m->heads; h++) {
        flag[h] = m->at[(size_t)layer * m->heads + h] == pattern;
        count += flag[h];
    }
    return count;
}

/* Marks the layers from `layer` on, none of which is `done`, with these very heads. */
static void mark_layers(const struct mask *m, uint32_t pattern, uint32_t layer,
                        const uint8_t *heads, uint8_t *done, uint8_t *ret)
{
    uint8_t *other = memory_new(m->heads, 1);
    memset(ret, 0, m->layers);
    for (uint32_t l = layer; l < m->layers; l++) {
        mark_heads(m, pattern, l, other);
        if (!done[l] && !memcmp(heads, other, m->heads))
            ret[l] = done[l] = 1;
    }
    free(other);
}

uint32_t mask_places(const struct mask *m, uint32_t pattern, struct place **ret)
{
    uint8_t *heads = memory_new(m->heads, 1), *layers = memory_new(m->layers, 1);
    uint8_t *done = memory_new(m->layers, 1);
    struct place *place = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t l = 0; l < m->layers; l++) {
        if (done[l] || !mark_heads(m, pattern, l, heads))
            continue;
        mark_layers(m, pattern, l, heads, done, layers);
        bool all = !memchr(layers, 0, m->layers);
        *MEMORY_PUSH(place, count, capacity) = (struct place){
            all ? NULL : places_list(layers, m->layers), places_list(heads, m->heads)};
    }
    free(heads);
    free(layers);
    free(done);
    *ret = place;
    return (uint32_t)count;
}

void places_destroy(struct place *places, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        free(places[k].layers);
        free(places[k].heads);
    }
    free(places);
}

static const char *plural(const char *numbers)
{
    return strpbrk(numbers, ",-") ? "s" : "";
}

void mask_places_text(const struct mask *m, uint32_t pattern, struct text *out)
{
    if (m->n_patterns == 1) {
        text_add(out, m->heads == 1 && m->layers == 1 ? "head 0" : "all heads");
        return;
    }
    struct place *place;
    uint32_t n = mask_places(m, pattern, &place);
    for (uint32_t k = 0; k < n; k++) {
        text_add(out, "%s", k ? "; " : "");
        if (place[k].layers)
            text_add(out, "layer%s %s ", plural(place[k].layers), place[k].layers);
        text_add(out, "head%s %s", plural(place[k].heads), place[k].heads);
    }
    places_destroy(place, n);
}
