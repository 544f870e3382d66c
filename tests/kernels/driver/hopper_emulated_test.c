/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a kernel with struct hopper_args on the device "emulated": the kernel returns them. */
#include "gen/emit/emit.h"
#include "runtime/device/hopper_args.h"
#include "runtime/emulated/tensor_map.h"
#include "tests/runtime/launches.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/test.h"
#include <string.h>

enum { N = 64, HEADS = 2, DIM = 64, BATCH = 3, PLACES = 4 };

/* Values that the kernel writes to O. */
struct seen {
    struct tensor_map rows[3], row[3], out[2];
    struct stream_maps columns[2];
    u32 works, column, slice_batch, block_count, misaligned, pattern;
};

static const char body[] =
    "#include \"cuda/common/device.h\"\n"
    "#include \"cuda/hopper/args.h\"\n"
    "#undef ARGS_STRUCT\n"
    "#define ARGS_STRUCT struct hopper_args\n"
    "ENTRY(attention_forward)(ARGS a)\n"
    "{\n"
    "    enum { MAPS = 14 * sizeof(struct tensor_map) };\n"
    "    u32 *end = (u32 *)((u8 *)a.a.o.data + MAPS);\n"
    "    if (THREAD || BLOCK)\n"
    "        return;\n"
    "    memcpy(a.a.o.data, a.rows, MAPS);\n"
    "    end[0] = a.steps.works;\n"
    "    end[1] = a.steps.steps[a.steps.groups[a.steps.work[0].item].step].column[1];\n"
    "    end[2] = a.a.slice_batch;\n"
    "    end[3] = BLOCKS;\n"
    "    end[4] = (u64)a.a.forward.patterns % 16;\n"
    "    end[5] = a.a.forward.patterns[2];\n"
    "}\n";

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
    struct text out = {0};
    const struct source_file files[] = {
        {"entry.cu", body},
        {"abi.h", template_of("abi.h")},
        {"cuda/common/device.h", template_of("cuda/common/device.h")},
        {"cuda/hopper/args.h", template_of("cuda/hopper/args.h")},
        {"kernel_config.h", "#include \"abi.h\"\nenum { THREADS = 128, DTYPE = ABI_F16 };\n"}};
    const struct source s = {.files = files, .n_files = sizeof files / sizeof *files};
    (void)text, (void)data;
    source_flatten(&s, &out);
    return text_take(&out);
}

static struct abi_group groups[] = {{.step = 0}, {.step = 1}};
static struct abi_step steps[] = {{.column = {1, 2}}, {.column = {3, 96}}};
static struct abi_work work[PLACES + 1] = {{0, 0}, {1, 1}};
static uint64_t layers[1][2] = {{1, PLACES}};

/* As in a file, at a multiple of 4 bytes. */
static _Alignas(16) u32 patterns[1 + 64] = {0, 1, 2, 3};

static struct maskc_kernel *load(void)
{
    const struct kernel_case c = {
        "dense", N, HEADS, {.dtype = ABI_F16, .head_dim = DIM}, .tiled = true};
    struct error e = {0};
    struct maskc_kernel *k = fixture_load(&c, text_of_body, NULL, &e);
    if (!k)
        fail_msg("%s", e.text);
    k->device->unload(k->code);
    k->artifact->plan[0].steps[PASS_FORWARD] = (struct plan_steps){
        .groups = groups, .steps = steps, .work = work, .layer_work = layers, .slots = 4};
    k->artifact->plan[0].forward.patterns = patterns + 1;
    k->artifact->plan[0].forward.n_patterns = 1;
    k->artifact->target[0].launch.forward[0].arguments = PHASE_HOPPER_FORWARD;
    if (k->device->load(k->artifact, k->target, DEVICE_CURRENT, &k->code, &e) < 0)
        fail_msg("%s", e.text);
    return k;
}

static void unload(struct maskc_kernel *k)
{
    k->artifact->plan[0].steps[PASS_FORWARD] = (struct plan_steps){0};
    kernel_unload(k);
}

static void check_map(const struct tensor_map *m, const void *address, uint32_t box)
{
    const struct emulated_tensor_map expected = {
        .magic = EMULATED_TENSOR_MAP,
        .address = (uintptr_t)address,
        .stride = {2, 2 * DIM, 2 * DIM * HEADS, 2 * DIM * HEADS * N},
        .extent = {DIM, HEADS, N, BATCH},
        .box = {64, 1, box, 1},
        .element_bytes = 2,
        .swizzle = 128};
    assert_memory_equal(m, &expected, sizeof expected);
}

static void test_arguments(void **state)
{
    (void)state;
    static _Alignas(64) uint16_t t[TENSORS][BATCH * N * HEADS * DIM];
    static float lse[BATCH * N * HEADS];
    struct maskc_tensor given[TENSORS] = {{0}};
    struct maskc_error failure;
    struct maskc_kernel *k = load();
    struct seen seen;
    for (int x = 0; x < TENSORS; x++)
        given[x].data = t[x];
    struct maskc_launch l = launch_over(given, lse);
    l.batch = BATCH;
    l.threads = 3;
    if (maskc_run(k, &l, &failure))
        fail_msg("%s", failure.text);
    memcpy(&seen, t[T_O], sizeof seen);
    check_map(&seen.rows[0], t[T_Q], 64);
    check_map(&seen.row[0], t[T_Q], 1);
    check_map(&seen.columns[0].run, t[T_K], 128);
    check_map(&seen.columns[0].tile, t[T_K], 32);
    check_map(&seen.columns[1].row, t[T_V], 1);
    check_map(&seen.out[0], t[T_O], 64);
    assert_int_equal(seen.works, PLACES);
    assert_int_equal(seen.column, 96);
    assert_int_equal(seen.slice_batch, BATCH);
    assert_int_equal(seen.block_count, 3);
    assert_int_equal(seen.misaligned, 0);
    assert_int_equal(seen.pattern, 3);
    unload(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arguments)};
    return cmocka_run_group_tests_name("cuda_hopper's arguments, emulated", tests, NULL, NULL);
}
