/* SPDX-License-Identifier: Apache-2.0 */
/* Columns are steps, rows heads (12 at most); dark where a mask is on. */
#include "tools/maskbert/importance/film.h"
#include "masks/picture/canvas.h"
#include "tools/maskbert/heatmap.h"
#include <cairo.h>
#include <inttypes.h>
#include <stdio.h>

enum { COLUMNS = 16, ROWS = 12, SIDE = 128, GAP = 8, TITLE = 30, LEFT = 52, EDGE = 12 };

static uint32_t columns_of(const struct mask_history *h)
{
    return h->frames < COLUMNS ? h->frames : COLUMNS;
}

/* Evenly, from the first to the last. */
static const struct mask_frame *frame_at(const struct mask_history *h, uint32_t column)
{
    const uint32_t columns = columns_of(h);
    return &h->frame[columns > 1 ? (uint64_t)column * (h->frames - 1) / (columns - 1) : 0];
}

static uint32_t heads_of(const struct mask *m)
{
    return m->layers * m->heads;
}

static uint32_t rows_of(const struct mask_history *h)
{
    const uint32_t heads = heads_of(h->frame[0].mask);
    return heads < ROWS ? heads : ROWS;
}

/* A mask that is small has whole pixels. */
static double side_of(const struct mask_history *h)
{
    const uint32_t n = h->frame[0].mask->n;
    return n <= SIDE ? SIDE / n * n : SIDE;
}

static void say(cairo_t *c, double x, double y, const char *text)
{
    cairo_set_source_rgb(c, 0, 0, 0);
    cairo_move_to(c, x, y);
    cairo_show_text(c, text);
    cairo_new_path(c);
}

static cairo_surface_t *make_image(const struct pattern *p)
{
    cairo_surface_t *image =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)p->n, (int)p->n);
    if (cairo_surface_status(image))
        return image;
    unsigned char *bytes = cairo_image_surface_get_data(image);
    const size_t stride = (size_t)cairo_image_surface_get_stride(image);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < p->n; j++)
            ((uint32_t *)(void *)(bytes + i * stride))[j] =
                pattern_test(p, i, j) ? 0x1e1b5e : 0xffffff;
    cairo_surface_mark_dirty(image);
    return image;
}

static double density_of(const struct mask *m)
{
    double sum = 0;
    for (uint32_t k = 0; k < heads_of(m); k++)
        sum += (double)m->pattern[m->at[k]]->active;
    return sum / ((double)heads_of(m) * m->n * m->n);
}

static void draw_column(cairo_t *c, const struct mask_frame *f, uint32_t rows, double x,
                        double side)
{
    char title[48];
    snprintf(title, sizeof title, "step %" PRIu64, f->step);
    say(c, x, EDGE + 10, title);
    snprintf(title, sizeof title, "%.1f %% on", 100 * density_of(f->mask));
    say(c, x, EDGE + 23, title);
    for (uint32_t k = 0; k < rows; k++)
        heatmap_paint_image(c, make_image(f->mask->pattern[f->mask->at[k]]), x,
                            EDGE + TITLE + k * (side + GAP), side);
}

static void draw_names(cairo_t *c, const struct mask *m, uint32_t rows, double side)
{
    char name[32];
    for (uint32_t k = 0; k < rows; k++) {
        if (m->layers > 1)
            snprintf(name, sizeof name, "%u.%u", k / m->heads, k % m->heads);
        else
            snprintf(name, sizeof name, "head %u", k);
        say(c, EDGE, EDGE + TITLE + k * (side + GAP) + side / 2, name);
    }
}

static void draw(struct _cairo *c, void *context)
{
    const struct mask_history *h = context;
    const uint32_t rows = rows_of(h);
    const double side = side_of(h);
    cairo_set_source_rgb(c, 1, 1, 1);
    cairo_paint(c);
    cairo_set_font_size(c, 11);
    draw_names(c, h->frame[0].mask, rows, side);
    for (uint32_t k = 0; k < columns_of(h); k++)
        draw_column(c, frame_at(h, k), rows, EDGE + LEFT + k * (side + GAP), side);
}

int film_draw(const struct mask_history *h, const char *path, struct error *e)
{
    struct mask_history copy = *h;
    const double step = side_of(h) + GAP;
    const struct canvas c = {2 * EDGE + LEFT + columns_of(h) * step - GAP,
                             2 * EDGE + TITLE + rows_of(h) * step - GAP, draw, &copy};
    return canvas_write(&c, path, e);
}
