/* SPDX-License-Identifier: Apache-2.0 */
/* Up to which length do the resident kernels take a problem, and do their blocks fit the target there? */
#include "gen/family/cuda_resident.h"
#include "tests/support/test.h"

#define FEATURES(type, d, ...)                                      \
    {                                                               \
        .dtype = type, .head_dim = d, .backward = true, __VA_ARGS__ \
    }

/* The longest sequences: any target forward, and backward on 99, 163 and 227 KiB; where heads are wide, as
   long as a block's warps have the registers (192 at D = 80 and 96, 128 beyond D = 128); 256 at
   most, backward. */
static void test_limits(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        uint32_t dim, forward, backward;
    } limit[] = {
        {"sm_86", 64, 396, 128},   {"sm_80", 64, 396, 186},   {"sm_90a", 64, 396, 234},
        {"sm_90a", 80, 316, 192},  {"sm_90a", 96, 264, 192},  {"sm_90a", 128, 198, 168},
        {"sm_90a", 144, 176, 128}, {"sm_90a", 256, 96, 96},   {"sm_80", 80, 316, 168},
        {"sm_86", 256, 96, 46},    {"sm_90a", 16, 1584, 256}, {"sm_90a", 32, 792, 256},
        {"sm_80", 32, 792, 226}};
    for (size_t k = 0; k < sizeof limit / sizeof *limit; k++) {
        struct error e;
        const struct target *t = target_find(limit[k].target, &e);
        uint32_t forward = 0, backward = 0;
        struct kernel_request f = FEATURES(ABI_BF16, limit[k].dim);
        for (f.length = 1; f.length < 4096; f.length++) {
            struct resident_shape s;
            if (resident_forward(t, &f, &s)) {
                forward = f.length;
                assert_true(s.shared_bytes <= t->shared_bytes && s.warps <= 4 &&
                            s.warps * s.heads <= 4);
            }
            if (resident_backward(t, &f, &s)) {
                backward = f.length;
                assert_true(s.shared_bytes <= t->shared_bytes && s.warps <= 12);
            }
        }
        assert_int_equal(forward, limit[k].forward);
        assert_int_equal(backward, limit[k].backward);
        f.length = 128;
        f.dtype = ABI_F32;
        assert_false(resident_forward(t, &f, NULL));
        f.dtype = ABI_BF16;
        f.length = 0;
        assert_false(resident_forward(t, &f, NULL));
    }
}

/* A warp has two row blocks of 16 rows where two blocks fit a processor, or a head has too many row blocks for a warp each. */
static void test_row_blocks(void **state)
{
    (void)state;
    static const struct {
        uint32_t length, warps, row_blocks;
    } shape[] = {{128, 4, 2},  {129, 9, 1},  {144, 9, 1},
                 {176, 11, 1}, {192, 12, 1}, {193, 7, 2}};
    struct error e;
    const struct target *t = target_find("sm_90a", &e);
    for (size_t k = 0; k < sizeof shape / sizeof *shape; k++) {
        const struct kernel_request r = FEATURES(ABI_BF16, 64, .length = shape[k].length);
        struct resident_shape s = {0};
        assert_true(resident_backward(t, &r, &s));
        assert_int_equal(s.warps, shape[k].warps);
        assert_int_equal(s.row_blocks, shape[k].row_blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_row_blocks)};
    return cmocka_run_group_tests_name("resident limits", tests, NULL, NULL);
}
