/* SPDX-License-Identifier: Apache-2.0 */
/* The emulation of CUDA itself, by small kernels: it must notice what a wrong one does, and its
   products, matrix loads and 16-bit numbers must be what the hardware's documents say. */
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include "runtime/device/emulated/emulated.h"
#include "runtime/emulated/launch.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

/* A kernel of one block of 128 threads with 7808 bytes of shared memory; a.q.data is 512 bytes. */
struct body {
    enum abi_dtype dtype;
    const char *text;
};

static const char *template_of(const char *name)
{
    for (const struct source_file *f = templates_embedded; f->name; f++)
        if (!strcmp(f->name, name))
            return f->text;
    fail_msg("no template %s", name);
    return NULL;
}

static char *text_of_body(const char *text, void *data)
{
    static const char *const plan[] = {
        [ABI_BF16] = "#include \"abi.h\"\nenum { THREADS = 128, DTYPE = ABI_BF16 };\n",
        [ABI_F16] = "#include \"abi.h\"\nenum { THREADS = 128, DTYPE = ABI_F16 };\n"};
    const struct body *b = data;
    struct text entry = {0}, out = {0};
    (void)text;
    text_add(&entry,
             "#include \"cuda/common/matrix.h\"\nENTRY(attention_forward)(ARGS a)\n{\n"
             "struct f4 four = {0, 0, 0, 0}; struct u32x2 two = {0, 0};\n%s\n}\n",
             b->text);
    const struct source_file files[] = {
        {"entry.cu", text_get(&entry)},
        {"abi.h", template_of("abi.h")},
        {"cuda/common/device.h", template_of("cuda/common/device.h")},
        {"cuda/common/matrix.h", template_of("cuda/common/matrix.h")},
        {"kernel_config.h", plan[b->dtype]}};
    struct source s = {.files = files, .n_files = sizeof files / sizeof *files};
    source_flatten(&s, &out);
    text_finish(&entry);
    return text_take(&out);
}

/* Returns the launch's result; *e holds the emulation's finding. */
static int run_body(struct body b, struct error *e)
{
    const struct kernel_case c = {"dense", 8, 1, {.dtype = ABI_F32, .head_dim = 16}};
    *e = (struct error){0};
    struct maskc_kernel *k = fixture_load(&c, text_of_body, &b, e);
    if (!k)
        fail_msg("%s", e->text);
    struct problem p = fixture_problem(k);
    struct problem_data *d = problem_inputs(&p);
    int r = kernel_run_problem(k, &p, d, false, 1, e);
    problem_data_destroy(d);
    kernel_unload(k);
    return r;
}

/* ---- what wrong kernels do ---- */

#define COPY(to) "copy_async_16(SHARED_HALF() + 8 * (" to "), a.q.data, 1);"

