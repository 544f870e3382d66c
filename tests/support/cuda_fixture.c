/* SPDX-License-Identifier: Apache-2.0 */
/* See cuda_fixture.h. */
#include "tests/support/cuda_fixture.h"
#include "gen/emit/emit.h"
#include "gen/family/family.h"
#include "gen/plan/plan.h"
#include "masks/base/memory.h"
#include "masks/input/load.h"
#include "runtime/device/emulated/emulated.h"
#include "tests/support/machine/kernel_machine.h"
#include "tests/support/plan_shape.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

/* The case's own mask stays the caller's. */
static const struct mask *load_mask(const struct kernel_case *c)
{
    if (c->own)
        return c->own;
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
    to->block_rows = p->block_rows;
    strcpy(to->machine, p->machine->name);
    to->text = memory_text("text");
    to->json = memory_text("{}");
    to->forward = p->forward;
    to->transposed = p->transposed;
    memcpy(to->steps, p->steps, sizeof to->steps);
}

/* Placeholder code of kernels that are never run. */
static const char *const no_code[] = {"none", NULL};

static void add_target(struct artifact *a, const char *name, const char *const *images,
                       const struct launch_record *l)
{
    struct artifact_target *to = &a->target[a->n_targets++];
    strcpy(to->name, name);
    strcpy(to->compiler, "none");
    for (; *images; images++)
        to->image[to->n_images++] =
            (struct code_image){(const uint8_t *)*images, strlen(*images)};
    to->launch = *l;
}

const char *const fixture_chips[] = {"sm_80",   "sm_86",  "sm_89",      "sm_90a",
                                     "sm_100a", "sm_120", "compute_80", NULL};

/* All chips, each with code of its own; freed by the caller. */
static uint8_t *add_chips(struct artifact *a, const struct launch_record *l)
{
    uint32_t count = 0;
    while (fixture_chips[count])
        count++;
    uint8_t *code = memory_new(count, FIXTURE_CODE_BYTES);
    for (uint32_t k = 0; k < count; k++) {
        add_target(a, fixture_chips[k], no_code, l);
        a->target[k].image[0].bytes =
            memset(code + k * (size_t)FIXTURE_CODE_BYTES, 'a' + (int)k, FIXTURE_CODE_BYTES);
        a->target[k].image[0].size = FIXTURE_CODE_BYTES;
    }
    return code;
}

uint8_t *fixture_file(const struct kernel_case *c, char *(*edit)(const char *text, void *data),
                      void *data, uint64_t *ret_size)
{
    struct error e = {0};
    const struct target *t = target_find(c->target ? c->target : "sm_80", &e);
    const struct mask *m = load_mask(c);
    struct kernel_request f = c->request; /* with what the mask adds to them */
    f.length = c->tiled ? 0 : m->n;
    const struct plan_options options = {.family =
                                             c->family ? family_find(c->family, &e) : NULL};
    const struct machine *machine = c->machine ? c->machine : kernel_machine(t, &f);
    struct plan *p = plan_build(m, t, &f, machine, &options, &e);
    if (!p)
        fail_msg("%s: %s", c->mask, e.text);
    plan_take_shape(p, m, c->shape);
    struct source *s = emit_source(t, &p->config);
    struct artifact *a = memory_new(1, sizeof *a);
    a->mask = memory_copy(m, sizeof *m); /* the same but for `const` */
    a->request = f;
    add_plan(a, p);
    uint8_t *code = NULL;
    if (c->all_chips)
        code = add_chips(a, &s->launch);
    else
        add_target(a, t->name, c->images ? c->images : no_code, &s->launch);
    char *text = make_text(s, edit, data);
    for (uint32_t k = 0; k < a->n_targets; k++)
        a->target[k].source = text;
    uint8_t *bytes = artifact_write(a, ret_size);
    free(text);
    free(code);
    free(a->mask);
    free(a->plan[0].text);
    free(a->plan[0].json);
    free(a);
    source_destroy(s);
    plan_destroy(p);
    if (!c->own)
        mask_destroy((struct mask *)(uintptr_t)m);
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
    struct problem p = problem_of(k);
    p.seed = UINT64_C(0x123456789abcdef);
    p.random_seed = 7;
    return p;
}

