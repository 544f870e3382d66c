/* SPDX-License-Identifier: Apache-2.0 */
/* Panels on a sheet, by cairo. Each panel is an image of its own resolution, so that a mask of a
   million tokens and one of sixteen cost the same to draw. */
#include "masks/base/memory.h"
#include "masks/picture/canvas.h"
#include "masks/picture/panels.h"
#include "masks/picture/picture.h"
#include "masks/picture/sample.h"
#include <cairo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Pixels. GAP is blank between a panel and its frame: active entries of the first and last row and column are then
   told from the frame. WIDE panels have room for n in their title. */
enum { MARGIN = 16, TITLE = 22, GAP = 3, WIDE = 200, MOST_PANELS = 1024 };
enum { FONT = 12, SMALLEST_FONT = 8 };
enum { DARK_RED = 0x1e, DARK_GREEN = 0x1b, DARK_BLUE = 0x5e, FAINTEST = 72 };

/* Pixels of a panel's side, by the number of panels. */
static const struct {
    uint32_t panels, side;
} sides[] = {{1, 512}, {4, 320}, {12, 224}, {UINT32_MAX, 128}};

struct sheet {
    const struct mask *mask;
    struct panel *panel;
    cairo_surface_t **image; /* [mask patterns], null before the first panel that shows it */
    uint64_t all;            /* panels that there would be without a limit */
    uint32_t panels, columns, rows;
    uint32_t cells; /* of a panel's side */
    uint32_t side;  /* pixels, a multiple of cells */
    double width, height;
};

static struct sheet lay_out(const struct mask *m)
{
    struct sheet s = {.mask = m, .image = memory_new(m->n_patterns, sizeof *s.image)};
    s.panels = mask_panels(m, MOST_PANELS, &s.panel, &s.all);
    size_t k = 0;
    while (s.panels > sides[k].panels)
        k++;
    s.cells = m->n < sides[k].side ? m->n : sides[k].side;
    s.side = (sides[k].side + s.cells / 2) / s.cells * s.cells;
    s.columns = (uint32_t)ceil(sqrt(s.panels));
    s.columns = s.panels <= 3 ? s.panels : s.columns;
    s.rows = (s.panels + s.columns - 1) / s.columns;
    s.width = MARGIN + (double)s.columns * (s.side + MARGIN);
    s.height = MARGIN + (double)s.rows * (s.side + TITLE + MARGIN);
    s.height += s.all > s.panels ? TITLE : 0;
    return s;
}

static void sheet_finish(struct sheet *s)
{
    for (uint32_t k = 0; k < s->mask->n_patterns; k++)
        if (s->image[k])
            cairo_surface_destroy(s->image[k]);
    free(s->image);
    panels_destroy(s->panel, s->panels);
}

/* Dark where all entries are active, white where none is; a cell with one active entry among
   thousands still shows. */
static uint32_t shade(float level)
{
    uint32_t ink =
        level <= 0 ? 0 : FAINTEST + (uint32_t)((255 - FAINTEST) * sqrtf(level) + 0.5f);
    const uint32_t light = 255 - (ink > 255 ? 255 : ink);
    uint32_t red = DARK_RED + (255 - DARK_RED) * light / 255;
    uint32_t green = DARK_GREEN + (255 - DARK_GREEN) * light / 255;
    uint32_t blue = DARK_BLUE + (255 - DARK_BLUE) * light / 255;
    return 0xff000000u | red << 16 | green << 8 | blue;
}

static cairo_surface_t *make_panel(const struct pattern *p, const struct sheet *s)
{
    cairo_surface_t *image =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)s->side, (int)s->side);
    if (cairo_surface_status(image))
        return image;
    float *level = pattern_sample(p, s->cells);
    unsigned char *bytes = cairo_image_surface_get_data(image);
    size_t stride = (size_t)cairo_image_surface_get_stride(image);
    uint32_t scale = s->side / s->cells;
    for (uint32_t y = 0; y < s->side; y++) {
        uint32_t *row = (uint32_t *)(void *)(bytes + y * stride);
        for (uint32_t x = 0; x < s->side; x++)
            row[x] = shade(level[(size_t)(y / scale) * s->cells + x / scale]);
    }
    cairo_surface_mark_dirty(image);
    free(level);
    return image;
}

