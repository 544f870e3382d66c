/* SPDX-License-Identifier: Apache-2.0 */
/* A heat map in a picture: queries go down, keys go right. Only builds with cairo have it. */
#pragma once
#include <cairo.h>
#include <stdint.h>

/* Values [n, n] from 0, white, to 1, dark, each a square of `cell`; within a frame. */
void heatmap_paint(cairo_t *c, const float *value, uint32_t n, double x, double y,
                   uint32_t cell);

/* An image as a square of `side`, within a frame; destroys the image. Pixels stay sharp where the image is not larger. */
void heatmap_paint_image(cairo_t *c, cairo_surface_t *image, double x, double y, double side);
