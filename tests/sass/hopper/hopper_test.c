/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel with one of everything of sm_90a (products.cu) gives the right sums in several orders of warps, with copies as
   late and as early as possible. With a part taken away it fails, as the table says, and so it does with one line of
   machine code changed. Changes of $MASKC_KNOWN/sass_hopper.txt are skipped (known.h); --update writes it. */
#include "tests/sass/hopper/code.h"
#include "tests/sass/mutate.h"
#include "tests/sass/sample_key.h"
#include "tests/support/sass_setup.h"
#include "tests/support/test.h"
#include <immintrin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum {
    D = 64,
    ROWS = 100,
    KEYS = 70,
    STEP = 32,
    STEPS = 3,
    BEFORE = 16, /* keys of the first step that are not there */
    THREADS = 160,
    SHARED = 8192 + 2 * 4096 + 2 * 16 + 5 * 8 + 1024,
    F16 = 6, /* CU_TENSOR_MAP_DATA_TYPE_FLOAT16 */
    BF16 = 9,
    SWIZZLE_128 = 3,
};

static const float weights[STEPS][4] = {{1}, {2}, {3}};

struct arguments {
    _Alignas(64) uint8_t q[MAP_BYTES];
    uint8_t keys[MAP_BYTES], o[MAP_BYTES];
    void *weight;
    uint32_t steps;
};

static _Alignas(16) uint16_t q[ROWS][D];
static uint16_t keys[KEYS][D], o[ROWS][D];

static int type;
static struct known known; /* changes that were noticed before */

static float value(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return type == F16 ? _cvtsh_ss(half) : x;
}

/* -1, 0 or 1: sums are whole numbers, and products exact in both types. */
static void fill(uint16_t *to, uint32_t count, uint32_t seed)
{
    const uint16_t one = type == F16 ? 0x3c00 : 0x3f80;
    for (uint32_t k = 0; k < count; k++) {
        seed = seed * 1664525 + 1013904223;
        to[k] = (uint16_t)((seed >> 16) % 3 == 0 ? 0 : one | (seed >> 30 & 1) << 15);
    }
}

static float weight_of(uint32_t key)
{
    return weights[(key + BEFORE) / STEP][0];
}

static double expected(uint32_t row, uint32_t d)
{
    double sum = 0;
    for (uint32_t j = 0; j < KEYS; j++) {
        double s = 0;
        for (uint32_t k = 0; k < D; k++)
            s += (double)value(q[row][k]) * (double)value(keys[j][k]);
        sum += s * (double)weight_of(j) * (double)value(keys[j][d]);
    }
    return d < D / 2 ? -sum : sum;
}

static uint32_t wrong_entries(void)
{
    uint32_t wrong = 0;
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t d = 0; d < D; d++) {
            const double x = expected(r, d);
            wrong += !(fabs((double)value(o[r][d]) - x) <= fabs(x) / 256);
        }
    return wrong;
}

static void encode(void *map, void *address, uint32_t rows, uint32_t box_rows)
{
    const uint64_t size[] = {D, 1, rows, 1}, stride[] = {2 * D, 2 * D, 2 * D * rows};
    const uint32_t box[] = {D, 1, box_rows, 1}, step[] = {1, 1, 1, 1};
    assert_int_equal(map_encode(map, &(struct map_request){.type = type,
                                                           .swizzle = SWIZZLE_128,
                                                           .rank = 4,
                                                           .address = address,
                                                           .size = size,
                                                           .stride = stride,
                                                           .box = box,
                                                           .step = step}),
                     0);
}