/* A body, and a part of what the emulation must say; empty: nothing. */
static const struct wrong {
    const char *body, *complaint;
} wrongs[] = {
    /* barriers */
    {"if (THREAD != 7) SYNC();", "thread 7 has ended"},
    {"if (THREAD < 64) { SYNC(); } else { SYNC_WARP(); SYNC(); }", ""},
    {"if (THREAD == 3) SYNC_WARP(); SYNC();", "threads wait for each other"},
    {"if (THREAD < 64) { SYNC(); }\nelse { SYNC(); }", "at different barriers"},
    {"if (THREAD & 1) { SHUFFLE_XOR(1.0f, 1); }\nelse { SHUFFLE_XOR(1.0f, 2); }",
     "a warp diverged"},
    {"if (THREAD & 1) { ANY(1); } else { SHUFFLE_XOR(1.0f, 2); }", "a warp diverged"},
    {"if (THREAD % 32 < 16) warp_or(1);", "threads wait for each other"},
    /* races */
    {"shared_put(SHARED(), 1);", "writes what another wrote since the last barrier"},
    {"if (!THREAD) shared_put(SHARED(), 1); if (THREAD == 1) shared_get(SHARED());",
     "reads what"},
    {"shared_put(SHARED() + THREAD, 1); SYNC(); shared_get(SHARED() + 5); "
     "if (THREAD == 6) shared_put(SHARED() + 5, 1);",
     "since the last barrier"},
    {"shared_put_u32(SHARED() + THREAD, 1); SYNC_WARP(); shared_get_u32(SHARED() + (THREAD ^ "
     "1));",
     ""},
    {"shared_put(SHARED() + THREAD, 1); ANY(1); shared_get(SHARED() + (THREAD ^ 1));",
     "reads what another wrote since the last barrier"},
    {"shared_put(SHARED() + THREAD, 1); SYNC_WARP(); shared_get(SHARED() + (THREAD ^ 32));",
     "reads what"},
    {"shared_put(SHARED() + THREAD, 1); SYNC(); shared_get(SHARED() + (THREAD ^ 33)); "
     "SYNC_WARP(); "
     "shared_put(SHARED() + THREAD, 1);",
     "writes what another read since the last barrier"},
    {"shared_put(SHARED() + THREAD, 1); SYNC_WARP(); shared_get(SHARED() + (THREAD ^ 1)); "
     "shared_get(SHARED() + (THREAD ^ 2)); SYNC_WARP(); shared_put(SHARED() + THREAD, 1);",
     ""},
    {"shared_put(SHARED() + THREAD, 1); SYNC_WARP(); shared_get(SHARED() + (THREAD ^ 1)); "
     "shared_get(SHARED() + (THREAD ^ 2)); shared_put(SHARED() + THREAD, 1);",
     "what another"},
    /* bounds */
    {"shared_get(SHARED() + THREAD);", "reads what nobody wrote"},
    {"shared_put(SHARED() + 7808 / 4, 1);", "goes outside"},
    {"shared_put(SHARED() - 1, 1);", "goes outside"},
    {"shared_put_u32x2(SHARED() + 7808 / 4 - 1, two);", "goes outside"},
    {"shared_put4(SHARED() + 1, four);", "is misaligned"},
    {"shared_get_u32x4(SHARED() + 2);", "is misaligned"},
    {"shared_get_u32x2(SHARED() + 1);", "is misaligned"},
    {"u32 r[4]; matrix_load4(r, SHARED_HALF() + 4);", "is misaligned"},
    {"u32 r[4]; matrix_load4(r, SHARED_HALF());", "reads what nobody wrote"},
    /* copies */
    {COPY("THREAD") "copy_async_commit(); COPY_ASYNC_WAIT(0); shared_get(SHARED() + 4 * "
                    "THREAD);",
     ""},
    {COPY("THREAD") "copy_async_commit(); SYNC(); shared_get(SHARED() + 4 * THREAD); "
                    "COPY_ASYNC_WAIT(0);",
     "reads what a copy has still to bring"},
    {COPY("THREAD") "COPY_ASYNC_WAIT(0); shared_get(SHARED() + 4 * THREAD);",
     "reads what a copy has still to bring"},
    {COPY("THREAD") "copy_async_commit(); COPY_ASYNC_WAIT(0); shared_get(SHARED() + 4 * "
                    "(THREAD ^ 1));",
     "reads what"},
    {COPY("THREAD") "copy_async_commit(); SYNC(); COPY_ASYNC_WAIT(0); "
                    "shared_get(SHARED() + 4 * (THREAD ^ 1));",
     "reads what"},
    {COPY("THREAD") "copy_async_commit(); COPY_ASYNC_WAIT(0); SYNC(); "
                    "shared_get(SHARED() + 4 * (THREAD ^ 1));",
     ""},
    {COPY("THREAD") "copy_async_commit();" COPY(
         "THREAD + 128") "copy_async_commit(); COPY_ASYNC_WAIT(1); shared_get(SHARED() + 4 * "
                         "THREAD); COPY_ASYNC_WAIT(0);",
     ""},
    {COPY("THREAD") "copy_async_commit();" COPY(
         "THREAD + 128") "copy_async_commit(); COPY_ASYNC_WAIT(1); shared_get(SHARED() + 4 * "
                         "(THREAD + 128));",
     "reads what a copy has still to bring"},
    {COPY("THREAD") "copy_async_commit(); shared_put(SHARED() + 4 * THREAD, 1);",
     "writes where a copy is still on its way"},
    {COPY("THREAD") "copy_async_commit();" COPY("THREAD"),
     "writes where a copy is still on its way"},
    {COPY("0"), "a copy is on its way"},
    {COPY("THREAD") "copy_async_commit();", "ends while a copy is on its way"},
    {"copy_async_16(SHARED_HALF() + 8 * THREAD, (const char *)a.q.data + 4, 1);",
     "from a misaligned address"},
    {"copy_async_16(SHARED_HALF() + 8 * THREAD + 4, a.q.data, 1);", "is misaligned"},
};

static void test_wrong_kernels(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof wrongs / sizeof *wrongs; k++) {
        const struct wrong *w = &wrongs[k];
        struct error e;
        int r = run_body((struct body){ABI_BF16, w->body}, &e);
        if (w->complaint[0] ? r == 0 || !strstr(e.text, w->complaint) : r < 0)
            fail_msg("'%s': expected '%s', got '%s'", w->body, w->complaint, e.text);
        if (r < 0)
            assert_non_null(strstr(e.text, "attention_forward: block 0: "));
    }
}

