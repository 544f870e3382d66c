/* SPDX-License-Identifier: Apache-2.0 */
/* One head: its importance, and beside it what each mask keeps. A line of panels for each share or percentage. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/picture/canvas.h"
#include "tools/maskbert/heatmap.h"
#include "tools/maskbert/prune/prune.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 12, TITLE = 34, SIDE = 256, FONT = 11, LINE = 14, MOST_PIXELS = 30000 };

struct sheet {
    const struct prune *p;
    uint32_t cell, lines, columns; /* columns: beside the importance */
    double step_x, step_y;
};

/* Is row k the first of a line? */
static bool begins(const struct prune *p, uint32_t k)
{
    const struct prune_row *row = &p->row[k];
    return k == 0 ||
           (isnan(row->share) ? row->keep != row[-1].keep : row->share != row[-1].share);
}

static struct sheet lay_out(const struct prune *p)
{
    struct sheet s = {.p = p, .cell = p->n < SIDE ? SIDE / p->n : 1};
    for (uint32_t k = 0, column = 0; k < p->rows; k++) {
        s.lines += begins(p, k);
        column = begins(p, k) ? 1 : column + 1;
        s.columns = column > s.columns ? column : s.columns;
    }
    s.step_x = fmax((double)p->n * s.cell, SIDE) + MARGIN;
    s.step_y = (double)p->n * s.cell + TITLE + MARGIN;
    return s;
}

/* ---- what panels show ---- */

/* Over the head's largest. */
static void read_importance(const struct prune *p, float *ret)
{
    const float *from = importance_head(&p->importance, p->layer, p->head);
    const size_t all = (size_t)p->n * p->n;
    float most = 0;
    for (size_t k = 0; k < all; k++)
        most = fmaxf(most, from[k]);
    for (size_t k = 0; k < all; k++)
        ret[k] = most > 0 ? from[k] / most : 0;
}

static void read_mask(const struct prune *p, const struct mask *m, float *ret)
{
    const struct pattern *pattern =
        mask_pattern(m, m->layers == 1 ? 0 : p->layer, m->heads == 1 ? 0 : p->head);
    memset(ret, 0, (size_t)p->n * p->n * sizeof *ret);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint64_t r = pattern->row[i]; r < pattern->row[i + 1]; r++)
            for (uint32_t j = pattern->run[r].begin; j < pattern->run[r].end; j++)
                ret[(size_t)i * p->n + j] = 1;
}

/* ---- drawing ---- */

static void draw_panel(cairo_t *c, const struct sheet *s, uint32_t column, uint32_t line,
                       const float *value, const char *const title[2])
{
    const double x = MARGIN + column * s->step_x, y = MARGIN + line * s->step_y;
    cairo_set_source_rgb(c, 0.1, 0.1, 0.1);
    cairo_set_font_size(c, FONT);
    for (int k = 0; k < 2; k++) {
        cairo_move_to(c, x, y + FONT + k * LINE);
        cairo_show_text(c, title[k]);
        cairo_new_path(c);
    }
    heatmap_paint(c, value, s->p->n, x, y + TITLE, s->cell);
}

static void draw_importance(cairo_t *c, const struct sheet *s, uint32_t line, float *value)
{
    struct text where = {0};
    text_add(&where, "layer %u, head %u", s->p->layer, s->p->head);
    read_importance(s->p, value);
    draw_panel(
        c, s, 0, line, value,
        (const char *const[]){s->p->of_output ? "importance for the output" : "mean attention",
                              text_get(&where)});
    text_finish(&where);
}

static void draw_row(cairo_t *c, const struct sheet *s, const struct prune_row *r,
                     uint32_t column, uint32_t line, float *value)
{
    struct text name = {0}, figures = {0};
    if (isnan(r->share))
        text_add(&name, "%s, %g %% of the entries", r->kind, r->keep);
    else
        text_add(&name, "%s, %g %% of dense's time", r->kind, 100 * r->share);
    text_add(&figures, r->mask ? "whole model: density %.3f" : "none", r->density);
    if (!isnan(r->cosine))
        text_add(&figures, ", cosine %.3f", r->cosine);
    if (r->mask)
        read_mask(s->p, r->mask, value);
    else
        memset(value, 0, (size_t)s->p->n * s->p->n * sizeof *value);
    draw_panel(c, s, column, line, value,
               (const char *const[]){text_get(&name), text_get(&figures)});
    text_finish(&name);
    text_finish(&figures);
}

static void draw(cairo_t *c, void *context)
{
    const struct sheet *s = context;
    const struct prune *p = s->p;
    float *value = memory_new((size_t)p->n * p->n, sizeof *value);
    uint32_t line = 0, column = 0;
    cairo_set_source_rgb(c, 1, 1, 1);
    cairo_paint(c);
    for (uint32_t k = 0; k < p->rows; k++) {
        line += k > 0 && begins(p, k);
        column = begins(p, k) ? 1 : column + 1;
        if (column == 1)
            draw_importance(c, s, line, value);
        draw_row(c, s, &p->row[k], column, line, value);
    }
    free(value);
}

/* ---- the picture ---- */

int prune_check_picture(const struct prune *p, struct error *e)
{
    if (p->o->picture && !p->keeps && !p->shares)
        return error_set(e, ERROR_INPUT,
                         "--plot %s: masks to draw are expected (--keep or --snap)",
                         p->o->picture);
    return p->o->picture ? canvas_check(p->o->picture, e) : 0;
}

int prune_draw(const struct prune *p, struct error *e)
{
    struct sheet s = lay_out(p);
    const double width = (s.columns + 1) * s.step_x + MARGIN,
                 height = s.lines * s.step_y + MARGIN;
    if (width > MOST_PIXELS || height > MOST_PIXELS)
        return error_set(e, ERROR_INPUT,
                         "--plot %s: masks over %u tokens are too large a picture",
                         p->o->picture, p->n);
    return canvas_write(&(struct canvas){width, height, draw, &s}, p->o->picture, e);
}
