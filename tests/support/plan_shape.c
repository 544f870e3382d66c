/* SPDX-License-Identifier: Apache-2.0 */
/* See plan_shape.h. */
#include "tests/support/plan_shape.h"
#include "gen/family/family.h"
#include "gen/steps/steps.h"
#include "tests/support/test.h"
#include <string.h>

/* The index of the shape among those of the pass; their number where none has the name. */
static uint32_t find(const struct step_shape *const *shape, uint32_t count, const char *name)
{
    uint32_t k = 0;
    while (k < count && strcmp(shape[k]->name, name))
        k++;
    return k;
}

static bool take(struct plan *p, enum machine_pass pass, const char *name)
{
    const struct step_shape *shape[STEP_SHAPES_MOST];
    const uint32_t count = family_step_shapes(p->target, &p->config, pass, shape),
                   at = find(shape, count, name);
    const struct step_source source = {pass == PASS_DKV ? &p->transposed : &p->forward,
                                       p->at,
                                       p->n,
                                       p->layers,
                                       p->heads,
                                       p->n_masks};
    if (at == count)
        return false;
    if (p->config.step_shape[pass] == at)
        return true;
    steps_finish(&p->steps[pass]);
    memset(&p->steps[pass], 0, sizeof p->steps[pass]);
    p->config.step_shape[pass] = at;
    steps_build(&source, shape[at], &p->steps[pass]);
    return true;
}

void plan_take_shape(struct plan *p, const struct mask *m, const char *name)
{
    struct error e = {0};
    uint32_t passes = 0;
    for (int k = 0; name && k < PASSES; k++)
        passes += take(p, (enum machine_pass)k, name);
    if (name && !passes)
        fail_msg("no pass has a kernel shape %s", name);
    if (name && plan_check(p, m, &e))
        fail_msg("%s: %s", name, e.text);
}