/* 0 where the sums are right, else -1 with c->why set. */
static int run(struct code *c)
{
    struct arguments a = {.steps = STEPS};
    fill(q[0], ROWS * D, 1);
    fill(keys[0], KEYS * D, 2);
    memset(o, 0xff, sizeof o);
    void *out = code_put(c, o, sizeof o);
    encode(a.q, code_put(c, q, sizeof q), ROWS, 64);
    encode(a.keys, code_put(c, keys, sizeof keys), KEYS, STEP);
    encode(a.o, out, ROWS, 64);
    a.weight = code_put(c, weights, sizeof weights);
    int r = code_run(c, 2, THREADS, SHARED, (void *[]){&a});
    memcpy(o, out, sizeof o);
    if (r == 0 && wrong_entries()) {
        snprintf(c->why, sizeof c->why, "%u wrong entries", wrong_entries());
        r = -1;
    }
    while (c->memory.count)
        memory_free(&c->memory, c->memory.allocation[0].bytes);
    return r;
}

static void test_sums(void **state)
{
    (void)state;
    for (int f16 = 0; f16 < 2; f16++) {
        struct code c;
        type = f16 ? F16 : BF16;
        code_open_cuda(&c, "hopper/products.cu", f16 ? "-DF16=1" : NULL);
        for (uint32_t k = 0; k < 8; k++) {
            c.seed = k;
            c.early = k % 2;
            if (run(&c))
                fail_msg("f16 %d, seed %u: %s", f16, k, c.why);
        }
        code_close(&c);
    }
}

/* Parts of products.cu, and what the machine says without them. */
static const struct {
    const char *option, *name, *fault;
} parts[] = {
    {"-DLACKS=1", "wait for a full stage", "bulk copy"},
    {"-DLACKS=2", "wait for an empty stage", "twice in a phase"},
    {"-DLACKS=3", "stage given back", "deadlock"},
    {"-DLACKS=4", "fence before the store", "no fence.proxy.async followed"},
    {"-DLACKS=5", "barrier before the store", "race"},
    {"-DLACKS=6", "wait for the store", "nobody waited for a bulk store"},
    {"-DLACKS=7", "right number of bytes", "deadlock"},
    {"-DLACKS=8", "right parity", "deadlock"},
    {"-DLACKS=9", "right stride of a descriptor", "wrong entries"},
    {"-DLACKS=10", "swizzle of the store", "wrong entries"},
    {"-DLACKS=11", "wait for Q", "bulk copy"},
    {"-DLACKS=12", "single arrival", "twice in a phase"},
    {"-DLACKS=13", "barrier after the initialisation", "mbarrier"},
};

static void test_parts(void **state)
{
    uint32_t wrong = 0;
    (void)state;
    type = BF16;
    for (size_t k = 0; k < COUNT(parts); k++) {
        struct code c;
        if (known_skips(&known, cache_key(parts[k].option, strlen(parts[k].option))))
            continue;
        code_open_cuda(&c, "hopper/products.cu", parts[k].option);
        const bool failed = run(&c) != 0;
        if (!failed || !strstr(c.why, parts[k].fault)) {
            print_message("%s: expected \"%s\", was \"%s\"\n", parts[k].name, parts[k].fault,
                          failed ? c.why : "right");
            wrong++;
        }
        code_close(&c);
    }
    assert_int_equal(wrong, 0);
}

/* ---- changes to the machine code ---- */

static const struct {
    enum mutation kind;
    const char *name;
    bool may_not_matter; /* ptxas adds fences of its own */
} kinds[] = {{MUTATE_BARRIER, "barrier", false},    {MUTATE_COPY_WAIT, "wait", false},
             {MUTATE_FENCE, "fence", true},         {MUTATE_ARRIVAL, "arrival", false},
             {MUTATE_PHASE, "phase", false},        {MUTATE_BULK, "bulk copy", false},
             {MUTATE_TRANSPOSE, "transpose", false}};

/* Whether this change was noticed before, of a kind that always is. */
static bool was_noticed_before(uint32_t kind, const char *changed)
{
    return !kinds[kind].may_not_matter &&
           known_skips(&known, cache_key(changed, strlen(changed)));
}

