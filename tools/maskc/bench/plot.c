/* SPDX-License-Identifier: Apache-2.0 */
/* The times of a bench as a picture: over the length in log-log where there are several lengths, else
   as bars. Ours is solid, dense is pale. */
#include "masks/base/text.h"
#include "masks/picture/canvas.h"
#include "tools/maskc/bench/bench.h"
#include "tools/maskc/command.h"
#include <cairo.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 960, HEIGHT = 600, LEFT = 80, RIGHT = 320, TOP = 40, BOTTOM = 60, COLORS = 8 };

static const double color[COLORS][3] = {
    {0.12, 0.47, 0.71}, {1.00, 0.50, 0.05}, {0.17, 0.63, 0.17}, {0.84, 0.15, 0.16},
    {0.58, 0.40, 0.74}, {0.55, 0.34, 0.29}, {0.89, 0.47, 0.76}, {0.50, 0.50, 0.50},
};

struct plot {
    cairo_t *cr;
    const struct bench_result *r;
    uint32_t count;
    double x0, x1, y0, y1; /* log10 of the axes' ends */
};

static void say(const struct plot *p, double x, double y, const char *text)
{
    cairo_set_source_rgb(p->cr, 0, 0, 0);
    cairo_move_to(p->cr, x, y);
    cairo_show_text(p->cr, text);
    cairo_new_path(p->cr); /* text leaves a point behind that a line would start from */
}

static double at_y(const struct plot *p, double seconds)
{
    return HEIGHT - BOTTOM -
           (log10(seconds) - p->y0) / (p->y1 - p->y0) * (HEIGHT - TOP - BOTTOM);
}

static double at_x(const struct plot *p, double length)
{
    return LEFT + (log10(length) - p->x0) / (p->x1 - p->x0) * (WIDTH - LEFT - RIGHT);
}

static void find_axes(struct plot *p)
{
    p->x0 = p->y0 = INFINITY;
    p->x1 = p->y1 = -INFINITY;
    for (uint32_t k = 0; k < p->count; k++) {
        const struct bench_result *r = &p->r[k];
        p->x0 = fmin(p->x0, log10(r->length));
        p->x1 = fmax(p->x1, log10(r->length));
        p->y0 = fmin(p->y0, log10(fmin(r->median, r->dense)));
        p->y1 = fmax(p->y1, log10(fmax(r->median, r->dense)));
    }
    p->y0 = floor(p->y0);
    p->y1 = fmax(ceil(p->y1), p->y0 + 1);
}

/* A line for each decade of time, with its label. */
static void draw_decades(const struct plot *p)
{
    cairo_set_line_width(p->cr, 1);
    for (double decade = p->y0; decade <= p->y1; decade++) {
        char text[32];
        double y = at_y(p, pow(10, decade));
        snprintf(text, sizeof text, "%g ms", pow(10, decade + 3));
        cairo_set_source_rgb(p->cr, 0.85, 0.85, 0.85);
        cairo_move_to(p->cr, LEFT, y);
        cairo_line_to(p->cr, WIDTH - RIGHT, y);
        cairo_stroke(p->cr);
        say(p, 10, y + 4, text);
    }
}

static void draw_frame(const struct plot *p, bool lines)
{
    draw_decades(p);
    for (uint32_t k = 0; k < p->count && lines; k++) {
        char text[16];
        snprintf(text, sizeof text, "%u", p->r[k].length);
        say(p, at_x(p, p->r[k].length) - 12, HEIGHT - BOTTOM + 20, text);
    }
    say(p, LEFT, HEIGHT - 15,
        lines ? "time over length; solid: ours, dashed: dense"
              : "time; solid: ours, pale: dense");
}

static bool same_series(const struct bench_result *a, const struct bench_result *b)
{
    return !strcmp(a->mask, b->mask) && a->dtype == b->dtype && a->backward == b->backward;
}

static void name_series(const struct plot *p, const struct bench_result *r, uint32_t series)
{
    char text[128];
    const double *c = color[series % COLORS];
    double y = TOP + 16 * (double)series;
    snprintf(text, sizeof text, "%s %s %s", r->mask, dtype_name(r->dtype),
             r->backward ? "backward" : "forward");
    cairo_set_source_rgb(p->cr, c[0], c[1], c[2]);
    cairo_rectangle(p->cr, WIDTH - RIGHT + 15, y - 8, 10, 10);
    cairo_fill(p->cr);
    say(p, WIDTH - RIGHT + 30, y, text);
}

static void draw_line(const struct plot *p, uint32_t first, uint32_t series, bool dense)
{
    const double *c = color[series % COLORS], dash[] = {5, 4};
    cairo_set_source_rgba(p->cr, c[0], c[1], c[2], dense ? 0.6 : 1);
    cairo_set_dash(p->cr, dash, dense ? 2 : 0, 0);
    cairo_set_line_width(p->cr, dense ? 1 : 2);
    for (uint32_t k = first; k < p->count; k++)
        if (same_series(&p->r[first], &p->r[k]))
            cairo_line_to(p->cr, at_x(p, p->r[k].length),
                          at_y(p, dense ? p->r[k].dense : p->r[k].median));
    cairo_stroke(p->cr);
    cairo_set_dash(p->cr, dash, 0, 0);
}

static void draw_lines(const struct plot *p)
{
    uint32_t series = 0;
    for (uint32_t k = 0; k < p->count; k++) {
        bool seen = false;
        for (uint32_t before = 0; before < k && !seen; before++)
            seen = same_series(&p->r[before], &p->r[k]);
        if (seen)
            continue;
        draw_line(p, k, series, true);
        draw_line(p, k, series, false);
        name_series(p, &p->r[k], series++);
    }
}

static void draw_bar(const struct plot *p, uint32_t k, bool dense)
{
    const double *c = color[k % COLORS];
    double step = (WIDTH - LEFT - RIGHT) / (double)p->count, width = step * 0.4;
    double y = at_y(p, dense ? p->r[k].dense : p->r[k].median);
    cairo_set_source_rgba(p->cr, c[0], c[1], c[2], dense ? 0.35 : 1);
    cairo_rectangle(p->cr, LEFT + step * (k + 0.1) + (dense ? width : 0), y, width,
                    HEIGHT - BOTTOM - y);
    cairo_fill(p->cr);
}

static void draw_bars(const struct plot *p)
{
    for (uint32_t k = 0; k < p->count; k++) {
        draw_bar(p, k, false);
        draw_bar(p, k, true);
        name_series(p, &p->r[k], k);
    }
}

struct results {
    const struct bench_result *r;
    uint32_t count;
};

static void draw(cairo_t *cr, void *context)
{
    const struct results *of = context;
    struct plot p = {.cr = cr, .r = of->r, .count = of->count};
    find_axes(&p);
    bool lines = p.x1 > p.x0;
    cairo_set_source_rgb(cr, 1, 1, 1);
    cairo_paint(cr);
    cairo_set_font_size(cr, 12);
    draw_frame(&p, lines);
    if (lines)
        draw_lines(&p);
    else
        draw_bars(&p);
}

int bench_plot(const struct bench_result *r, uint32_t count, const char *path, struct error *e)
{
    struct results results = {r, count};
    return canvas_write(&(struct canvas){WIDTH, HEIGHT, draw, &results}, path, e);
}
