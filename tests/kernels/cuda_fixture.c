/* SPDX-License-Identifier: Apache-2.0 */
/* See cuda_fixture.h. */
#include "tests/kernels/cuda_fixture.h"
#include "gen/emit/cuda.h"
#include "masks/base/memory.h"
#include "masks/load.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the standard ones */
#include <cmocka.h>

static struct mask *load_mask(const struct kernel_case *c)
{
    struct error e = {0};
    struct mask_request request = {
        .name = c->mask, .n = c->n, .heads = c->heads, MASK_REQUEST_DEFAULTS};
    struct mask *m = mask_load(&request, NULL, &e);
    if (!m)
        fail_msg("%s", e.text);
    return m;
}

/* The emitted files as one text, changed if asked. */
static char *make_text(const struct source *s, char *(*edit)(const char *text, void *data),
                       void *data)
{
    struct text flat = {0};
    source_flatten(s, &flat);
    char *text = text_take(&flat), *edited = edit ? edit(text, data) : NULL;
    if (!edit)
        return text;
    free(text);
    return edited;
}

static void add_plan(struct artifact *a, const struct plan *p)
{
    struct artifact_plan *to = &a->plan[a->n_plans++];
    to->strip_rows = p->strip_rows;
    strcpy(to->machine, p->machine->name);
    to->text = memory_text("text");
    to->json = memory_text("{}");
    to->forward = p->forward;
    to->transposed = p->transposed;
}

uint8_t *fixture_file(const struct kernel_case *c, char *(*edit)(const char *text, void *data),
                      void *data, uint64_t *ret_size)
{
    struct error e = {0};
    const struct target *t = target_find(c->target ? c->target : "sm_80", &e);
    struct mask *m = load_mask(c);
    struct features f = c->features; /* with what the mask adds to them */
    f.length = c->streamed ? 0 : m->n;
    struct plan *p = plan_build(m, t, &f, machine_find(target_machine(t, &f), &e), &e);
    if (!p)
        fail_msg("%s: %s", c->mask, e.text);
    struct source *s = emit_source(t, &f);
    struct artifact *a = memory_new(1, sizeof *a);
    struct artifact_target *target = &a->target[a->n_targets++];
    a->mask = m;
    a->features = f;
    add_plan(a, p);
    strcpy(target->name, t->name);
    strcpy(target->compiler, "none");
    target->code = (const uint8_t *)"none";
    target->code_size = 4;
    target->source = make_text(s, edit, data);
    target->launch = s->launch;
    uint8_t *bytes = artifact_write(a, ret_size);
    free(target->source);
    free(a->plan[0].text);
    free(a->plan[0].json);
    free(a);
    source_destroy(s);
    plan_destroy(p);
    mask_destroy(m);
    return bytes;
}

struct maskc_kernel *fixture_load(const struct kernel_case *c,
                                  char *(*edit)(const char *text, void *data), void *data,
                                  struct error *e)
{
    uint64_t size;
    uint8_t *bytes = fixture_file(c, edit, data, &size);
    struct maskc_kernel *k = NULL;
    if (kernel_load(bytes, size, c->mask, "emulated", &k, e) < 0)
        k = NULL;
    free(bytes);
    return k;
}

struct problem fixture_problem(const struct maskc_kernel *k)
{
    const struct artifact *a = k->artifact;
    return (struct problem){
        .mask = a->mask,
        .batch = 1,
        .length = a->mask->n,
        .head_dim = a->features.head_dim,
        .dtype = a->features.dtype,
        .transform = a->features.transform,
        .lambda = (double)a->features.lambda,
        .seed = UINT64_C(0x123456789abcdef),
        .random_seed = 7,
    };
}
