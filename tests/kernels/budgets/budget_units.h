/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA source compiled unit by unit, each with the time that it takes, for resource_budgets_test. */
#pragma once
#include "tests/kernels/budgets/budget_known.h"

struct budget_unit {
    struct binary binary; /* one image; none where its figures were known */
    bool known;
    double seconds; /* of processor time: a unit is compiled by one thread */
    bool forward;   /* its kernel is of the forward pass */
};

struct budget_units {
    uint32_t count;
    struct budget_unit unit[SOURCE_MAX_UNITS];
};

/* Side by side; those that are not known (null: none is), which then are. A pass that takes longer than `enough` seconds is timed again, a few times, by budget_clock: the
   least of what it takes where nothing else runs. 0, or -1 with *e set. The caller finishes it in either case. */
int budget_units_compile(const struct source *s, const struct target *t, double enough,
                         struct budget_known *known, struct budget_units *ret, struct error *e);
void budget_units_finish(struct budget_units *u);

/* The seconds that a pass takes on two cores: those of its longest unit, or half of all, if that is more. */
double budget_pass_seconds(const struct budget_units *u, bool forward);

/* The seconds that a pass takes here, by the clock, as `maskc compile` would compile it. */
double budget_pass_wall(const struct source *s, const struct target *t,
                        const struct budget_units *u, bool forward);
