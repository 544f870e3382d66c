/* SPDX-License-Identifier: Apache-2.0 */
/* A packed batch on this machine's CPU gives, bit for bit, what its sequences give alone, however the
   device divides it: sequences much shorter than the mask, few and many, on one thread and on three. */
#include "masks/base/memory.h"
#include "runtime/kernel.h"
#include <math.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { N = 256, HEADS = 3, D = 64, ROW = HEADS * D, SEQUENCES = 40, TENSORS = 8, INPUTS = 4 };

/* q, k, v, dO, O, dQ, dK, dV: [tokens, HEADS, D]; lse: [HEADS, tokens] */
struct batch {
    float *x[TENSORS], *lse;
    int32_t offsets[SEQUENCES + 1];
    uint32_t tokens;
};

static struct batch new_batch(void)
{
    static const int32_t lengths[] = {5, 64, 33, 1, 0, 255, 17, 128, 96, N};
    struct batch b = {.offsets = {0}};
    for (uint32_t k = 0; k < SEQUENCES; k++)
        b.offsets[k + 1] = b.offsets[k] + lengths[k % (sizeof lengths / sizeof *lengths)];
    b.tokens = (uint32_t)b.offsets[SEQUENCES];
    for (int t = 0; t < TENSORS; t++) {
        b.x[t] = memory_aligned((size_t)b.tokens * ROW, sizeof(float));
        for (size_t k = 0; k < (size_t)b.tokens * ROW; k++)
            b.x[t][k] =
                t < INPUTS ? (float)((k * 31 + (size_t)t * 17) % 1009) / 1009 - 0.5f : NAN;
    }
    b.lse = memory_aligned((size_t)b.tokens * HEADS, sizeof(float));
    return b;
}

static void free_batch(struct batch *b)
{
    for (int t = 0; t < TENSORS; t++)
        free(b->x[t]);
    free(b->lse);
}

static struct maskc_tensor rows_of(const struct batch *b, int t, int32_t first)
{
    return (struct maskc_tensor){.data = b->x[t] + (size_t)first * ROW};
}

static void launch(const struct maskc_kernel *kernel, struct maskc_launch l)
{
    for (int pass = 0; pass < 2; pass++) {
        struct maskc_error error;
        l.pass = (enum maskc_pass)pass;
        l.workspace_bytes = maskc_workspace_bytes(kernel, &l);
        l.workspace = memory_aligned(l.workspace_bytes, 1);
        if (maskc_run(kernel, &l, &error))
            fail_msg("%s", error.text);
        free(l.workspace);
    }
}

static struct maskc_launch launch_of(const struct batch *b, int32_t first, float *lse)
{
    return (struct maskc_launch){.query = rows_of(b, 0, first),
                                 .key = rows_of(b, 1, first),
                                 .value = rows_of(b, 2, first),
                                 .grad_out = rows_of(b, 3, first),
                                 .out = rows_of(b, 4, first),
                                 .grad_query = rows_of(b, 5, first),
                                 .grad_key = rows_of(b, 6, first),
                                 .grad_value = rows_of(b, 7, first),
                                 .lse = lse};
}

static void run_packed(const struct maskc_kernel *kernel, const struct batch *b,
                       uint32_t threads)
{
    struct maskc_launch l = launch_of(b, 0, b->lse);
    l.batch = SEQUENCES;
    l.offsets = b->offsets;
    l.tokens = b->tokens;
    l.threads = threads;
    launch(kernel, l);
}

/* Its rows of the packed tensors are a sequence's own [1, length, HEADS, D]. */
static void run_alone(const struct maskc_kernel *kernel, const struct batch *b)
{
    for (uint32_t k = 0; k < SEQUENCES; k++) {
        int32_t first = b->offsets[k], count = b->offsets[k + 1] - first;
        float lse[HEADS * N];
        if (!count)
            continue;
        struct maskc_launch l = launch_of(b, first, lse);
        l.length = (uint32_t)count;
        l.threads = 1;
        launch(kernel, l);
        for (int32_t h = 0; h < HEADS; h++)
            for (int32_t i = 0; i < count; i++)
                b->lse[(size_t)h * b->tokens + (size_t)(first + i)] = lse[h * count + i];
    }
}

static void check(const char *mask)
{
    struct maskc_options o = {.length = N, .heads = HEADS};
    struct maskc_bytes bytes = {0};
    struct maskc_error error;
    struct maskc_kernel *kernel;
    if (maskc_compile(mask, &o, &bytes, &error))
        fail_msg("%s: %s", mask, error.text);
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size, "cpu", &kernel, &error), 0);
    struct batch alone = new_batch();
    run_alone(kernel, &alone);
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        struct batch packed = new_batch();
        run_packed(kernel, &packed, threads);
        for (int t = INPUTS; t < TENSORS; t++)
            assert_memory_equal(packed.x[t], alone.x[t],
                                (size_t)alone.tokens * ROW * sizeof(float));
        assert_memory_equal(packed.lse, alone.lse,
                            (size_t)alone.tokens * HEADS * sizeof(float));
        free_batch(&packed);
    }
    free_batch(&alone);
    maskc_kernel_destroy(kernel);
    maskc_bytes_free(&bytes);
}

static void tiles(void **state)
{
    (void)state;
    check("local(48) | global(0, 250)");
}

static void walks(void **state)
{
    (void)state;
    check("window(3) | distance(40)");
}

static void parts_of_rows(void **state)
{
    (void)state;
    check("stride(8) | window(8)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles),
        cmocka_unit_test(walks),
        cmocka_unit_test(parts_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
