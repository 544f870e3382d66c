/* SPDX-License-Identifier: Apache-2.0 */
/* maskc plan MASK: what is visited how, why, and what it is predicted to cost. Nothing is compiled;
   every target can be planned for on every machine. */
#include "gen/plan/plan.h"
#include "tools/maskc/command.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

uint32_t command_threads(const struct options *o)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return o->threads ? o->threads : cores > 0 ? (uint32_t)cores : 1;
}

static void print(const struct plan *p, const struct options *o)
{
    uint32_t batch = o->batch ? o->batch : 1;
    if (o->json) {
        json_t *j = plan_json(p, batch, command_threads(o));
        if (o->model_note)
            json_object_set_new(j, "model", json_string(o->model_note));
        command_print_json(j);
        return;
    }
    struct text text = {0};
    if (o->model_note)
        text_add(&text, "%s\n", o->model_note);
    plan_print(p, batch, command_threads(o), &text);
    fputs(text_get(&text), stdout);
    text_finish(&text);
}

int command_plan(const struct options *o)
{
    struct error e = {0};
    const struct target *target[ARTIFACT_MAX_TARGETS];
    struct compile_request request;
    if (command_request(o, "cpu", target, &request, &e))
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
    struct plan_options best =
        fastest ? measured_options(fastest, mask, target[0], &request.request, machine)
                : (struct plan_options){0};
    best.family = request.plan.family;
    struct plan *plan = plan_build(mask, target[0], &request.request, machine, &best, &e);
    if (plan)
        print(plan, o);
    plan_destroy(plan);
    measured_finish(&measured);
    mask_destroy(mask);
    return plan ? 0 : command_fail(&e);
}
