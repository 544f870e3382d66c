/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline as one function: mask, plans, sources, binaries, kernel file. The binaries are made
   side by side; everything else takes milliseconds. */
#include "runtime/pipeline/pipeline.h"
#include "gen/emit/emit.h"
#include "gen/key_shape.h"
#include "masks/base/memory.h"
#include "runtime/base/process.h"
#include "runtime/base/thread_pool.h"
#include "runtime/compile/compile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All that is made on the way, by target, and the artifact that points into it. */
struct pipeline {
    const struct compile_request *request;
    struct artifact artifact;
    struct plan *plan[ARTIFACT_MAX_TARGETS];
    struct source *source[ARTIFACT_MAX_TARGETS];
    struct binary binary[ARTIFACT_MAX_TARGETS];
};

static void tell(const struct compile_request *r, const char *what, const char *name)
{
    char step[96];
    snprintf(step, sizeof step, "%s %s", what, name);
    if (r->progress)
        r->progress(step);
}

/* ---- plans ---- */

int compile_check_machine(const struct compile_request *r, struct error *e)
{
    if (!r->machine || !strcmp(r->machine, CALIBRATED))
        return 0;
    const struct machine *asked = machine_find(r->machine, e);
    for (uint32_t k = 0; asked && k < r->n_targets; k++)
        if (r->targets[k]->kind == asked->kind)
            return 0;
    return asked ? error_set(e, ERROR_INPUT, "machine '%s' suits none of the targets",
                             asked->name)
                 : -1;
}

static struct plan *make_plan(const struct compile_request *r, const struct target *t,
                              const struct machine *machine, struct error *e)
{
    tell(r, "plan", machine->name);
    const struct plan_options best =
        r->measured
            ? measured_options(r->measured, r->mask, t, &r->request, machine, r->plan.family)
            : r->plan;
    return plan_build(r->mask, t, &r->request, machine, &best, e);
}

static int add_plan(struct pipeline *p, const struct target *t, const struct machine *machine,
                    struct error *e)
{
    const struct compile_request *r = p->request;
    struct plan *plan = r->planned ? r->planned : make_plan(r, t, machine, e);
    if (!plan)
        return -1;
    struct artifact_plan *a = &p->artifact.plan[p->artifact.n_plans];
    p->plan[p->artifact.n_plans++] = plan;
    a->block_rows = plan->block_rows;
    a->forward = plan->forward;
    a->transposed = plan->transposed;
    memcpy(a->steps, plan->steps, sizeof a->steps);
    snprintf(a->machine, sizeof a->machine, "%s", machine->name);
    struct text text = {0};
    plan_print(plan, 1, 1, &text);
    a->text = text_take(&text);
    json_t *json = plan_json(plan, 1, 1);
    a->json = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(json);
    return 0;
}

/* The plan that a target uses, built where no earlier target had the same. */
static int find_plan(struct pipeline *p, const struct target *t, uint32_t *ret, struct error *e)
{
    const struct compile_request *r = p->request;
    const struct machine *machine =
        machine_choose(r->machine, r->calibration, t, &r->request, e);
    if (!machine)
        return -1;
    uint32_t k = 0;
    while (k < p->artifact.n_plans &&
           (!plan_suits(p->plan[k], t, &p->request->request, r->plan.family) ||
            strcmp(p->artifact.plan[k].machine, machine->name) != 0))
        k++;
    *ret = k;
    return k < p->artifact.n_plans ? 0 : add_plan(p, t, machine, e);
}

static int plan_all(struct pipeline *p, struct error *e)
{
    const struct compile_request *r = p->request;
    for (uint32_t k = 0; k < r->n_targets; k++)
        if (kernel_request_check(&r->request, r->targets[k], e) < 0)
            return -1;
    if (compile_check_machine(r, e) < 0 || emit_check_templates(e) < 0)
        return -1;
    for (uint32_t k = 0; k < r->n_targets; k++)
        if (find_plan(p, r->targets[k], &p->artifact.target[k].plan, e) < 0)
            return -1;
    return 0;
}

/* ---- code ---- */

struct compilation {
    struct pipeline *p;
    sigset_t held; /* what waits until all is done */
    struct error error[ARTIFACT_MAX_TARGETS];
    int result[ARTIFACT_MAX_TARGETS];
};

/* Placeholder for a binary that is never run. */
static struct binary no_binary(void)
{
    static const char none[] = "none";
    struct binary b = {0};
    binary_add(&b, none, sizeof none);
    memcpy(b.compiler, none, sizeof none);
    return b;
}

