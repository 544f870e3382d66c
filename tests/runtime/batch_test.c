/* SPDX-License-Identifier: Apache-2.0 */
/* A packed batch on this machine's CPU gives, bit for bit, what its sequences give alone, however the
   device divides it: sequences much shorter than the mask, few and many, on one thread and on three. */
#include "tests/runtime/launches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { N = 256, HEADS = 3, D = 64, ROW = HEADS * D, SEQUENCES = 40 };

/* Tensors [tokens, HEADS, D], lse [HEADS, tokens]. */
struct packed {
    struct batch batch;
    int32_t offsets[SEQUENCES + 1];
    uint32_t tokens;
};

static struct packed new_packed(void)
{
    static const int32_t lengths[] = {5, 64, 33, 1, 0, 255, 17, 128, 96, N};
    struct packed b = {.offsets = {0}};
    for (uint32_t k = 0; k < SEQUENCES; k++)
        b.offsets[k + 1] = b.offsets[k] + lengths[k % (sizeof lengths / sizeof *lengths)];
    b.tokens = (uint32_t)b.offsets[SEQUENCES];
    b.batch = batch_new((size_t)b.tokens * ROW, (size_t)b.tokens * HEADS);
    return b;
}

static void run_packed(const struct maskc_kernel *kernel, const struct packed *b,
                       uint32_t threads)
{
    struct maskc_launch l = batch_launch(&b->batch, 0, b->batch.lse);
    l.batch = SEQUENCES;
    l.offsets = b->offsets;
    l.tokens = b->tokens;
    l.threads = threads;
    launch_both(kernel, l);
}

/* Its rows of the packed tensors are a sequence's own [1, length, HEADS, D]. */
static void run_alone(const struct maskc_kernel *kernel, const struct packed *b)
{
    for (uint32_t k = 0; k < SEQUENCES; k++) {
        int32_t first = b->offsets[k], count = b->offsets[k + 1] - first;
        float lse[HEADS * N];
        if (!count)
            continue;
        struct maskc_launch l = batch_launch(&b->batch, (size_t)first * ROW, lse);
        l.length = (uint32_t)count;
        l.threads = 1;
        launch_both(kernel, l);
        for (int32_t h = 0; h < HEADS; h++)
            for (int32_t i = 0; i < count; i++)
                b->batch.lse[(size_t)h * b->tokens + (size_t)(first + i)] = lse[h * count + i];
    }
}

static void check(const char *mask)
{
    struct maskc_options o = {.struct_size = sizeof o, .length = N, .heads = HEADS};
    struct maskc_bytes bytes = {0};
    struct maskc_error error;
    struct maskc_kernel *kernel;
    if (maskc_compile(mask, &o, &bytes, &error))
        fail_msg("%s: %s", mask, error.text);
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size, "cpu", &kernel, &error), 0);
    struct packed alone = new_packed();
    run_alone(kernel, &alone);
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        struct packed packed = new_packed();
        run_packed(kernel, &packed, threads);
        for (int t = INPUTS; t < TENSORS; t++)
            assert_memory_equal(packed.batch.x[t], alone.batch.x[t],
                                (size_t)alone.tokens * ROW * sizeof(float));
        assert_memory_equal(packed.batch.lse, alone.batch.lse,
                            (size_t)alone.tokens * HEADS * sizeof(float));
        batch_free(&packed.batch);
    }
    batch_free(&alone.batch);
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
