/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/machine/kernel_machine.h"
#include "gen/family/family.h"
#include <string.h>

/* Estimates of an A100 from before a GPU was measured. A merged row costs as much as 18 outputs. */
/* clang-format off */
static const struct machine rows[] = {
    {"a100", TARGET_CUDA, 19.5e12, 2.4e12, 1.4e12, 1.4e12, 0, 4e-6, 432, 0, {
        {1.8e-10, 2e-09, 2e-10, 1.5e-09, 4e-09, 3.6e-10, 6e-08, 1e-08, 4e-09, 3e-10,
         2e-06, 3e-07, 0, 3e-06, 1e-10, 0, 0, 0, 0, 0,
         4.3e-10, 0, 0, 0, 9e-10},
        {2.93e-10, 3.26e-09, 3.26e-10, 2.44e-09, 6.51e-09, 5.86e-10, 9.77e-08, 1.63e-08, 6.51e-09, 4.89e-10,
         3.26e-06, 4.89e-07, 0, 4.89e-06, 1.63e-10, 0, 0, 0, 0, 0,
         8.6e-10, 1.6e-10, 0, 0, 1.47e-09},
        {3.91e-10, 4.34e-09, 4.34e-10, 3.26e-09, 8.69e-09, 7.82e-10, 1.3e-07, 2.17e-08, 8.69e-09, 6.51e-10,
         4.34e-06, 6.51e-07, 0, 6.51e-06, 2.17e-10, 0, 0, 0, 0, 0,
         4.3e-10, 0, 0, 0, 1.95e-09},
    }},
    {"a100-mma", TARGET_CUDA, 312e12, 2.4e12, 1.4e12, 1.4e12, 0, 4e-6, 432, 0, {
        {2.2e-12, 2e-10, 5e-11, 2.5e-10, 0, 0, 0, 0, 1.5e-09, 1.5e-11,
         2e-06, 2e-07, 0, 2.5e-06, 1e-10, 0, 0, 0, 0, 0,
         4.3e-10, 0, 0, 0, 9e-10},
        {4.4e-12, 3.6e-10, 9e-11, 2.5e-10, 0, 0, 0, 0, 2.25e-09, 2.25e-11,
         3e-06, 3e-07, 0, 3.75e-06, 1.5e-10, 0, 0, 0, 0, 0,
         1.2e-09, 2.2e-12, 0, 0, 1.35e-09},
        {4.4e-12, 3.6e-10, 9e-11, 2.5e-10, 0, 0, 0, 0, 3e-09, 3e-11,
         3e-06, 3e-07, 0, 3.75e-06, 1.5e-10, 0, 0, 0, 0, 0,
         4.3e-10, 0, 0, 0, 1.35e-09},
    }},
};
/* clang-format on */

const struct machine *kernel_machine(const struct target *t, const struct kernel_request *r)
{
    const char *name = family_machine(t, r);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (!strcmp(rows[k].name, name))
            return &rows[k];
    return machine_find(name, NULL);
}
