/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/family/family.h"
#include <stddef.h>

extern const struct kernel_family family_cpu_matrix, family_cpu_vector, family_cuda_resident,
    family_cuda_tiled, family_cuda_simt;

/* In the order in which they are asked. The plainest of a kind of target takes all, and stands last. */
const struct kernel_family *const kernel_families[] = {
    &family_cpu_matrix, &family_cpu_vector, &family_cuda_resident,
    &family_cuda_tiled, &family_cuda_simt,  NULL,
};

const struct kernel_family *family_of(const struct target *t, const struct kernel_request *r,
                                      enum family_pass pass)
{
    const struct kernel_family *const *k = kernel_families;
    while (!(*k)->applies(t, r, pass))
        k++;
    return *k;
}

uint32_t family_can(const struct target *t, const struct kernel_request *r)
{
    uint32_t forward = family_of(t, r, FAMILY_FORWARD)->can(t, r, FAMILY_FORWARD);
    if (!r->backward)
        return forward;
    return forward & family_of(t, r, FAMILY_BACKWARD)->can(t, r, FAMILY_BACKWARD);
}

struct item_kernels family_item_kernels(const struct target *t, const struct kernel_request *r)
{
    const struct kernel_family *f = family_of(t, r, FAMILY_FORWARD);
    return f->item_kernels ? f->item_kernels(t, r) : (struct item_kernels){0};
}

struct family_shape family_shape(const struct target *t, const struct kernel_config *c)
{
    return family_of(t, &c->request, FAMILY_FORWARD)->shape(t, c);
}

bool family_is_matrix(const struct target *t, const struct kernel_request *r)
{
    return family_of(t, r, FAMILY_FORWARD)->matrix;
}

struct price_shape family_price_shape(const struct target *t, const struct kernel_config *c,
                                      uint32_t n, uint32_t heads)
{
    return (struct price_shape){.config = c,
                                .target = t,
                                .n = n,
                                .heads = heads,
                                .matrix = family_is_matrix(t, &c->request),
                                .block_rows = family_shape(t, c).block_rows};
}

const char *family_machine(const struct target *t, const struct kernel_request *r)
{
    return family_is_matrix(t, r) ? t->matrix_machine : t->machine;
}

void family_launch(const struct target *t, const struct kernel_config *c,
                   struct launch_record *ret)
{
    const struct kernel_request *r = &c->request;
    *ret = (struct launch_record){.block_rows = family_shape(t, c).block_rows};
    family_of(t, r, FAMILY_FORWARD)->launch(t, c, FAMILY_FORWARD, ret);
    if (r->backward)
        family_of(t, r, FAMILY_BACKWARD)->launch(t, c, FAMILY_BACKWARD, ret);
}
