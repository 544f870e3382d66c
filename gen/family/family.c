/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/family/family.h"
#include <stddef.h>
#include <string.h>

extern const struct kernel_family family_cpu_matrix, family_cpu_vector, family_cuda_resident,
    family_cuda_hopper, family_cuda_tiled, family_cuda_simt;

/* The order matters: a later family is chosen only if its plan is over LEAST_FAMILY_GAIN cheaper than the best earlier one. */
/* clang-format off */
const struct kernel_family *const kernel_families[] = {
    &family_cpu_matrix,
    &family_cpu_vector,
    &family_cuda_resident,
    &family_cuda_tiled,
    &family_cuda_hopper,
    &family_cuda_simt,
    NULL,
};
/* clang-format on */

const struct kernel_family *family_find(const char *name, struct error *e)
{
    struct text known = {0};
    for (const struct kernel_family *const *k = kernel_families; *k; k++) {
        if (!strcmp((*k)->name, name)) {
            text_finish(&known);
            return *k;
        }
        text_add(&known, "%s%s", k == kernel_families ? "" : ", ", (*k)->name);
    }
    error_set(e, ERROR_INPUT, "unknown kernel family '%.64s'; known are %s", name,
              text_get(&known));
    text_finish(&known);
    return NULL;
}

/* A length that is not known is taken for a long one. */
static bool is_long_enough(const struct kernel_family *f, const struct kernel_request *r)
{
    return !r->length || r->length >= f->least_length;
}

uint32_t family_list(const struct target *t, const struct kernel_request *r,
                     enum family_pass pass, const struct kernel_family *ret[FAMILIES_MOST])
{
    uint32_t count = 0;
    for (const struct kernel_family *const *k = kernel_families; *k && count < FAMILIES_MOST;
         k++)
        if ((*k)->applies(t, r, pass) && is_long_enough(*k, r))
            ret[count++] = *k;
    return count;
}

const struct kernel_family *family_of(const struct target *t, const struct kernel_config *c,
                                      enum family_pass pass)
{
    const struct kernel_family *own = pass == FAMILY_FORWARD ? c->forward : c->backward;
    const struct kernel_family *const *k = kernel_families;
    while (!own && !(*k)->applies(t, &c->request, pass))
        k++;
    return own ? own : *k;
}

uint32_t family_can(const struct target *t, const struct kernel_config *c)
{
    const struct kernel_request *r = &c->request;
    uint32_t forward = family_of(t, c, FAMILY_FORWARD)->can(t, r, FAMILY_FORWARD);
    if (!r->backward)
        return forward;
    return forward & family_of(t, c, FAMILY_BACKWARD)->can(t, r, FAMILY_BACKWARD);
}

struct item_kernels family_item_kernels(const struct target *t, const struct kernel_config *c)
{
    const struct kernel_family *f = family_of(t, c, FAMILY_FORWARD);
    return f->item_kernels ? f->item_kernels(t, &c->request) : (struct item_kernels){0};
}

struct family_shape family_shape(const struct target *t, const struct kernel_config *c)
{
    return family_of(t, c, FAMILY_FORWARD)->shape(t, c);
}

uint32_t family_step_shapes(const struct target *t, const struct kernel_config *c,
                            enum machine_pass pass,
                            const struct step_shape *ret[STEP_SHAPES_MOST])
{
    const struct kernel_request *r = &c->request;
    if (pass != PASS_FORWARD && !r->backward)
        return 0;
    const struct kernel_family *f =
        family_of(t, c, pass == PASS_FORWARD ? FAMILY_FORWARD : FAMILY_BACKWARD);
    return f->step_shapes ? f->step_shapes(r, pass, ret) : 0;
}

bool family_is_matrix(const struct target *t, const struct kernel_config *c)
{
    return family_of(t, c, FAMILY_FORWARD)->matrix;
}

struct price_shape family_price_shape(const struct target *t, const struct kernel_config *c,
                                      uint32_t n, uint32_t heads)
{
    return (struct price_shape){.config = c,
                                .target = t,
                                .n = n,
                                .heads = heads,
                                .matrix = family_is_matrix(t, c),
                                .block_rows = family_shape(t, c).block_rows};
}

static const struct kernel_family *family_of_pass(const struct price_shape *s,
                                                  enum machine_pass pass)
{
    const bool forward = pass == PASS_FORWARD || !s->config->request.backward;
    return family_of(s->target, s->config, forward ? FAMILY_FORWARD : FAMILY_BACKWARD);
}

uint32_t family_in_flight(const struct machine *m, enum machine_pass pass, struct price_shape s)
{
    const struct kernel_family *f = family_of_pass(&s, pass);
    const uint32_t workers = s.config->tall ? m->workers / 2 : m->workers;
    if (!m->processors || !f->in_flight)
        return workers ? workers : 1;
    return m->processors * f->in_flight(s.target, s.config, pass);
}

struct price family_price(const struct machine *m, enum machine_pass pass, struct price_shape s)
{
    const struct kernel_family *f = family_of_pass(&s, pass);
    struct machine own = *m;
    if (f->rates)
        f->rates(s.target, s.config, &own);
    return price_make(&own, pass, s);
}

/* Families' prices are linear in the rates: a machine with a single nonzero rate gives the coefficient of that rate. */
double family_terms(const struct machine *m, enum machine_pass pass, struct price_shape s,
                    const struct effort *e, double ret[RATES])
{
    if (!family_of_pass(&s, pass)->rates) {
        effort_terms(m, s, e, ret);
        return 0;
    }
    struct machine one = *m;
    memset(one.rate, 0, sizeof one.rate);
    const struct price none = family_price(&one, pass, s);
    const double rest = price_of(&none, e);
    for (int k = 0; k < RATES; k++) {
        one.rate[pass][k] = 1;
        const struct price price = family_price(&one, pass, s);
        ret[k] = price_of(&price, e) - rest;
        one.rate[pass][k] = 0;
    }
    return rest;
}

const char *family_machine(const struct target *t, const struct kernel_request *r)
{
    const struct kernel_config c = {.request = *r};
    return family_is_matrix(t, &c) ? t->matrix_machine : t->machine;
}

void family_launch(const struct target *t, const struct kernel_config *c,
                   struct launch_record *ret)
{
    *ret = (struct launch_record){.block_rows = family_shape(t, c).block_rows};
    family_of(t, c, FAMILY_FORWARD)->launch(t, c, FAMILY_FORWARD, ret);
    if (c->request.backward)
        family_of(t, c, FAMILY_BACKWARD)->launch(t, c, FAMILY_BACKWARD, ret);
}
