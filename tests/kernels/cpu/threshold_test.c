/* SPDX-License-Identifier: Apache-2.0 */
/* Sparsegen's threshold where it meets scores: K keys of score 0 have a threshold of -1 / K, and many
   more keys lie at, or one rounding beside, just that. With them in the support the threshold comes out
   as theirs or a little beside it, so that they are alternately in and out: the search must end all the same,
   and the probabilities of every row sum to 1. So do they where the largest scores are so large that the threshold, as
   a float, equals them. */
#include "masks/base/memory.h"
#include "runtime/maskc.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 64, D = 16, MOST_FIRST = 24, BESIDE = 5, STEEP = (MOST_FIRST - 1) * BESIDE, BATCH };

static float *rows(void)
{
    float *x = memory_aligned((size_t)BATCH * N * D, sizeof *x);
    for (size_t k = 0; k < (size_t)BATCH * N * D; k++)
        x[k] = 0;
    return x;
}

/* The score is the product of first elements, which is exact. */
static void fill(float *query, float *key, float *value)
{
    for (int b = 0; b < STEEP; b++) {
        int first = 2 + b / BESIDE, beside = b % BESIDE - BESIDE / 2;
        float at = -1 / (float)first;
        for (int k = 0; k < abs(beside); k++)
            at = nextafterf(at, beside < 0 ? -1 : 0);
        for (int j = 0; j < N; j++) {
            size_t row = ((size_t)b * N + (size_t)j) * D;
            query[row] = 1;
            key[row] = j < first ? 0 : at;
            value[row] = 1;
        }
    }
    for (int j = 0; j < N; j++) {
        size_t row = ((size_t)STEEP * N + (size_t)j) * D;
        query[row] = value[row] = 1;
        key[row] = j % 20 == 7 ? 0x1p26f : 0;
    }
}

static void the_search_ends(void **state)
{
    (void)state;
    struct maskc_options o = {.struct_size = sizeof o,
                              .length = N,
                              .heads = 1,
                              .head_dim = D,
                              .transform = MASKC_SPARSEGEN,
                              .forward_only = 1};
    struct maskc_bytes bytes = {0};
    struct maskc_error error;
    struct maskc_kernel *kernel;
    if (maskc_compile("dense", &o, &bytes, &error) ||
        maskc_load_memory(bytes.data, bytes.size, "cpu", &kernel, &error))
        fail_msg("%s", error.text);
    float *query = rows(), *key = rows(), *value = rows(), *out = rows(), lse[BATCH * N];
    fill(query, key, value);
    struct maskc_launch l = {.struct_size = sizeof l,
                             .batch = BATCH,
                             .scale = 1,
                             .query = {.data = query},
                             .key = {.data = key},
                             .value = {.data = value},
                             .out = {.data = out},
                             .lse = lse};
    l.workspace_bytes = maskc_workspace_bytes(kernel, &l);
    l.workspace = memory_aligned(l.workspace_bytes, 1);
    if (maskc_run(kernel, &l, &error))
        fail_msg("%s", error.text);
    for (size_t i = 0; i < (size_t)BATCH * N; i++)
        if (!(fabsf(out[i * D] - 1) < 1e-5f))
            fail_msg("row %zu: its probabilities sum to %g", i, (double)out[i * D]);
    free(l.workspace);
    free(query);
    free(key);
    free(value);
    free(out);
    maskc_kernel_destroy(kernel);
    maskc_bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_search_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
