/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/heatmap.h"
#include <math.h>
#include <stddef.h>

/* From white to the dark of mask pictures. The square root keeps small probabilities visible. */
static uint32_t shade(float p)
{
    static const uint32_t dark[] = {0x1e, 0x1b, 0x5e};
    float level = sqrtf(fminf(fmaxf(p, 0), 1));
    uint32_t colour = 0xff;
    for (int k = 0; k < 3; k++)
        colour = colour << 8 | (uint32_t)(255 - level * (float)(255 - dark[k]) + 0.5f);
    return colour;
}

static cairo_surface_t *make_image(const float *value, uint32_t n)
{
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)n, (int)n);
    if (cairo_surface_status(image))
        return image;
    unsigned char *bytes = cairo_image_surface_get_data(image);
    size_t stride = (size_t)cairo_image_surface_get_stride(image);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            ((uint32_t *)(void *)(bytes + i * stride))[j] = shade(value[(size_t)i * n + j]);
    cairo_surface_mark_dirty(image);
    return image;
}

void heatmap_paint_image(cairo_t *c, cairo_surface_t *image, double x, double y, double side)
{
    const int n = cairo_image_surface_get_width(image);
    cairo_save(c);
    cairo_translate(c, x, y);
    cairo_scale(c, side / n, side / n);
    cairo_set_source_surface(c, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(c),
                             n <= side ? CAIRO_FILTER_NEAREST : CAIRO_FILTER_GOOD);
    cairo_paint(c);
    cairo_restore(c);
    cairo_surface_destroy(image);
    cairo_set_source_rgb(c, 0.5, 0.5, 0.5);
    cairo_set_line_width(c, 1);
    cairo_rectangle(c, x - 0.5, y - 0.5, side + 1, side + 1);
    cairo_stroke(c);
}

void heatmap_paint(cairo_t *c, const float *value, uint32_t n, double x, double y,
                   uint32_t cell)
{
    heatmap_paint_image(c, make_image(value, n), x, y, (double)n * cell);
}
