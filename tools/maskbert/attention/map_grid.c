/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/attention/map_grid.h"
#include "masks/base/text.h"
#include "masks/picture/canvas.h"
#include "tools/maskbert/heatmap.h"
#include <cairo.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 12, TITLE = 20, NAMED_CELL = 12, PLAIN_SIDE = 256, FONT = 11, SMALL_FONT = 9 };
/* A panel of few tokens is as wide as its title, beside the space for names. */
enum { LABELS = 72, LEAST_SIDE = 84, MOST_NAMED = 12000, MOST_PIXELS = 30000 };

struct sheet {
    const struct map_grid *m;
    uint32_t cell;   /* pixels of an entry's side */
    uint32_t labels; /* space for names left of and below a panel; 0: none */
    double width, height, step_x, step_y;
};

static void lay_out(const struct map_grid *m, bool named, struct sheet *s)
{
    *s = (struct sheet){.m = m, .cell = NAMED_CELL, .labels = LABELS};
    if (m->n * NAMED_CELL < LEAST_SIDE)
        s->cell = (LEAST_SIDE + m->n - 1) / m->n;
    if (!named) {
        s->cell = m->n < PLAIN_SIDE ? PLAIN_SIDE / m->n : 1;
        s->labels = 0;
    }
    s->step_x = (double)m->n * s->cell + s->labels + MARGIN;
    s->step_y = (double)m->n * s->cell + s->labels + TITLE + MARGIN;
    s->width = m->heads * s->step_x + MARGIN;
    s->height = m->layers * s->step_y + MARGIN;
}

/* Names end where the panel begins; names of keys read upwards. */
static void draw_names(cairo_t *c, const struct sheet *s, double x, double y)
{
    cairo_text_extents_t size;
    double side = (double)s->m->n * s->cell;
    cairo_set_font_size(c, SMALL_FONT);
    for (uint32_t k = 0; k < s->m->n; k++) {
        double at = (k + 0.5) * s->cell + SMALL_FONT / 3.0;
        cairo_text_extents(c, s->m->token[k], &size);
        cairo_move_to(c, x - 3 - size.x_advance, y + at);
        cairo_show_text(c, s->m->token[k]);
        cairo_save(c);
        cairo_move_to(c, x + at, y + side + 3 + size.x_advance);
        cairo_rotate(c, -M_PI / 2);
        cairo_show_text(c, s->m->token[k]);
        cairo_restore(c);
    }
}

/* Begins at the panel's left edge, or further left where it is longer than the panel. */
static void draw_title(cairo_t *c, const struct sheet *s, double x, double y, const char *text)
{
    cairo_text_extents_t size;
    cairo_set_source_rgb(c, 0.1, 0.1, 0.1);
    cairo_set_font_size(c, FONT);
    cairo_text_extents(c, text, &size);
    double beyond = fmax(size.x_advance - (double)s->m->n * s->cell, 0);
    cairo_move_to(c, x - fmin(beyond, s->labels), y - 6);
    cairo_show_text(c, text);
}

static void draw_panel(cairo_t *c, const struct sheet *s, uint32_t layer, uint32_t head)
{
    const struct map_grid *m = s->m;
    size_t at = (size_t)layer * m->heads + head;
    double x = MARGIN + head * s->step_x + s->labels, y = MARGIN + layer * s->step_y + TITLE;
    double side = (double)m->n * s->cell;
    struct text title = {0};
    cairo_rectangle(c, x - s->labels, y - TITLE, side + s->labels, side + s->labels + TITLE);
    cairo_save(c);
    cairo_clip(c);
    text_add(&title, "layer %u head %u: %.1f", m->first_layer + layer, m->first_head + head,
             m->support[at]);
    draw_title(c, s, x, y, text_get(&title));
    text_finish(&title);
    if (s->labels)
        draw_names(c, s, x, y);
    cairo_restore(c);
    heatmap_paint(c, m->value + at * m->n * m->n, m->n, x, y, s->cell);
}

static void draw(cairo_t *c, void *context)
{
    struct sheet *s = context;
    cairo_set_source_rgb(c, 1, 1, 1);
    cairo_paint(c);
    for (uint32_t l = 0; l < s->m->layers; l++)
        for (uint32_t h = 0; h < s->m->heads; h++)
            draw_panel(c, s, l, h);
}

int map_grid_draw(const struct map_grid *m, const char *path, struct error *e)
{
    struct sheet s;
    if (canvas_check(path, e) < 0)
        return -1;
    lay_out(m, true, &s);
    if (s.width > MOST_NAMED || s.height > MOST_NAMED)
        lay_out(m, false, &s);
    if (s.width > MOST_PIXELS || s.height > MOST_PIXELS)
        return error_set(
            e, ERROR_INPUT,
            "%u layers of %u heads over %u tokens are too large a picture: --layer, "
            "--head or --max-length is expected",
            m->layers, m->heads, m->n);
    return canvas_write(&(struct canvas){s.width, s.height, draw, &s}, path, e);
}
