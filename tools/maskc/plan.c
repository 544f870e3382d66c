/* SPDX-License-Identifier: Apache-2.0 */
/* maskc plan MASK: what is visited how, why, and what it is predicted to cost. Nothing is compiled;
   every target can be planned for on every machine. */
#include "gen/plan/plan.h"
#include "runtime/device/cpu_threads.h"
#include "tools/common/table.h"
#include "tools/maskc/command.h"
#include "tools/maskc/plan_text.h"
#include <stdio.h>
#include <stdlib.h>

uint32_t command_threads(const struct options *o)
{
    return o->threads ? o->threads : threads_most();
}

static int print(const struct plan *p, const struct options *o, struct error *e)
{
    uint32_t batch = o->batch ? o->batch : 1;
    json_t *j = plan_json(p, batch, command_threads(o));
    if (o->json) {
        if (o->model_note)
            json_object_set_new(j, "model", json_string(o->model_note));
        command_print_json(j);
        return 0;
    }
    struct text text = {0}, folded = {0};
    plan_print(p, batch, command_threads(o), &text);
    if (o->model_note)
        lines_fold(o->model_note, o->wide ? 0 : TABLE_WIDTH, 2, &folded);
    if (o->model_note && o->wide)
        text_add(&folded, "\n");
    int r = plan_text(text_get(&text), j, o, &folded, e);
    if (r == 0)
        fputs(text_get(&folded), stdout);
    text_finish(&folded);
    text_finish(&text);
    json_decref(j);
    return r;
}

int command_plan(const struct options *o)
{
    struct error e = {0};
    const struct target *target[ARTIFACT_MAX_TARGETS];
    struct compile_request request;
    if (command_check_head(o, &e) || command_one_target(o, "cpu", target, &request, &e))
        return command_fail(&e);
    const struct machine *machine =
        machine_choose(request.machine, request.calibration, target[0], &request.request, &e);
    if (!machine)
        return command_fail(&e);
    struct mask *mask = options_kernel_mask(o, o->argument[0], o->length[0], COMMAND_HEADS,
                                            &request.request, &e);
    if (!mask)
        return command_fail(&e);
    request.request.length = mask->n;
    struct measured_plans measured;
    const struct measured_plans *fastest = command_measured(o, &measured);
    const struct kernel_family *family = request.plan.family;
    const struct plan_options best =
        fastest ? measured_options(fastest, mask, target[0], &request.request, machine, family)
                : (struct plan_options){.family = family};
    struct plan *plan = plan_build(mask, target[0], &request.request, machine, &best, &e);
    int r = plan ? print(plan, o, &e) : -1;
    plan_destroy(plan);
    measured_finish(&measured);
    mask_destroy(mask);
    return r < 0 ? command_fail(&e) : 0;
}
