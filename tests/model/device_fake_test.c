/* SPDX-License-Identifier: Apache-2.0 */
/* Observations of the mock GPU: the requests to cuBLASLt, the calls recorded as a graph and
   replayed, and the allocations left after each call has failed once. */
#include "model/engine/encoder.h"
#include "model/engine/heads.h"
#include "runtime/load/load.h"
#include "tests/model/device_subject.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void what_cublas_can_is_fused(void **unused)
{
    static const struct {
        const char *act;
        enum element dtype;
        int fused, gelus; /* of a layer's four products */
    } acts[] = {
        {"gelu", ELEMENT_F32, 1, 0},      {"gelu_new", ELEMENT_F32, 1, 0},
        {"gelu_new", ELEMENT_BF16, 2, 1}, {"relu", ELEMENT_F32, 2, 0},
        {"silu", ELEMENT_BF16, 1, 0},
    };
    (void)unused;
    struct batch b;
    batch_make(&b);
    device_idle = true;
    for (size_t k = 0; k < 2 * sizeof acts / sizeof *acts; k++) {
        const size_t a = k / 2;
        device_fake->refuses_fusing = k % 2;
        random_model(1, 32, 2, 2, acts[a].act);
        struct engine *g = device_load("window(5)", NULL, acts[a].dtype, 0);
        device_fake->products = device_fake->fused = device_fake->gelus = device_fake->outside =
            0;
        free(batch_rows(g, b.list, SEQUENCES));
        assert_int_equal(device_fake->products, 4);
        assert_int_equal(device_fake->fused, k % 2 ? 0 : acts[a].fused);
        assert_int_equal(device_fake->gelus, k % 2 ? 0 : acts[a].gelus);
        assert_int_equal(device_fake->outside, 0);
        engine_destroy(g);
    }
    device_fake->refuses_fusing = 0;
    device_idle = false;
}

/* Without epilogues the row kernels finish products: the same numbers. */
static void unfused_is_the_same(void **unused)
{
    (void)unused;
    device_fake->refuses_fusing = 1;
    device_check(&bert_cases[1], ELEMENT_F32, 1e-5, 1e-5);
    device_fake->refuses_fusing = 0;
}

static void sizes_are_recorded_once(void **unused)
{
    (void)unused;
    struct batch b;
    struct engine_workspace workspace = {0};
    batch_make(&b);
    random_model(1, 32, 2, 2, "gelu");
    struct engine *g = device_load("window(5)", NULL, ELEMENT_F32, 0);
    device_idle = true;
    device_fake->captures = device_fake->replays = 0;
    for (int turn = 0; turn < 4; turn++) {
        batch_encode(g, b.list, SEQUENCES, &workspace);     /* once as it is, then replayed */
        batch_encode(g, b.list, SEQUENCES - 1, &workspace); /* another size */
    }
    assert_int_equal(device_fake->captures, 2);
    assert_int_equal(device_fake->replays, 6);
    device_fake->launches = device_fake->products = 0;
    batch_encode(g, b.list, SEQUENCES, &workspace);
    assert_int_equal(device_fake->launches + device_fake->products, 0);
    device_idle = false;
    engine_workspace_finish(&workspace);
    engine_destroy(g);
}

/* More sizes than recordings are kept of: the oldest give way. */
static void old_sizes_give_way(void **unused)
{
    (void)unused;
    uint32_t token_ids[POSITIONS] = {0};
    struct sequence list[41];
    struct engine_workspace workspace = {0};
    random_model(1, 32, 2, 2, "gelu");
    struct engine *g = device_load("window(5)", NULL, ELEMENT_F32, 0);
    device_idle = true;
    for (uint32_t n = 0; n < 41; n++)
        list[n] = (struct sequence){token_ids, 16, 16};
    for (uint32_t n = 41; n >= 1; n--)
        for (int twice = 0; twice < 2; twice++)
            batch_encode(g, list, n, &workspace);
    assert_true(device_fake->graphs > 0 && device_fake->graphs <= 32);
    device_idle = false;
    engine_workspace_finish(&workspace);
    assert_int_equal(device_fake->graphs, 0);
    engine_destroy(g);
}