/* One line, set smaller and then shortened until it fits. */
static void draw_line(cairo_t *c, struct text *line, double x, double y, double width)
{
    cairo_text_extents_t extents;
    double size = FONT;
    cairo_set_font_size(c, size);
    cairo_text_extents(c, text_get(line), &extents);
    while (extents.x_advance > width && size > SMALLEST_FONT) {
        cairo_set_font_size(c, --size);
        cairo_text_extents(c, text_get(line), &extents);
    }
    while (extents.x_advance > width && line->length > 4) {
        line->length -= 4;
        memcpy(line->bytes + line->length, "...", 4);
        line->length += 3;
        cairo_text_extents(c, text_get(line), &extents);
    }
    cairo_set_source_rgb(c, 0.1, 0.1, 0.1);
    cairo_move_to(c, x, y);
    cairo_show_text(c, text_get(line));
}

static void draw_title(cairo_t *c, const struct panel *panel, const struct pattern *p, double x,
                       double y, double width)
{
    struct text title = {0};
    text_add(&title, "%s, sparsity %.1f %%", panel->title,
             100 - 100 * (double)p->active / ((double)p->n * p->n));
    if (width >= WIDE)
        text_add(&title, ", n = %u", p->n);
    draw_line(c, &title, x, y, width);
    text_finish(&title);
}

static void draw_panel(cairo_t *c, struct sheet *s, uint32_t k)
{
    double x = MARGIN + (double)(k % s->columns) * (s->side + MARGIN);
    double y = MARGIN + (double)(k / s->columns) * (s->side + TITLE + MARGIN);
    const struct pattern *p = s->mask->pattern[s->panel[k].pattern];
    cairo_surface_t **image = &s->image[s->panel[k].pattern];
    draw_title(c, &s->panel[k], p, x, y + TITLE - 8, s->side);
    y += TITLE;
    *image = *image ? *image : make_panel(p, s);
    cairo_set_source_surface(c, *image, x, y);
    cairo_pattern_set_filter(cairo_get_source(c), CAIRO_FILTER_NEAREST);
    cairo_rectangle(c, x, y, s->side, s->side);
    cairo_fill(c);
    cairo_set_source_rgb(c, 0.7, 0.7, 0.7);
    cairo_set_line_width(c, 1);
    cairo_rectangle(c, x - GAP - 0.5, y - GAP - 0.5, s->side + 2 * GAP + 1,
                    s->side + 2 * GAP + 1);
    cairo_stroke(c);
}

static void draw_rest(cairo_t *c, const struct sheet *s)
{
    struct text line = {0};
    text_add(&line, "%u of %llu heads; --layer L or a smaller mask shows the others", s->panels,
             (unsigned long long)s->all);
    draw_line(c, &line, MARGIN, s->height - MARGIN, s->width - 2 * MARGIN);
    text_finish(&line);
}

static void draw(cairo_t *c, void *context)
{
    struct sheet *s = context;
    cairo_set_source_rgb(c, 1, 1, 1);
    cairo_paint(c);
    for (uint32_t k = 0; k < s->panels; k++)
        draw_panel(c, s, k);
    if (s->all > s->panels)
        draw_rest(c, s);
}

int mask_draw(const struct mask *m, const char *path, struct error *e)
{
    if (canvas_check(path, e) < 0)
        return -1;
    struct sheet s = lay_out(m);
    int r = canvas_write(&(struct canvas){s.width, s.height, draw, &s}, path, e);
    sheet_finish(&s);
    return r;
}
