/* SPDX-License-Identifier: Apache-2.0 */
/* Above: the mean map, P over distances, the first and last row. Below: a map for each head. Each map goes from its
   least P, white, to its largest, dark, which its title says; each plot of curves from its least to its largest. */
#include "masks/picture/canvas.h"
#include "tools/maskbert/importance/importance.h"
#include <cairo.h>
#include <math.h>
#include <stdio.h>

enum { LARGE = 384, SMALL = 152, GAP = 24, COLUMNS = 8, MOST = 96, TITLE = 18, EDGE = 20 };

struct drawing {
    cairo_t *cr;
    const struct importance *p;
    const struct mean_importance *mean;
};

/* Where something is drawn. */
struct box {
    double x, y, width, height;
};

static void say(cairo_t *cr, double x, double y, const char *text)
{
    cairo_set_source_rgb(cr, 0, 0, 0);
    cairo_move_to(cr, x, y);
    cairo_show_text(cr, text);
    cairo_new_path(cr);
}

static void frame(cairo_t *cr, const struct box *b)
{
    cairo_set_source_rgb(cr, 0.5, 0.5, 0.5);
    cairo_set_line_width(cr, 1);
    cairo_rectangle(cr, b->x - 0.5, b->y - 0.5, b->width + 1, b->height + 1);
    cairo_stroke(cr);
}

struct range {
    float least, most;
};

static struct range wider(struct range r, float value)
{
    return (struct range){fminf(r.least, value), fmaxf(r.most, value)};
}

static struct range range_of(const float *value, size_t count)
{
    struct range r = {value[0], value[0]};
    for (size_t k = 1; k < count; k++)
        r = wider(r, value[k]);
    return r;
}

/* ---- maps ---- */

static uint32_t shade(float value, struct range r)
{
    static const uint32_t dark[] = {0x1e, 0x1b, 0x5e};
    const float level = r.most > r.least ? (value - r.least) / (r.most - r.least) : 0;
    uint32_t colour = 0xff;
    for (int k = 0; k < 3; k++)
        colour = colour << 8 | (uint32_t)(255 - level * (float)(255 - dark[k]) + 0.5f);
    return colour;
}

static cairo_surface_t *make_image(const float *value, uint32_t n, struct range r)
{
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)n, (int)n);
    if (cairo_surface_status(image))
        return image;
    unsigned char *bytes = cairo_image_surface_get_data(image);
    const size_t stride = (size_t)cairo_image_surface_get_stride(image);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            ((uint32_t *)(void *)(bytes + i * stride))[j] = shade(value[(size_t)i * n + j], r);
    cairo_surface_mark_dirty(image);
    return image;
}

static void draw_map(cairo_t *cr, const float *value, uint32_t n, const struct box *b,
                     const char *title)
{
    const struct range r = range_of(value, (size_t)n * n);
    cairo_surface_t *image = make_image(value, n, r);
    char text[96];
    snprintf(text, sizeof text, "%s: %.2f to %.2f", title, (double)r.least, (double)r.most);
    say(cr, b->x, b->y - 5, text);
    cairo_save(cr);
    cairo_translate(cr, b->x, b->y);
    cairo_scale(cr, b->width / n, b->height / n);
    cairo_set_source_surface(cr, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(cr),
                             n <= b->width ? CAIRO_FILTER_NEAREST : CAIRO_FILTER_GOOD);
    cairo_rectangle(cr, 0, 0, n, n);
    cairo_fill(cr);
    cairo_restore(cr);
    cairo_surface_destroy(image);
    frame(cr, b);
}

/* ---- curves ---- */

static void draw_axis(cairo_t *cr, const struct box *b, struct range r, uint32_t n)
{
    char text[32];
    frame(cr, b);
    snprintf(text, sizeof text, "%.2f", (double)r.most);
    say(cr, b->x + 3, b->y + 12, text);
    snprintf(text, sizeof text, "%.2f", (double)r.least);
    say(cr, b->x + 3, b->y + b->height - 4, text);
    snprintf(text, sizeof text, "%u", n - 1);
    say(cr, b->x + b->width - 24, b->y + b->height + 14, text);
    say(cr, b->x, b->y + b->height + 14, "0");
}