/* "cuda" is the first GPU, for kernels too, whatever the GPU of the thread's context is. */
static void kernels_are_on_the_models_gpu(void **unused)
{
    (void)unused;
    random_model(1, 32, 2, 2, "gelu");
    for (int current = 0; current <= 2; current++) {
        device_fake->current = current;
        struct engine *g = device_load("dense", NULL, ELEMENT_F32, 0);
        const struct maskc_kernel *k = g->encoder->attention.kernel;
        assert_int_equal(k->device->ordinal(k->code), 0);
        engine_destroy(g);
    }
    device_fake->current = 0;
}

static bool holds_nothing(void)
{
    return !device_fake->contexts && !device_fake->modules && !device_fake->allocations &&
           !device_fake->streams && !device_fake->graphs && !device_fake->handles &&
           !device_fake->descriptions && !device_fake->pushed;
}

/* A model is loaded and run thrice; false with *e set where a call failed. */
static bool live(struct error *e)
{
    uint32_t token_ids[] = {3, 1, 2};
    struct sequence s = {token_ids, 3, 2};
    struct engine_workspace workspace = {0};
    struct engine_options o = {
        .mask = "dense", .threads = 1, .device = device_name, .parts = PART_POOLER};
    float pooled[32];
    struct engine *g = engine_load(random_folder, &o, e);
    bool ok = g;
    for (int k = 0; k < 3 && ok; k++)
        ok = engine_encode(g, &s, 1, &workspace, e) == 0;
    ok = ok && head_pool(g, &workspace, pooled, e) == 0;
    engine_workspace_finish(&workspace);
    engine_destroy(g);
    return ok;
}

/* A cuBLASLt of a newer major version than the driver's is passed over. */
static void a_newer_library_is_refused(void **unused)
{
    (void)unused;
    random_model(1, 32, 2, 2, "gelu");
    device_idle = true;
    for (device_fake->newer = 0; device_fake->newer <= 2; device_fake->newer++) {
        struct error e = {0};
        assert_int_equal(live(&e), device_fake->newer < 2);
        assert_true(device_fake->newer < 2 || strstr(e.text, "no cuBLASLt"));
    }
    device_fake->newer = 0;
    device_idle = false;
    assert_true(holds_nothing());
}

/* Each failing call is reported in one line that names it, and nothing stays allocated. */
static void each_failure_leaves_nothing(void **unused)
{
    (void)unused;
    struct error e = {0};
    random_model(1, 32, 2, 2, "gelu");
    device_idle = true;
    device_fake->calls = device_fake->failures = 0;
    assert_true(live(&e));
    const int calls = device_fake->calls;
    assert_true(calls > 100 && holds_nothing());
    assert_int_equal(device_fake->failures, 0);
    int told = 0;
    for (int k = 1; k <= calls; k++) {
        e = (struct error){0};
        device_fake->calls = 0;
        device_fake->fail_at = k;
        bool ok = live(&e);
        device_fake->fail_at = 0;
        /* Calls that only release, look for a faster choice or record a batch may fail silently. */
        told += !ok;
        if (!ok && (e.kind != ERROR_UNAVAILABLE || strchr(e.text, '\n') || !e.text[0]))
            fail_msg("call %d, %s: %d '%s'", k, device_fake->failed, (int)e.kind, e.text);
        if (!holds_nothing())
            fail_msg("call %d, %s: something is kept after '%s'", k, device_fake->failed,
                     e.text);
    }
    assert_true(told > calls / 2);
    device_idle = false;
}

int device_run_fake_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cublas_can_is_fused),
        cmocka_unit_test(unfused_is_the_same),
        cmocka_unit_test(sizes_are_recorded_once),
        cmocka_unit_test(old_sizes_give_way),
        cmocka_unit_test(kernels_are_on_the_models_gpu),
        cmocka_unit_test(a_newer_library_is_refused),
        cmocka_unit_test(each_failure_leaves_nothing),
    };
    return cmocka_run_group_tests_name("cuda, fake", tests, NULL, NULL);
}
