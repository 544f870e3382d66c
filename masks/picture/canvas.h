/* SPDX-License-Identifier: Apache-2.0 */
/* A picture in a file, by cairo: who draws is given a surface and does not know which of the two forms it
   becomes. Only builds with cairo have it. */
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