/* ---- what right kernels compute ---- */

/* A body that goes outside of shared memory where CHECK does not hold. */
#define CHECK "if (!ok) shared_put(SHARED() - 1, 0);"
#define IDS   "u32 lane = THREAD % 32, g = lane / 4, t = lane % 4, ok = 1; (void)g; (void)t;"

/* A (16 x 16), then B by columns (16 columns of 16 rows), then B by rows, in shared memory: small
   whole numbers, whose products are exact. */
#define OPERANDS                                                                       \
    "half_t *s = SHARED_HALF();"                                                       \
    "for (u32 k = THREAD; k < 128; k += THREADS) {"                                    \
    "    u32 i = k / 8, j = k % 8 * 2;"                                                \
    "    shared_put_u32(s + 16 * i + j, half_pack(A_OF(i, j), A_OF(i, j + 1)));"       \
    "    shared_put_u32(s + 256 + 16 * i + j, half_pack(B_OF(j, i), B_OF(j + 1, i)));" \
    "    shared_put_u32(s + 512 + 16 * i + j, half_pack(B_OF(i, j), B_OF(i, j + 1)));" \
    "}"                                                                                \
    "SYNC();"
#define DEFINITIONS                                                  \
    "\n#define A_OF(i, k) ((float)((3 * (i) + 5 * (k)) % 11) - 4)\n" \
    "#define B_OF(k, j) ((float)((7 * (k) + 2 * (j)) % 13) - 6)\n"

static const char *const rights[] = {
    /* products: B by columns, then the same by rows */
    DEFINITIONS IDS OPERANDS
    "struct frag_a x; u32 b[4], c[4];"
    "matrix_load4(x.x, s + 16 * (lane % 16) + 8 * (lane / 16));"
    "matrix_load4(b, s + 256 + 16 * (lane % 8 + lane / 16 * 8) + lane / 8 % 2 * 8);"
    "matrix_load4_transposed(c, s + 512 + 16 * (lane % 16) + 8 * (lane / 16));"
    "for (u32 k = 0; k < 4; k++) ok &= b[k] == c[k];"
    "for (u32 half = 0; half < 2; half++) {"
    "    struct frag_c y = {{1, 2, 3, 4}};"
    "    mma_16816(&y, &x, b[2 * half], b[2 * half + 1]);"
    "    for (u32 k = 0; k < 4; k++) {"
    "        u32 i = g + 8 * (k / 2), j = 8 * half + 2 * t + k % 2; float sum = (float)(k + 1);"
    "        for (u32 m = 0; m < 16; m++) sum += A_OF(i, m) * B_OF(m, j);"
    "        ok &= y.x[k] == sum;"
    "    }"
    "}" CHECK,
    /* a matrix load's places */
    DEFINITIONS IDS OPERANDS
    "u32 r[4];"
    "matrix_load4(r, s + 16 * (lane % 16) + 8 * (lane / 16));"
    "for (u32 m = 0; m < 4; m++)"
    "    ok &= half_low(r[m]) == A_OF(g + 8 * (m % 2), 2 * t + 8 * (m / 2)) &&"
    "          half_high(r[m]) == A_OF(g + 8 * (m % 2), 2 * t + 1 + 8 * (m / 2));" CHECK,
    /* copies, and zeros in their place */
    IDS "copy_async_16(SHARED_HALF() + 8 * THREAD, (const char *)a.q.data + 16 * (THREAD % "
        "32), THREAD & 1);"
        "copy_async_commit(); COPY_ASYNC_WAIT(0);"
        "struct u32x4 x = shared_get_u32x4(SHARED_HALF() + 8 * THREAD);"
        "const u32 *q = (const u32 *)a.q.data + 4 * (THREAD % 32);"
        "ok = THREAD & 1 ? x.x == q[0] && x.y == q[1] && x.z == q[2] && x.w == q[3]"
        "                : !(x.x | x.y | x.z | x.w);" CHECK,
    /* lanes */
    IDS "ok = warp_or(1u << (lane & 6)) == 0x55 && ANY(lane == 9) && !ANY(lane == 32);"
        "ok &= SHUFFLE_XOR((float)lane, 5) == (float)(lane ^ 5);"
        "ok &= SHUFFLE_FROM((float)lane, lane / 4 * 4) == (float)(lane / 4 * 4);" CHECK,
    /* every half there and back; NaN stays one */
    IDS "for (u32 h = THREAD; h < 65536; h += THREADS) {"
        "    float x = half_low(h), y = half_high(h << 16);"
        "    ok &= x != x ? half_low(half_pack(x, 0)) != half_low(half_pack(x, 0))"
        "                 : half_pack(x, y) == (h | h << 16);"
        "}" CHECK,
    /* rounding: between two neighbours to the nearer, in the middle to the even one */
    IDS "for (u32 h = THREAD; half_low(h + 1) < 65504; h += THREADS) {"
        "    float x = half_low(h), y = half_low(h + 1), middle = 0.5f * x + 0.5f * y;"
        "    ok &= half_pack(middle, -middle) == (h + (h & 1) | (h + (h & 1) | 0x8000) << 16);"
        "    ok &= half_pack(float_of(bits_of(middle) + 1), float_of(bits_of(middle) - 1)) =="
        "          (h + 1 | h << 16);"
        "}" CHECK,
};