struct maskc_kernel *must_load_text(const struct kernel_case *c)
{
    struct error e = {0};
    struct maskc_kernel *k = fixture_load(c, NULL, NULL, &e);
    if (!k)
        fail_msg("%s n=%u: %s", c->mask, c->n, e.text);
    return k;
}

void must_hold(const struct maskc_kernel *k, const struct problem *p, const char *name)
{
    struct error e = {0};
    struct check_result *r = NULL;
    uint32_t count = 0;
    const struct kernel_request *f = &k->artifact->request;
    if (check_problem(&(struct check){k, p, f->backward, 0, name}, &r, &count, &e) < 0)
        fail_msg("%s: %s", name, e.text);
    assert_true(count >= 2);
    for (uint32_t c = 0; c < count; c++)
        if (!r[c].ok)
            fail_msg("%s, %s d %u: error %g, at most %g", r[c].name, dtype_name(f->dtype),
                     f->head_dim, r[c].error, r[c].tolerance);
    free(r);
}

void must_launch(const struct maskc_kernel *k, uint32_t by, const char *name)
{
    struct problem p = fixture_problem(k), shorter = p;
    const int32_t n = (int32_t)p.length, lengths[] = {n / 2, 0, n}, m = (int32_t)p.key_length,
                  key_lengths[] = {m, m / 2, m / 3};
    p.batch = 3;
    p.lengths = lengths;
    p.key_lengths = m ? key_lengths : NULL;
    p.dropout = k->artifact->request.dropout ? 0.2 : 0;
    p.layout = LAYOUT_BHND;
    must_hold(k, &p, name);
    p.packed = true;
    p.layout = LAYOUT_QKV;
    if (!m)
        must_hold(k, &p, name);
    shorter.length -= by;
    shorter.key_length -= m ? by : 0;
    shorter.scale = -0.4;
    must_hold(k, &shorter, name);
}

struct problem_data *must_run(const struct maskc_kernel *k, const struct problem *p,
                              uint64_t seed, uint32_t threads)
{
    struct error e = {0};
    struct problem_data *d = problem_inputs(p);
    emulated_set_seed(seed);
    if (kernel_run_problem(k, p, d, k->artifact->request.backward, threads, &e) < 0)
        fail_msg("seed %llu: %s", (unsigned long long)seed, e.text);
    emulated_set_seed(0);
    return d;
}

void must_repeat(const struct maskc_kernel *k, const struct problem *p, uint64_t seeds)
{
    const size_t bytes = problem_elements(p) * sizeof(double),
                 key_bytes = problem_key_elements(p) * sizeof(double);
    const bool backward = k->artifact->request.backward;
    struct problem_data *first = must_run(k, p, 0, 0);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct problem_data *d = must_run(k, p, seed, (uint32_t)seed);
        assert_memory_equal(d->o, first->o, bytes);
        assert_memory_equal(d->lse, first->lse, bytes / p->head_dim);
        if (backward) {
            assert_memory_equal(d->d_q, first->d_q, bytes);
            assert_memory_equal(d->d_k, first->d_k, key_bytes);
            assert_memory_equal(d->d_v, first->d_v, key_bytes);
        }
        if (backward && p->bias) {
            assert_memory_equal(d->d_x, first->d_x, problem_bias_elements(p) * sizeof(double));
            assert_memory_equal(d->d_diagonal, first->d_diagonal,
                                problem_diagonal_elements(p) * sizeof(double));
        }
        problem_data_destroy(d);
    }
    problem_data_destroy(first);
}
