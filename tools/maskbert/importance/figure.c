/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of the figures of a learned mask. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "tools/maskbert/importance/importance.h"
#include <inttypes.h>
#include <stdlib.h>

/* A film has few maps, so that each is large enough to read. */
enum { FRAMES_A_COLUMN = 3, FRAMES = 5, FILM_HEADS = 6, MAP_HEADS = 96 };

static json_t *head_name(uint32_t layers, uint32_t layer, uint32_t head)
{
    struct text name = {0};
    if (layers > 1)
        text_add(&name, "layer %u head %u", layer, head);
    else
        text_add(&name, "head %u", head);
    json_t *ret = json_string(text_get(&name));
    text_finish(&name);
    return ret;
}

/* ---- P ---- */

static json_t *heads_json(const struct importance *p)
{
    const uint32_t heads = p->layers * p->heads, shown = heads < MAP_HEADS ? heads : MAP_HEADS;
    json_t *ret = json_array();
    for (uint32_t k = 0; k < shown; k++)
        json_array_append_new(
            ret, json_pack("{s:o, s:o}", "name",
                           head_name(p->layers, k / p->heads, k % p->heads), "values",
                           figure_floats(importance_head(p, k / p->heads, k % p->heads),
                                         (struct figure_shape){2, {p->n, p->n}})));
    return ret;
}

int importance_draw(const struct importance *p, const struct mean_importance *m,
                    const struct figure *f, struct error *e)
{
    json_t *distances = json_array();
    for (uint32_t d = 0; d < m->n - 2 * m->border; d++)
        json_array_append_new(distances, json_real(m->distance[d]));
    json_t *numbers = json_pack("{s:b, s:o, s:o, s:o, s:I}", "border", m->border, "mean",
                                figure_floats(m->map, (struct figure_shape){2, {m->n, m->n}}),
                                "by_distance", distances, "heads", heads_json(p), "of_heads",
                                (json_int_t)p->layers * p->heads);
    return figure_draw(f, numbers, e);
}

/* ---- masks over the steps ---- */

static uint32_t heads_of(const struct mask *m)
{
    const uint32_t heads = m->layers * m->heads;
    return heads < FILM_HEADS ? heads : FILM_HEADS;
}

static double density_of(const struct mask *m)
{
    double sum = 0;
    for (uint32_t k = 0; k < m->layers * m->heads; k++)
        sum += (double)m->pattern[m->at[k]]->active;
    return sum / ((double)m->layers * m->heads * m->n * m->n);
}

static json_t *masks_json(const struct mask *m)
{
    const uint32_t heads = heads_of(m), n = m->n;
    uint8_t *bits = memory_new((size_t)heads * n * n, 1);
    for (uint32_t h = 0; h < heads; h++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                bits[((size_t)h * n + i) * n + j] = pattern_test(m->pattern[m->at[h]], i, j);
    json_t *ret = figure_bits(bits, (struct figure_shape){3, {heads, n, n}});
    free(bits);
    return ret;
}

static json_t *frame_json(const struct mask_frame *f)
{
    return json_pack("{s:I, s:f, s:o}", "step", (json_int_t)f->step, "density",
                     density_of(f->mask), "masks", masks_json(f->mask));
}

int film_draw(const struct mask_history *h, const struct figure *f, struct error *e)
{
    const uint32_t most = f->columns == 1 ? FRAMES_A_COLUMN : FRAMES,
                   count = h->frames < most ? h->frames : most;
    const struct mask *first = h->frame[0].mask;
    json_t *heads = json_array(), *frames = json_array();
    for (uint32_t k = 0; k < heads_of(first); k++)
        json_array_append_new(heads,
                              head_name(first->layers, k / first->heads, k % first->heads));
    for (uint32_t k = 0; k < count; k++) {
        const uint64_t at = count > 1 ? (uint64_t)k * (h->frames - 1) / (count - 1) : 0;
        json_array_append_new(frames, frame_json(&h->frame[at]));
    }
    return figure_draw(f,
                       json_pack("{s:o, s:I, s:o}", "heads", heads, "of_heads",
                                 (json_int_t)first->layers * first->heads, "frames", frames),
                       e);
}