static void test_right_kernels(void **state)
{
    (void)state;
    for (enum abi_dtype dtype = ABI_BF16; dtype <= ABI_F16; dtype++)
        for (size_t k = 0; k < sizeof rights / sizeof *rights; k++) {
            struct error e;
            if (run_body((struct body){dtype, rights[k]}, &e) < 0)
                fail_msg("%s, %zu: %s", dtype_name(dtype), k, e.text);
        }
}

/* ---- banks ---- */

/* Wavefronts of one request by each of a body's four warps; `least`: without bank conflicts. */
static const struct {
    const char *body;
    enum emulation_access access;
    uint32_t bytes, wavefronts, least;
} requests[] = {
    {"shared_put(SHARED() + THREAD, 1);", EMULATION_WRITE, 4, 1, 1},
    {"shared_put(SHARED() + 2 * THREAD, 1);", EMULATION_WRITE, 4, 2, 1},
    {"if (THREAD % 32 < 8) shared_put(SHARED() + THREAD / 32 * 512 + 32 * (THREAD % 32), 1);",
     EMULATION_WRITE, 4, 8, 1},
    {"shared_put4(SHARED() + 4 * THREAD, four);", EMULATION_WRITE, 16, 4, 4},
    {"shared_put_u32x2(SHARED() + 2 * THREAD, two);", EMULATION_WRITE, 8, 2, 2},
    {COPY("THREAD / 4 + THREAD % 4 * 64") "copy_async_commit(); COPY_ASYNC_WAIT(0);",
     EMULATION_COPY, 16, 16, 4},
    {"shared_put4(SHARED() + 4 * THREAD, four); SYNC();"
     "shared_get(SHARED() + THREAD / 16);",
     EMULATION_READ, 4, 1, 1},
    {"shared_put4(SHARED() + 4 * THREAD, four); SYNC(); u32 r[4];"
     "matrix_load4(r, SHARED_HALF() + 8 * (THREAD % 8 * 8 + THREAD / 8 % 4));",
     EMULATION_MATRIX, 16, 32, 4},
    {"shared_put4(SHARED() + 4 * THREAD, four); SYNC(); u32 r[4];"
     "matrix_load4(r, SHARED_HALF() + 8 * (THREAD % 8 * 3 + THREAD / 8 % 4));",
     EMULATION_MATRIX, 16, 4, 4},
};

static void test_banks(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof requests / sizeof *requests; k++) {
        struct emulation_banks banks;
        struct error e;
        uint32_t found = 0;
        emulated_count_banks(&banks);
        if (run_body((struct body){ABI_BF16, requests[k].body}, &e) < 0)
            fail_msg("%s", e.text);
        emulated_count_banks(NULL);
        assert_int_equal(banks.missed, 0);
        for (uint32_t s = 0; s < banks.count; s++) {
            const struct emulation_site *site = &banks.site[s];
            assert_int_equal(site->requests, 4);
            if (site->access != requests[k].access)
                continue;
            assert_string_equal(site->function, "attention_forward");
            if (site->bytes != requests[k].bytes ||
                site->wavefronts != 4 * requests[k].wavefronts ||
                site->least != 4 * requests[k].least)
                fail_msg("'%s': %llu wavefronts, at least %llu", requests[k].body,
                         (unsigned long long)site->wavefronts, (unsigned long long)site->least);
            found++;
        }
        assert_int_equal(found, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_kernels),
        cmocka_unit_test(test_right_kernels),
        cmocka_unit_test(test_banks),
    };
    return cmocka_run_group_tests_name("emulation", tests, NULL, NULL);
}
