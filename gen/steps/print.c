/* SPDX-License-Identifier: Apache-2.0 */
/* Prints steps as text and JSON: those of one sequence in all heads of the first layer. */
#include "gen/steps/steps.h"
#include <inttypes.h>

struct figures {
    uint64_t groups, steps, slots; /* slots that have live columns */
    double clocks;                 /* of a launch */
};

static uint64_t live_slots(const struct abi_step *s)
{
    uint64_t count = 0;
    for (uint32_t k = 0; k < ABI_STEP_SLOTS; k++)
        count += s->live[k] != 0;
    return count;
}

static struct figures count(const struct step_launch *l, const struct step_shape *shape,
                            const struct plan_steps *t)
{
    struct figures f = {.groups = t->layer_work[0][1], .clocks = steps_clocks(l, shape, t, 0)};
    for (uint64_t k = 0; k < f.groups; k++) {
        const struct abi_group *g = &t->groups[t->work[t->layer_work[0][0] + k].item];
        for (u32 i = g->step; i < g->step + g->steps; i++) {
            f.steps += t->steps[i].times;
            f.slots += t->steps[i].times * live_slots(&t->steps[i]);
        }
    }
    return f;
}

void steps_print(const struct step_launch *l, const struct step_shape *shape,
                 const struct plan_steps *t, struct text *out)
{
    const struct figures f = count(l, shape, t);
    text_add(out,
             "  %-9s %s kernel, %u x 64 rows, steps of %u x 32 columns: %" PRIu64
             " groups, %" PRIu64 " steps, %" PRIu64 " slots, %.3g clocks\n",
             pass_names[l->pass], shape->name, shape->warpgroups, shape->slots, f.groups,
             f.steps, f.slots, f.clocks);
}

json_t *steps_json(const struct step_launch *l, const struct step_shape *shape,
                   const struct plan_steps *t)
{
    const struct figures f = count(l, shape, t);
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f}", "shape", shape->name, "row_blocks",
                     (json_int_t)shape->warpgroups, "step_slots", (json_int_t)shape->slots,
                     "groups", (json_int_t)f.groups, "steps", (json_int_t)f.steps, "slots",
                     (json_int_t)f.slots, "clocks", f.clocks);
}