static void compile_target(void *context, uint32_t k)
{
    struct compilation *c = context;
    const struct compile_request *r = c->p->request;
    if (r->text_only && r->targets[k]->kind == TARGET_CUDA)
        c->p->binary[k] = no_binary();
    else if (interrupts_wait(&c->held))
        c->result[k] = error_set(&c->error[k], ERROR_UNAVAILABLE, "interrupted");
    else
        c->result[k] = compile_source(c->p->source[k], r->targets[k], r->cache,
                                      &c->p->binary[k], &c->error[k]);
}

/* Code for a matrix unit depends on the number of gathered columns that it keeps, which the plan decides. Installations
   carry the code that keeps the most: it gives the same bits. */
static bool has_wider_code(const struct target *t, const struct kernel_config *c)
{
    return t->kind == TARGET_CPU && c->gathers_kept && c->gathers_kept < GATHERS_KEPT_MOST;
}

/* The source to compile: the widest one if only that was compiled ahead, else the plan's own. */
static struct source *find_source(const struct target *t, const struct kernel_config *c)
{
    struct source *s = emit_source(t, c);
    struct kernel_config widest = *c;
    widest.gathers_kept = GATHERS_KEPT_MOST;
    if (!has_wider_code(t, c) || compiled_ahead(s, t))
        return s;
    source_configure(s, t, &widest);
    if (!compiled_ahead(s, t))
        source_configure(s, t, c);
    return s;
}

static int compile_all(struct pipeline *p, struct error *e)
{
    const struct compile_request *r = p->request;
    struct compilation *c = memory_new(1, sizeof *c);
    c->p = p;
    for (uint32_t k = 0; k < r->n_targets; k++) {
        tell(r, "compile", r->targets[k]->name);
        const struct plan *plan = p->plan[p->artifact.target[k].plan];
        p->source[k] = find_source(r->targets[k], &plan->config);
    }
    interrupts_hold(&c->held);
    thread_pool_run(r->n_targets, compile_target, c);
    interrupts_release(&c->held);
    int result = 0;
    for (uint32_t k = 0; k < r->n_targets && result == 0; k++)
        if (c->result[k] < 0)
            result = error_set(e, c->error[k].kind, "%s", c->error[k].text);
    free(c);
    return result;
}

static void fill_target(struct pipeline *p, uint32_t k)
{
    const struct target *t = p->request->targets[k];
    const struct binary *b = &p->binary[k];
    struct artifact_target *a = &p->artifact.target[k];
    snprintf(a->name, sizeof a->name, "%s", t->name);
    snprintf(a->compiler, sizeof a->compiler, "%s", b->compiler);
    a->n_images = b->n_images;
    memcpy(a->image, b->image, sizeof a->image);
    a->launch = p->source[k]->launch;
    a->n_kernels = b->n_kernels;
    memcpy(a->kernel, b->kernel, sizeof a->kernel);
    if (t->kind == TARGET_CUDA) {
        struct text one = {0};
        source_flatten(p->source[k], &one);
        a->source = text_take(&one);
    }
}

static void finish(struct pipeline *p)
{
    for (uint32_t k = 0; k < p->artifact.n_plans; k++) {
        free(p->artifact.plan[k].text);
        free(p->artifact.plan[k].json);
        if (p->plan[k] != p->request->planned)
            plan_destroy(p->plan[k]);
    }
    for (uint32_t k = 0; k < p->request->n_targets; k++) {
        free(p->artifact.target[k].source);
        if (p->source[k])
            source_destroy(p->source[k]);
        binary_finish(&p->binary[k]);
    }
    free(p);
}

int kernel_compile(const struct compile_request *r, uint8_t **ret, uint64_t *ret_size,
                   struct error *e)
{
    if (r->n_targets < 1 || r->n_targets > ARTIFACT_MAX_TARGETS)
        return error_set(e, ERROR_INPUT, "%u targets, expected 1..%d", r->n_targets,
                         ARTIFACT_MAX_TARGETS);
    if (!key_shape_fits(&r->request, r->mask))
        return error_set(e, ERROR_INPUT,
                         "the numbers of keys or key heads do not fit the mask");
    struct pipeline *p = memory_new(1, sizeof *p);
    struct compile_request request = *r; /* with what the mask adds to it */
    request.request.length = r->mask->n;
    p->request = &request;
    p->artifact.mask = (struct mask *)r->mask;
    p->artifact.order = r->order;
    p->artifact.request = request.request;
    p->artifact.n_targets = r->n_targets;
    int result = plan_all(p, e);
    if (result == 0)
        result = compile_all(p, e);
    if (result == 0) {
        for (uint32_t k = 0; k < r->n_targets; k++)
            fill_target(p, k);
        *ret = artifact_write(&p->artifact, ret_size);
    }
    finish(p);
    return result;
}
