/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/plot/curves.h"
#include "masks/picture/canvas.h"
#include <cairo.h>
#include <math.h>
#include <stdio.h>

enum {
    WIDTH = 960,
    HEIGHT = 560,
    LEFT = 70,
    RIGHT = 200,
    TOP = 30,
    BOTTOM = 60,
    COLORS = 8,
    TICKS = 6
};

static const double color[COLORS][3] = {
    {0.12, 0.47, 0.71}, {1.00, 0.50, 0.05}, {0.17, 0.63, 0.17}, {0.84, 0.15, 0.16},
    {0.58, 0.40, 0.74}, {0.55, 0.34, 0.29}, {0.89, 0.47, 0.76}, {0.50, 0.50, 0.50},
};

struct drawing {
    cairo_t *cr;
    const struct curves *curves;
    double x0, x1, y0, y1; /* the axes' ends */
};

static double at_x(const struct drawing *d, double x)
{
    return LEFT + (x - d->x0) / (d->x1 - d->x0) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const struct drawing *d, double y)
{
    return HEIGHT - BOTTOM - (y - d->y0) / (d->y1 - d->y0) * (HEIGHT - TOP - BOTTOM);
}

static void say(const struct drawing *d, double x, double y, const char *text)
{
    cairo_set_source_rgb(d->cr, 0, 0, 0);
    cairo_move_to(d->cr, x, y);
    cairo_show_text(d->cr, text);
    cairo_new_path(d->cr); /* text leaves a point behind that a line would start from */
}

/* ---- axes ---- */

static void reach(struct drawing *d, const struct points *p)
{
    for (uint32_t k = 0; k < p->count; k++) {
        d->x0 = fmin(d->x0, p->at[k].x);
        d->x1 = fmax(d->x1, p->at[k].x);
        d->y0 = fmin(d->y0, p->at[k].y);
        d->y1 = fmax(d->y1, p->at[k].y);
    }
}

static void find_axes(struct drawing *d)
{
    d->x0 = d->y0 = INFINITY;
    d->x1 = d->y1 = -INFINITY;
    for (uint32_t k = 0; k < d->curves->count; k++) {
        reach(d, &d->curves->curve[k].steps);
        reach(d, &d->curves->curve[k].evaluations);
    }
    const double margin = d->y1 > d->y0 ? 0.03 * (d->y1 - d->y0) : 0.5 + fabs(d->y0) * 0.01;
    d->y0 -= margin;
    d->y1 += margin;
    if (d->x1 <= d->x0)
        d->x1 = d->x0 + 1;
}

/* 1, 2 or 5 times a power of ten, so that there are about TICKS of them. */
static double tick(double range)
{
    const double rough = range / TICKS, power = pow(10, floor(log10(rough))),
                 first = rough / power;
    return power * (first > 5 ? 10 : first > 2 ? 5 : first > 1 ? 2 : 1);
}

static void draw_line_across(const struct drawing *d, double x0, double y0, double x1,
                             double y1)
{
    cairo_set_source_rgb(d->cr, 0.88, 0.88, 0.88);
    cairo_move_to(d->cr, x0, y0);
    cairo_line_to(d->cr, x1, y1);
    cairo_stroke(d->cr);
}

static void draw_axes(const struct drawing *d)
{
    const double x_step = tick(d->x1 - d->x0), y_step = tick(d->y1 - d->y0);
    char text[32];
    cairo_set_line_width(d->cr, 1);
    for (double k = ceil(d->y0 / y_step); k * y_step <= d->y1; k++) {
        const double y = at_y(d, k * y_step);
        draw_line_across(d, LEFT, y, WIDTH - RIGHT, y);
        snprintf(text, sizeof text, "%g", k * y_step);
        say(d, 12, y + 4, text);
    }
    for (double k = ceil(d->x0 / x_step); k * x_step <= d->x1; k++) {
        const double x = at_x(d, k * x_step);
        draw_line_across(d, x, TOP, x, HEIGHT - BOTTOM);
        snprintf(text, sizeof text, "%g", k * x_step);
        say(d, x - 10, HEIGHT - BOTTOM + 20, text);
    }
    snprintf(text, sizeof text, "%s over %s", d->curves->y, d->curves->x);
    say(d, LEFT, HEIGHT - 15, text);
}

/* ---- curves ---- */

static void draw_raw(const struct drawing *d, const struct points *p)
{
    for (uint32_t k = 0; k < p->count; k++)
        cairo_line_to(d->cr, at_x(d, p->at[k].x), at_y(d, p->at[k].y));
    cairo_stroke(d->cr);
}

/* Over a fiftieth of the curve. */
static void draw_mean(const struct drawing *d, const struct points *p)
{
    const double stays = 1 - 1 / fmax(1, p->count / 50.0);
    double sum = 0, weight = 0;
    for (uint32_t k = 0; k < p->count; k++) {
        sum = stays * sum + p->at[k].y;
        weight = stays * weight + 1;
        cairo_line_to(d->cr, at_x(d, p->at[k].x), at_y(d, sum / weight));
    }
    cairo_stroke(d->cr);
}

static void draw_dots(const struct drawing *d, const struct points *p)
{
    for (uint32_t k = 0; k < p->count; k++) {
        cairo_arc(d->cr, at_x(d, p->at[k].x), at_y(d, p->at[k].y), 3.5, 0, 2 * M_PI);
        cairo_fill(d->cr);
    }
}

static void draw_curve(const struct drawing *d, uint32_t k)
{
    const struct curve *c = &d->curves->curve[k];
    const double *rgb = color[k % COLORS], y = TOP + 16 * (double)k;
    cairo_set_source_rgba(d->cr, rgb[0], rgb[1], rgb[2], 0.2);
    cairo_set_line_width(d->cr, 1);
    draw_raw(d, &c->steps);
    cairo_set_source_rgb(d->cr, rgb[0], rgb[1], rgb[2]);
    cairo_set_line_width(d->cr, 2);
    draw_mean(d, &c->steps);
    draw_dots(d, &c->evaluations);
    cairo_rectangle(d->cr, WIDTH - RIGHT + 15, y - 8, 10, 10);
    cairo_fill(d->cr);
    say(d, WIDTH - RIGHT + 30, y, c->name);
}

static void draw(struct _cairo *cr, void *context)
{
    struct drawing d = {.cr = cr, .curves = context};
    cairo_set_source_rgb(cr, 1, 1, 1);
    cairo_paint(cr);
    cairo_set_font_size(cr, 12);
    find_axes(&d);
    draw_axes(&d);
    for (uint32_t k = 0; k < d.curves->count; k++)
        draw_curve(&d, k);
}

int curves_draw(const struct curves *c, const char *path, struct error *e)
{
    struct curves copy = *c;
    return canvas_write(&(struct canvas){WIDTH, HEIGHT, draw, &copy}, path, e);
}
