/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/snap/made.h"
#include "tests/support/test.h"
#include <math.h>
#include <string.h>

/* xorshift64*, 0 to 1. */
static double next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)(*state * UINT64_C(2685821657736338717) >> 11) * 0x1p-53;
}

static void fill_head(float *value, uint32_t n, uint64_t *state)
{
    static const double reach[] = {1.5, 3, 6, 12, 25};
    double height = 1 + 4 * next(state), length = reach[(int)(5 * next(state))];
    double ends = 4 * next(state), peak = 3 * next(state);
    uint32_t distance = 1 + (uint32_t)(8 * next(state));
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint32_t j = 0; j < n; j++) {
            uint32_t d = i > j ? i - j : j - i;
            double noise = next(state) + next(state) + next(state) - 1.5;
            double x = height * exp(-(double)d / length) + (d == distance ? peak : 0) +
                       (j == 0 || j + 1 == n ? ends : 0) + 2 * noise - (d ? 0 : 2);
            value[(size_t)i * n + j] = (float)exp(x);
            sum += exp(x);
        }
        for (uint32_t j = 0; j < n; j++)
            value[(size_t)i * n + j] /= (float)sum;
    }
}

struct importance made_importance(uint32_t layers, uint32_t heads, uint32_t n, uint64_t seed)
{
    struct importance p;
    struct error e;
    assert_int_equal(importance_new(layers, heads, n, "made", &p, &e), 0);
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (uint32_t k = 0; k < layers * heads; k++)
        fill_head(p.value + (size_t)k * n * n, n, &state);
    return p;
}

static const struct {
    const char *machine, *target;
    enum abi_dtype dtype;
} rows[] = {
    {"x86-avx512", "x86-64-v4", ABI_F32},
    {"x86-avx2", "x86-64-v3", ABI_F32},
    {"x86-amx", "x86-64-amx", ABI_BF16},
    {"h100-mma", "sm_90a", ABI_BF16},
};

struct snap_request made_request(const char *machine, double share)
{
    struct error e = {0};
    size_t k = 0;
    while (strcmp(rows[k].machine, machine))
        assert_true(++k < sizeof rows / sizeof *rows);
    struct snap_request r = {
        .share = share,
        .batch = 1,
        .threads = 1,
        .kernel = {.head_dim = 64, .dtype = rows[k].dtype, .backward = true},
        .target = target_find(rows[k].target, &e),
        .machine = machine_find(machine, &e)};
    assert_non_null(r.target);
    assert_non_null(r.machine);
    return r;
}

struct snap_result made_solution(const struct importance *p, const struct snap_request *r)
{
    struct snap_result s;
    struct error e = {0};
    if (snap_solve(p, r, &s, &e))
        fail_msg("%s", e.text);
    return s;
}
