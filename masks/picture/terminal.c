/* SPDX-License-Identifier: Apache-2.0 */
/* Half blocks: a character is two cells, one above the other, drawn where active. */
#include "masks/base/memory.h"
#include "masks/picture/picture.h"
#include "masks/picture/sample.h"
#include "masks/places.h"
#include <stdlib.h>
#include <string.h>

enum { ALONE = 64, AMONG = 32, MOST_PANELS = 12, FRAME = 2, GAP = 1 };

struct panel {
    uint8_t *on; /* [size * size] */
    char *title;
};

/* A cell that stands for many entries is drawn where it is at least as full as the mask is: an
   even grey has no picture in two colours, but bands and blocks in it have one. */
static uint8_t *threshold(const struct pattern *p, uint32_t size)
{
    float *level = pattern_sample(p, size);
    double mean = (double)p->active / ((double)p->n * p->n);
    double least = mean < 0.5 ? mean : 0.5;
    uint8_t *on = memory_new((size_t)size * size, 1);
    for (size_t k = 0; k < (size_t)size * size; k++)
        on[k] = level[k] > 0 && level[k] >= least;
    free(level);
    return on;
}

static void repeat(struct text *out, const char *what, uint32_t times)
{
    while (times--)
        text_add(out, "%s", what);
}

static void draw_line(const struct panel *p, uint32_t size, uint32_t y, struct text *out)
{
    static const char *const block[] = {" ", "\u2580", "\u2584", "\u2588"};
    text_add(out, "\u2502");
    for (uint32_t x = 0; x < size; x++) {
        uint8_t above = p->on[(size_t)y * size + x];
        uint8_t below = y + 1 < size && p->on[(size_t)(y + 1) * size + x];
        text_add(out, "%s", block[above | below << 1]);
    }
    text_add(out, "\u2502");
}

static void draw_edge(uint32_t size, const char *left, const char *right, struct text *out)
{
    text_add(out, "%s", left);
    repeat(out, "\u2500", size);
    text_add(out, "%s", right);
}

/* The upper or the lower edges of panels that stand side by side, in one line. */
static void draw_edges(uint32_t count, uint32_t size, const char *left, const char *right,
                       struct text *out)
{
    for (uint32_t k = 0; k < count; k++) {
        draw_edge(size, left, right, out);
        text_add(out, "%s", k + 1 < count ? " " : "\n");
    }
}

static void draw_beside(const struct panel *panel, uint32_t count, uint32_t size,
                        uint32_t columns, struct text *out)
{
    int width = (int)size + FRAME, free_columns = (int)columns;
    for (uint32_t k = 0; k + 1 < count; k++, free_columns -= width + GAP)
        text_add(out, "%-*.*s%*s", width, width, panel[k].title, GAP, "");
    text_add(out, "%.*s\n", free_columns, panel[count - 1].title);
    draw_edges(count, size, "\u250c", "\u2510", out);
    for (uint32_t y = 0; y < size; y += 2)
        for (uint32_t k = 0; k < count; k++) {
            draw_line(&panel[k], size, y, out);
            text_add(out, "%s", k + 1 < count ? " " : "\n");
        }
    draw_edges(count, size, "\u2514", "\u2518", out);
}

void mask_draw_text(const struct mask *m, uint32_t columns, struct text *out)
{
    uint32_t size = m->n_patterns == 1 ? ALONE : AMONG;
    uint32_t free_columns = columns > FRAME ? columns - FRAME : 1;
    size = size < m->n ? size : m->n;
    size = size < free_columns ? size : free_columns;
    uint32_t count = m->n_patterns < MOST_PANELS ? m->n_patterns : MOST_PANELS;
    uint32_t beside = (columns + GAP) / (size + FRAME + GAP);
    struct panel panel[MOST_PANELS];
    for (uint32_t k = 0; k < count; k++) {
        struct text title = {0};
        mask_places_text(m, k, &title);
        panel[k] = (struct panel){threshold(m->pattern[k], size), text_take(&title)};
    }
    for (uint32_t k = 0; k < count; k += beside ? beside : 1) {
        uint32_t more = beside && beside < count - k ? beside : beside ? count - k : 1;
        draw_beside(panel + k, more, size, columns, out);
    }
    for (uint32_t k = 0; k < count; k++) {
        free(panel[k].on);
        free(panel[k].title);
    }
    if (count < m->n_patterns)
        text_add(out, "... and %u more masks\n", m->n_patterns - count);
}
