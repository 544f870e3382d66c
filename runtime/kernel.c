/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline as one function: mask, plans, sources, binaries, kernel file. Host compiler and
   NVRTC work side by side, since each is most of a second. */
#include "runtime/kernel.h"
#include "gen/emit/cuda.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include <pthread.h>
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

/* The machine asked for where it is of the target's kind, else the target's own. */
static const struct machine *pick_machine(const struct compile_request *r,
                                          const struct target *t, struct error *e)
{
    const struct machine *asked = r->machine ? machine_find(r->machine, e) : NULL;
    if (r->machine && !asked)
        return NULL;
    return asked && asked->kind == t->kind ? asked : machine_find(t->machine, e);
}

static int check_machine(const struct compile_request *r, struct error *e)
{
    const struct machine *asked = r->machine ? machine_find(r->machine, e) : NULL;
    if (!r->machine)
        return 0;
    for (uint32_t k = 0; asked && k < r->n_targets; k++)
        if (r->targets[k]->kind == asked->kind)
            return 0;
    return asked ? error_set(e, ERROR_INPUT, "machine '%s' suits none of the targets",
                             asked->name)
                 : -1;
}

static int add_plan(struct pipeline *p, const struct target *t, const struct machine *machine,
                    struct error *e)
{
    const struct compile_request *r = p->request;
    tell(r, "plan", machine->name);
    struct plan *plan = plan_build(r->mask, t, &r->features, machine, e);
    if (!plan)
        return -1;
    struct artifact_plan *a = &p->artifact.plan[p->artifact.n_plans];
    p->plan[p->artifact.n_plans++] = plan;
    a->strip_rows = t->strip_rows;
    a->forward = plan->forward;
    a->transposed = plan->transposed;
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
    const struct machine *machine = pick_machine(p->request, t, e);
    if (!machine)
        return -1;
    uint32_t k = 0;
    while (k < p->artifact.n_plans && (p->artifact.plan[k].strip_rows != t->strip_rows ||
                                       strcmp(p->artifact.plan[k].machine, machine->name) != 0))
        k++;
    *ret = k;
    return k < p->artifact.n_plans ? 0 : add_plan(p, t, machine, e);
}

static int plan_all(struct pipeline *p, struct error *e)
{
    const struct compile_request *r = p->request;
    for (uint32_t k = 0; k < r->n_targets; k++)
        if (features_check(&r->features, r->targets[k], e) < 0)
            return -1;
    if (check_machine(r, e) < 0)
        return -1;
    for (uint32_t k = 0; k < r->n_targets; k++)
        if (find_plan(p, r->targets[k], &p->artifact.target[k].plan, e) < 0)
            return -1;
    return 0;
}

/* ---- code ---- */

/* One compiler's share: all targets of a kind, one after another. */
struct share {
    struct pipeline *p;
    enum target_kind kind;
    struct error error;
    int result;
};

static void *compile_share(void *argument)
{
    struct share *s = argument;
    const struct compile_request *r = s->p->request;
    for (uint32_t k = 0; k < r->n_targets && s->result == 0; k++)
        if (r->targets[k]->kind == s->kind)
            s->result = compile_source(s->p->source[k], r->targets[k], r->cache,
                                       &s->p->binary[k], &s->error);
    return NULL;
}

static bool has_kind(const struct compile_request *r, enum target_kind kind)
{
    for (uint32_t k = 0; k < r->n_targets; k++)
        if (r->targets[k]->kind == kind)
            return true;
    return false;
}

/* NVRTC stays in the calling thread; the host compiler is a child process that is waited for. */
static int compile_all(struct pipeline *p, struct error *e)
{
    struct share *cpu = memory_new(2, sizeof *cpu), *cuda = cpu + 1;
    pthread_t thread;
    *cpu = (struct share){.p = p, .kind = TARGET_CPU};
    *cuda = (struct share){.p = p, .kind = TARGET_CUDA};
    for (uint32_t k = 0; k < p->request->n_targets; k++) {
        p->source[k] = emit_source(p->request->targets[k], &p->request->features);
        tell(p->request, "compile", p->request->targets[k]->name);
    }
    bool both = has_kind(p->request, TARGET_CPU) && has_kind(p->request, TARGET_CUDA);
    bool beside = both && pthread_create(&thread, NULL, compile_share, cpu) == 0;
    if (!beside)
        compile_share(cpu);
    compile_share(cuda);
    if (beside)
        pthread_join(thread, NULL);
    const struct share *failed = cpu->result < 0 ? cpu : cuda->result < 0 ? cuda : NULL;
    int r = failed ? error_set(e, failed->error.kind, "%s", failed->error.text) : 0;
    free(cpu);
    return r;
}

static void fill_target(struct pipeline *p, uint32_t k)
{
    const struct target *t = p->request->targets[k];
    const struct binary *b = &p->binary[k];
    struct artifact_target *a = &p->artifact.target[k];
    snprintf(a->name, sizeof a->name, "%s", t->name);
    snprintf(a->compiler, sizeof a->compiler, "%s", b->compiler);
    a->code = b->bytes;
    a->code_size = b->size;
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
    struct pipeline *p = memory_new(1, sizeof *p);
    p->request = r;
    p->artifact.mask = (struct mask *)r->mask;
    p->artifact.features = r->features;
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
