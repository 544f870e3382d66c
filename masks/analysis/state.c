/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one line for each distinct pattern and each set of heads that have it; layers are named only if they differ. */
#include "masks/analysis/state.h"
#include "masks/analysis/analysis.h"
#include "masks/base/memory.h"
#include "masks/places.h"
#include <stdlib.h>

static void add_head_lines(const struct mask *m, uint32_t pattern, const char *expression,
                           struct text *out)
{
    struct place *place;
    uint32_t n_places = mask_places(m, pattern, &place);
    for (uint32_t k = 0; k < n_places; k++)
        text_add(out, "%s%s%shead %s: %s\n", place[k].layers ? "layer " : "",
                 place[k].layers ? place[k].layers : "", place[k].layers ? " " : "",
                 place[k].heads, expression);
    places_destroy(place, n_places);
}

/* The expression of one pattern; null with *e set if the language cannot state it. */
static char *state_pattern(const struct mask *m, uint32_t pattern, struct error *e)
{
    struct analysis *a = analysis_run(m->pattern[pattern]);
    char *expression = analysis_expression(a);
    if (!expression) {
        struct text places = {0};
        mask_places_text(m, pattern, &places);
        error_set(
            e, ERROR_INPUT,
            "%s: %s cannot be stated exactly in the mask language (%llu of %llu entries have "
            "no structure); write FILE.npy instead",
            m->source, text_get(&places), (unsigned long long)a->residue,
            (unsigned long long)a->active);
        text_finish(&places);
    }
    analysis_destroy(a);
    return expression;
}

int mask_state(const struct mask *m, struct text *out, struct error *e)
{
    struct text text = {0};
    text_add(&text, "length %u\n", m->n);
    if (m->heads > 1 || m->layers > 1)
        text_add(&text, "heads %u\n", m->heads);
    if (m->layers > 1)
        text_add(&text, "layers %u\n", m->layers);
    for (uint32_t k = 0; k < m->n_patterns; k++) {
        char *expression = state_pattern(m, k, e);
        if (!expression) {
            text_finish(&text);
            return -1;
        }
        if (m->n_patterns == 1)
            text_add(&text, "%s\n", expression);
        else
            add_head_lines(m, k, expression, &text);
        free(expression);
    }
    text_append(out, text_get(&text), text.length);
    text_finish(&text);
    return 0;
}
