/* SPDX-License-Identifier: Apache-2.0 */
/* One attention map of a picture: queries go down, keys go right. Only builds with cairo have it. */
#pragma once
#include <cairo.h>
#include <stdint.h>

/* Values [n, n] from 0, white, to 1, dark, each a square of `cell`; within a frame. */
void map_paint(cairo_t *c, const float *value, uint32_t n, double x, double y, uint32_t cell);