static void move_on(cairo_t *cr, const struct box *b, struct range r, uint32_t n, uint32_t k,
                    double value)
{
    const double height =
        r.most > r.least ? (value - (double)r.least) / ((double)r.most - (double)r.least) : 0.5;
    cairo_line_to(cr, b->x + b->width * k / (n > 1 ? n - 1 : 1),
                  b->y + b->height * (1 - height));
}

static void draw_distances(const struct drawing *d, const struct box *b)
{
    const uint32_t n = d->mean->n;
    struct range r = {INFINITY, -INFINITY};
    for (uint32_t k = 0; k < n; k++)
        r = wider(r, (float)d->mean->distance[k]);
    draw_axis(d->cr, b, r, n);
    say(d->cr, b->x, b->y - 5, "mean P over the distance |i - j|");
    cairo_set_source_rgb(d->cr, 0.12, 0.47, 0.71);
    for (uint32_t k = 0; k < n; k++)
        move_on(d->cr, b, r, n, k, d->mean->distance[k]);
    cairo_stroke(d->cr);
}

static void draw_rows(const struct drawing *d, const struct box *b)
{
    const float *const row[] = {d->mean->first_row, d->mean->last_row};
    const uint32_t n = d->mean->n;
    struct range r = {INFINITY, -INFINITY};
    for (uint32_t k = 0; k < n; k++)
        r = wider(wider(r, row[0][k]), row[1][k]);
    draw_axis(d->cr, b, r, n);
    say(d->cr, b->x, b->y - 5,
        "mean P of the first row ([CLS], blue) and of the last (orange)");
    for (int k = 0; k < 2; k++) {
        cairo_set_source_rgb(d->cr, k ? 1 : 0.12, k ? 0.5 : 0.47, k ? 0.05 : 0.71);
        for (uint32_t j = 0; j < n; j++)
            move_on(d->cr, b, r, n, j, (double)row[k][j]);
        cairo_stroke(d->cr);
    }
}

/* ---- the whole ---- */

static uint32_t maps_of(const struct importance *p)
{
    const uint64_t all = (uint64_t)p->layers * p->heads;
    return all < MOST ? (uint32_t)all : MOST;
}

static double row_top(uint32_t row)
{
    return EDGE + TITLE + LARGE + 2 * GAP + TITLE + row * (double)(SMALL + GAP + TITLE);
}

static void draw_heads(const struct drawing *d)
{
    const uint32_t maps = maps_of(d->p);
    char title[48];
    for (uint32_t k = 0; k < maps; k++) {
        const struct box b = {EDGE + k % COLUMNS * (double)(SMALL + GAP), row_top(k / COLUMNS),
                              SMALL, SMALL};
        const uint32_t layer = k / d->p->heads, head = k % d->p->heads;
        if (d->p->layers > 1)
            snprintf(title, sizeof title, "%u.%u", layer, head);
        else
            snprintf(title, sizeof title, "head %u", head);
        draw_map(d->cr, importance_head(d->p, layer, head), d->p->n, &b, title);
    }
    if (maps < (uint64_t)d->p->layers * d->p->heads)
        say(d->cr, EDGE, row_top((maps + COLUMNS - 1) / COLUMNS), "more heads are left out");
}

static void draw(struct _cairo *cr, void *context)
{
    struct drawing d = *(struct drawing *)context;
    const struct mean_importance *m = d.mean;
    const double top = EDGE + TITLE, step = LARGE + 2 * GAP;
    const struct box map = {EDGE, top, LARGE, LARGE},
                     distances = {EDGE + step, top, LARGE, LARGE},
                     rows = {EDGE + 2 * step, top, LARGE, LARGE};
    d.cr = cr;
    cairo_set_source_rgb(cr, 1, 1, 1);
    cairo_paint(cr);
    cairo_set_font_size(cr, 12);
    draw_map(cr, m->map, m->n, &map, "mean P of all heads");
    draw_distances(&d, &distances);
    draw_rows(&d, &rows);
    draw_heads(&d);
}

int importance_draw(const struct importance *p, const struct mean_importance *m,
                    const char *path, struct error *e)
{
    struct drawing d = {.p = p, .mean = m};
    const uint32_t maps = maps_of(p), rows = (maps + COLUMNS - 1) / COLUMNS;
    const bool cut = maps < (uint64_t)p->layers * p->heads;
    const struct canvas c = {2 * EDGE + COLUMNS * (SMALL + GAP) - GAP,
                             row_top(rows + cut) - TITLE, draw, &d};
    return canvas_write(&c, path, e);
}
