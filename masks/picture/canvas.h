/* SPDX-License-Identifier: Apache-2.0 */
/* A picture in a .png or .svg, by cairo: the drawing function is given a cairo_t and does not know which. Only builds with
   cairo have it. */
#pragma once
#include "masks/base/error.h"

struct _cairo; /* cairo_t: who draws includes cairo.h */

struct canvas {
    double width, height; /* pixels of a .png, points of an .svg */
    /* The background first; a plain font is chosen. */
    void (*draw)(struct _cairo *c, void *context);
    void *context;
};

/* -1 unless the path ends in .png or .svg. */
int canvas_check(const char *path, struct error *e);
int canvas_write(const struct canvas *canvas, const char *path, struct error *e);
