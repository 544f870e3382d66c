/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA source compiled unit by unit, each with the time that it takes, for gates_test. */
#pragma once
#include "runtime/compile/compile.h"

struct gate_unit {
    struct binary binary; /* one image */
    double seconds;       /* of processor time: a unit is compiled by one thread */
    bool forward;         /* its kernel is of the forward pass */
};

struct gate_units {
    uint32_t count;
    struct gate_unit unit[SOURCE_MAX_UNITS];
};

/* Side by side. A pass that takes longer than `enough` seconds is timed again, a few times, by gate_clock: the
   least of what it takes where nothing else runs. 0, or -1 with *e set. The caller finishes it in either case. */
int gate_units_compile(const struct source *s, const struct target *t, double enough,
                       struct gate_units *ret, struct error *e);
void gate_units_finish(struct gate_units *u);

/* The seconds that a pass takes on two cores: those of its longest unit, or half of all, if that is more. */
double gate_pass_seconds(const struct gate_units *u, bool forward);

/* The seconds that a pass takes here, by the clock, as `maskc compile` would compile it. */
double gate_pass_wall(const struct source *s, const struct target *t,
                      const struct gate_units *u, bool forward);
