/* SPDX-License-Identifier: Apache-2.0 */
/* Figures, drawn by matplotlib: their numbers go as JSON to `python3 -m maskc.figures`, whose --help describes the JSON of
   each kind. */
#pragma once
#include "masks/base/error.h"
#include <jansson.h>
#include <stdint.h>

struct figure {
    const char *kind, *path;
    uint32_t columns; /* of a paper that it is wide, 1 or 2; 0: 2 */
};

/* The path is .pdf, .svg or .png, and columns are in range: without starting python3. */
int figure_check(const struct figure *f, struct error *e);

/* figure_check, and python3 has matplotlib: for commands that measure for long before they draw. */
int figure_ready(const struct figure *f, struct error *e);

/* Draws `numbers`, whose reference it takes. The file is written whole or not at all. */
int figure_draw(const struct figure *f, json_t *numbers, struct error *e);

/* An array for the JSON of a figure: float32, or bytes of 0 and 1. New references. */
struct figure_shape {
    uint32_t rank, size[3];
};
json_t *figure_floats(const float *values, struct figure_shape s);
json_t *figure_bits(const uint8_t *values, struct figure_shape s);
