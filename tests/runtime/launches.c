/* SPDX-License-Identifier: Apache-2.0 */
/* See launches.h. */
#include "tests/runtime/launches.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct maskc_launch launch_over(const struct maskc_tensor t[TENSORS], float *lse)
{
    return (struct maskc_launch){.struct_size = sizeof(struct maskc_launch),
                                 .batch = 1,
                                 .query = t[T_Q],
                                 .key = t[T_K],
                                 .value = t[T_V],
                                 .grad_out = t[T_GRAD],
                                 .out = t[T_O],
                                 .grad_query = t[T_DQ],
                                 .grad_key = t[T_DK],
                                 .grad_value = t[T_DV],
                                 .lse = lse};
}

struct maskc_launch launch_over_one(struct maskc_tensor t, float *lse)
{
    const struct maskc_tensor all[TENSORS] = {t, t, t, t, t, t, t, t};
    return launch_over(all, lse);
}

void launch_both(const struct maskc_kernel *k, struct maskc_launch l)
{
    for (int pass = MASKC_FORWARD; pass <= MASKC_BACKWARD; pass++) {
        struct maskc_error error;
        l.pass = (enum maskc_pass)pass;
        l.workspace_bytes = maskc_workspace_bytes(k, &l);
        l.workspace = memory_aligned(l.workspace_bytes, 1);
        if (maskc_run(k, &l, &error))
            fail_msg("%s", error.text);
        free(l.workspace);
    }
}

struct batch batch_new(size_t elements, size_t rows)
{
    struct batch b;
    for (size_t t = 0; t < TENSORS; t++) {
        b.x[t] = memory_aligned(elements, sizeof(float));
        for (size_t k = 0; k < elements; k++)
            b.x[t][k] = t < INPUTS ? (float)((k * 31 + t * 17) % 1009) / 1009 - 0.5f : NAN;
    }
    b.lse = memory_aligned(rows, sizeof(float));
    return b;
}

void batch_free(struct batch *b)
{
    for (int t = 0; t < TENSORS; t++)
        free(b->x[t]);
    free(b->lse);
}

struct maskc_launch batch_launch(const struct batch *b, size_t at, float *lse)
{
    struct maskc_tensor t[TENSORS];
    for (int k = 0; k < TENSORS; k++)
        t[k] = (struct maskc_tensor){.data = b->x[k] + at};
    return launch_over(t, lse);
}