/* Changes every line that can be: *noticed of the number returned. */
static uint32_t change_all(struct code *c, const char *text, const struct listing *l,
                           uint32_t kind, uint32_t *noticed)
{
    uint32_t made = 0;
    *noticed = 0;
    for (uint32_t k = 0; k < l->count; k++) {
        char name[300];
        if (!l->line[k].ran || !mutate_can(&l->line[k], kinds[kind].kind))
            continue;
        char *changed = mutate(text, &l->line[k], kinds[kind].kind, 0, name, sizeof name);
        const bool is_noticed =
            was_noticed_before(kind, changed) || code_change(c, changed) || run(c);
        if (!is_noticed && !kinds[kind].may_not_matter)
            print_message("not noticed: %s, %s\n", kinds[kind].name, name);
        *noticed += is_noticed;
        made++;
        free(changed);
    }
    return made;
}

/* The lines that ran, each of which is needed. */
static void list_lines(struct code *c, const char *text, struct listing *ret)
{
    uint64_t all = 0;
    assert_true(listing_find(ret, text, "multiply"));
    c->counts = calloc(ret->count, sizeof *c->counts);
    assert_int_equal(run(c), 0);
    for (uint32_t k = 0; k < ret->count; k++) {
        ret->line[k].ran = ret->line[k].needed = c->counts[k] > 0;
        all += c->counts[k];
    }
    free(c->counts);
    c->counts = NULL;
    c->most = 4 * all;
}

static void test_changes(void **state)
{
    struct code c;
    struct listing l;
    uint32_t total = 0;
    (void)state;
    type = BF16;
    code_open_cuda(&c, "hopper/products.cu", NULL);
    char *text = image_disassemble(c.cubin, c.bytes, c.why, sizeof c.why);
    list_lines(&c, text, &l);
    for (uint32_t kind = 0; kind < COUNT(kinds); kind++) {
        uint32_t noticed;
        const uint32_t made = change_all(&c, text, &l, kind, &noticed);
        assert_int_not_equal(noticed, 0);
        if (!kinds[kind].may_not_matter)
            assert_int_equal(noticed, made);
        total += made;
    }
    print_message("%u changes to machine code\n", total);
    listing_finish(&l);
    free(text);
    code_close(&c);
}

/* Requests that CUDA refuses: a valid request with one field changed. */
static void test_maps(void **state)
{
    _Alignas(64) uint8_t map[2 * MAP_BYTES];
    const uint64_t size[] = {D, 1, ROWS, 1}, none[] = {D, 0, ROWS, 1},
                   stride[] = {128, 128, 12800}, odd[] = {128, 136, 12800};
    const uint32_t box[] = {D, 1, 64, 1}, wide[] = {2 * D, 1, 64, 1}, tall[] = {D, 1, 257, 1},
                   narrow[] = {4, 1, 64, 1}, step[] = {1, 1, 1, 1};
    const struct map_request good = {BF16, 0, SWIZZLE_128, 0, 4, q, size, stride, box, step};
    struct map_request bad[8];
    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        bad[k] = good;
    bad[0].address = &q[0][1];
    bad[1].size = none;
    bad[2].stride = odd;
    bad[3].box = wide;
    bad[4].box = tall;
    bad[5].box = narrow;
    bad[6].rank = 6;
    bad[7].type = 99;
    assert_int_equal(map_encode(map, &good), 0);
    assert_int_not_equal(map_encode(map + 32, &good), 0);
    for (size_t k = 0; k < COUNT(bad); k++)
        if (!map_encode(map, &bad[k]))
            fail_msg("request %zu is accepted", k);
}

static void start_known(bool update)
{
    static const char *const text[] = {"tests/sass/hopper/products.cu", NULL};
    known_start(&known, "sass_hopper",
                known_key_join(sample_common(), known_key_of_files(text)), update);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_changes), cmocka_unit_test(test_maps)};
    const char *missing = setup_missing();
    if (missing) {
        print_message("skipped: %s\n", missing);
        return 77;
    }
    start_known(argc > 1 && !strcmp(argv[1], "--update"));
    return known_finish(&known, cmocka_run_group_tests_name("hopper", tests, NULL, NULL));
}
