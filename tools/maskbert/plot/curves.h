/* SPDX-License-Identifier: Apache-2.0 */
/* Curves over one another as a picture: the values pale, their running mean in colour, evaluations as dots. */
#pragma once
#include "masks/base/error.h"
#include <stdint.h>

struct point {
    double x, y;
};

struct points {
    struct point *at; /* x ascends */
    uint32_t count, capacity;
};

struct curve {
    char *name;
    struct points steps, evaluations;
};

struct curves {
    struct curve *curve;
    uint32_t count;
    const char *x, *y; /* what the axes are */
};

/* .png or .svg by suffix; there is at least one point. */
int curves_draw(const struct curves *c, const char *path, struct error *e);
