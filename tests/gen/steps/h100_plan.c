/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gen/steps/h100_plan.h"
#include "tests/support/test.h"

struct plan *h100_plan(const struct mask *m, uint32_t head_dim,
                       const struct kernel_family *family)
{
    struct error e = {0};
    const struct kernel_request r = {
        .dtype = ABI_BF16, .head_dim = head_dim, .backward = true, .length = m->n};
    const struct plan_options o = {.plain = true, .family = family};
    struct plan *p =
        plan_build(m, target_find("sm_90a", &e), &r, machine_find("h100-mma", &e), &o, &e);
    if (!p)
        fail_msg("%s", e.text);
    return p;
}
