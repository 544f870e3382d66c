/* SPDX-License-Identifier: Apache-2.0 */
/* What NVRTC makes of every CUDA template, without a GPU: registers, spills and code within the
   budgets below, shared memory and registers within the chip, time to compile.
   `gates_test --all` takes every target, dtype and head dimension (the usual run some of
   them), targets and families named after that are taken alone; `--list` prints what it finds. */
#include "gen/emit/emit.h"
#include "gen/emit/stream.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
/* after the standard ones */
#include <cmocka.h>

/* ---- the budgets ---- */

/* clang-format off */
enum { DIMS = 6 };
static const uint32_t dims[DIMS] = {32, 64, 80, 96, 128, 256};

/* Limits of a chip, from the CUDA programming guide: shared memory of a block. */
static const struct chip {
    const char *target;
    uint32_t shared_kib;
} chips[] = {
    {"sm_80", 163}, {"sm_90a", 227}, {"sm_86", 99}, {"sm_89", 99}, {"sm_100a", 227}, {"sm_120", 99},
    {"compute_80", 99},
};
enum { CHIPS = sizeof chips / sizeof *chips, USUAL_CHIPS = 2, REGISTERS = 65536 };

/* One template, over all targets, dtypes and lengths. Registers by head dimension, 0 where the
   family takes no such head; bytes of stack (what is spilled) and KiB of code, both at D up to 128
   and at 256. */
static const struct budget {
    const char *family, *entry;
    enum abi_transform transform;
    uint32_t registers[DIMS]; /* D   32   64   80   96  128  256 */
    uint32_t spill, spill_256, code_kib, code_kib_256;
} budgets[] = {
    /* family   entry                       transform        D 32   64   80   96  128  256   stack     code KiB
       Stack at D = 256 alone, where the sums fill the registers. */
    {"float",  "attention_forward",        ABI_SOFTMAX,   {128, 136, 136, 144, 144, 208},   0,   0,  40,  48},
    {"float",  "attention_dkv",            ABI_SOFTMAX,   {152, 168, 168, 176, 200, 255},   0,   0,  64,  80},
    {"float",  "attention_dq",             ABI_SOFTMAX,   {144, 144, 144, 152, 160, 216},   0,   0,  40,  52},
    {"float",  "attention_forward",        ABI_SPARSEGEN, {136, 128, 128, 136, 144, 208},   0,   0,  52,  60},
    {"float",  "attention_dkv",            ABI_SPARSEGEN, {152, 168, 168, 176, 200, 255},   0,   0,  72,  84},
    {"float",  "attention_dq",             ABI_SPARSEGEN, {144, 144, 144, 144, 144, 208},   0,   0,  56,  64},
    {"tf32",   "attention_forward",        ABI_SOFTMAX,   {104, 120, 120, 120, 152, 200},   0,   0,  40,  50},
    {"tf32",   "attention_dkv",            ABI_SOFTMAX,   {136, 152, 160, 168, 192, 255},   0,   0,  66,  84},
    {"tf32",   "attention_dq",             ABI_SOFTMAX,   {136, 136, 136, 136, 160, 216},   0,   0,  64,  74},
    {"tf32",   "attention_forward",        ABI_SPARSEGEN, {120, 128, 128, 136, 160, 255},   0,   0,  50,  60},
    {"tf32",   "attention_dkv",            ABI_SPARSEGEN, {136, 152, 160, 168, 192, 255},   0,   0,  72,  92},
    {"tf32",   "attention_dq",             ABI_SPARSEGEN, {136, 144, 136, 136, 144, 200},   0,   0,  60,  68},
    {"short",  "attention_short_forward",  ABI_SOFTMAX,   {144, 176, 192, 200, 240, 255},   0,   0,  92,  64},
    {"short",  "attention_short_backward", ABI_SOFTMAX,   {248, 255, 255, 255, 255, 255},   0,  16,  88, 112},
    {"short",  "attention_short_forward",  ABI_SPARSEGEN, {255, 248, 216, 216, 248, 255},   0,   0, 120,  80},
    {"short",  "attention_short_backward", ABI_SPARSEGEN, {248, 255, 255, 255, 255, 255},   0,  16, 108, 132},
    {"stream", "attention_forward",        ABI_SOFTMAX,   {120, 160, 168, 184, 224, 255},   0,   0,  60,  68},
    {"stream", "attention_dkv",            ABI_SOFTMAX,   {176, 192, 224, 232, 255, 255},   0,  16,  64,  88},
    {"stream", "attention_dq",             ABI_SOFTMAX,   {168, 176, 224, 232, 248, 255},   0,   0,  60,  64},
    {"parts",  "attention_forward",        ABI_SOFTMAX,   {120, 160, 168, 184, 224, 255},   0,   0,  60,  68},
    {"parts",  "attention_dkv",            ABI_SOFTMAX,   {176, 192, 224, 232, 255, 255},   0,  16,  64,  88},
    {"parts",  "attention_dq",             ABI_SOFTMAX,   {168, 176, 224, 232, 248, 255},   0,   0,  60,  64},
    {"tall",   "attention_forward",        ABI_SOFTMAX,   {  0,   0,   0,   0, 224, 255},   0,   0,  60,  68},
    {"tall",   "attention_dkv",            ABI_SOFTMAX,   {  0,   0,   0,   0, 255, 255},   0,  16,  64,  88},
    {"tall",   "attention_dq",             ABI_SOFTMAX,   {  0,   0,   0,   0, 248, 255},   0,   0,  60,  64},
    {"stream", "attention_forward",        ABI_SPARSEGEN, {120, 136, 152, 168, 200, 255},   0,   0,  80,  88},
    {"stream", "attention_dkv",            ABI_SPARSEGEN, {168, 192, 224, 232, 255, 255},   0,  16,  80, 112},
    {"stream", "attention_dq",             ABI_SPARSEGEN, {168, 184, 208, 224, 248, 255},   0,  24,  80,  84},
    /* With a soft mask: of both kinds. */
    {"soft float",  "attention_forward",   ABI_SOFTMAX,   {152, 160, 160, 160, 168, 216},   0,   0,  40,  52},
    {"soft float",  "attention_dkv",       ABI_SOFTMAX,   {160, 176, 176, 184, 200, 255},   0,   0,  68,  84},
    {"soft float",  "attention_dq",        ABI_SOFTMAX,   {160, 168, 168, 168, 176, 216},   0,   0,  48,  56},
    {"soft float",  "attention_dx",        ABI_SOFTMAX,   {136, 136, 136, 136, 136, 136},   0,   0,  24,  24},
    {"soft float",  "attention_forward",   ABI_SPARSEGEN, {152, 152, 152, 152, 160, 216},   0,   0,  52,  60},
    {"soft float",  "attention_dkv",       ABI_SPARSEGEN, {160, 176, 176, 184, 200, 255},   0,   0,  76,  92},
    {"soft float",  "attention_dq",        ABI_SPARSEGEN, {168, 168, 168, 168, 168, 216},   0,   0,  60,  68},
    {"soft float",  "attention_dx",        ABI_SPARSEGEN, {136, 136, 136, 136, 136, 136},   0,   0,  32,  32},
    {"soft stream", "attention_forward",   ABI_SOFTMAX,   {136, 160, 168, 176, 216, 255},   0,   0,  56,  64},
    {"soft stream", "attention_dkv",       ABI_SOFTMAX,   {168, 200, 224, 240, 255, 255},   0,   0,  64,  88},
    {"soft stream", "attention_dq",        ABI_SOFTMAX,   {160, 192, 208, 224, 255, 255},   0,   0,  60,  64},
    {"soft stream", "attention_dx",        ABI_SOFTMAX,   {168, 168, 168, 168, 168, 136},   0,   0,  56,  36},
    {"soft stream", "attention_forward",   ABI_SPARSEGEN, {136, 160, 176, 184, 216, 255},   0,   0,  76,  84},
    {"soft stream", "attention_dkv",       ABI_SPARSEGEN, {168, 200, 224, 240, 255, 255},   0,   0,  80, 104},
    {"soft stream", "attention_dq",        ABI_SPARSEGEN, {168, 200, 216, 224, 255, 255},   0,  24,  68,  76},
    {"soft stream", "attention_dx",        ABI_SPARSEGEN, {168, 168, 168, 168, 168, 136},   0,   0,  76,  48},
    {"soft float",   "attention_dx_sum",    ABI_SOFTMAX,   { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft float",   "attention_dx_lines",  ABI_SOFTMAX,   { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft float",   "attention_dx_sum",    ABI_SPARSEGEN, { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft float",   "attention_dx_lines",  ABI_SPARSEGEN, { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft stream",  "attention_dx_sum",    ABI_SOFTMAX,   { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft stream",  "attention_dx_lines",  ABI_SOFTMAX,   { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft stream",  "attention_dx_sum",    ABI_SPARSEGEN, { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft stream",  "attention_dx_lines",  ABI_SPARSEGEN, { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
};
/* clang-format on */

/* Families and the lengths that bring them about: 0 is a length that is not known. "parts" is the
   streaming family with what plans with partial items need, "tall" with strips of 128 rows. */
static const struct family {
    const char *name;
    enum abi_dtype dtype;
    uint32_t length;
    bool usual;
    enum abi_soft soft;
} families[] = {
    {"float", ABI_F32, 0, true},
    {"short", ABI_BF16, 64, false},
    {"short", ABI_BF16, 128, true},
    {"short", ABI_BF16, 186, false},
    {"short", ABI_BF16, 234, false},
    {"short", ABI_BF16, 396, false},
    {"short", ABI_F16, 128, false},
    {"stream", ABI_BF16, 0, true},
    {"stream", ABI_F16, 0, false},
    {"parts", ABI_F16, 0, false},
    {"tall", ABI_F16, 0, false},
    {"soft float", ABI_F32, 0, true, ABI_SOFT_BIAS},
    {"soft float", ABI_F32, 0, true, ABI_SOFT_SCALE},
    {"soft stream", ABI_BF16, 0, true, ABI_SOFT_BIAS},
    {"soft stream", ABI_BF16, 0, true, ABI_SOFT_SCALE},
    {"soft stream", ABI_F16, 0, false, ABI_SOFT_SCALE},
    {"tf32", ABI_TF32, 0, false},
};
enum { FAMILIES = sizeof families / sizeof *families };

/* ---- one compilation ---- */

struct made {
    const struct chip *chip;
    const struct family *family;
    struct features features;
    struct launch_record launch;
    struct binary binary;
    double seconds; /* of processor time */
    bool failed;
    struct error error;
};

/* Of all its threads: NVRTC has some of its own. */
static double process_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compile(struct made *m)
{
    const struct target *t = target_find(m->chip->target, &m->error);
    struct source *s = emit_source(t, &m->features);
    double began = process_seconds();
    m->failed = nvrtc_compile(s, t, &m->binary, &m->error) < 0;
    m->seconds = process_seconds() - began;
    m->launch = s->launch;
    source_destroy(s);
}

static const struct phase *find_phase(const struct launch_record *l, const char *entry)
{
    for (uint32_t k = 0; k < l->n_forward; k++)
        if (!strcmp(l->forward[k].entry, entry))
            return &l->forward[k];
    for (uint32_t k = 0; k < l->n_backward; k++)
        if (!strcmp(l->backward[k].entry, entry))
            return &l->backward[k];
    return NULL;
}

/* A short kernel's backward pass may be another family's. */
static const char *family_of(const char *entry, const struct features *f)
{
    if (f->soft)
        return dtype_bytes(f->dtype) == 4 ? "soft float" : "soft stream";
    if (f->shared_rows || f->tall)
        return f->tall ? "tall" : "parts";
    if (dtype_bytes(f->dtype) == 4)
        return f->dtype == ABI_F32 ? "float" : "tf32";
    return strstr(entry, "_short_") ? "short" : "stream";
}

static const struct budget *find_budget(const char *family, const char *entry,
                                        enum abi_transform transform)
{
    for (size_t k = 0; k < sizeof budgets / sizeof *budgets; k++)
        if (!strcmp(budgets[k].family, family) && !strcmp(budgets[k].entry, entry) &&
            budgets[k].transform == transform)
            return &budgets[k];
    return NULL;
}

/* ---- verdicts ---- */

static bool listing;
static uint32_t violations;

static void complain(const struct made *m, const char *entry, const char *what, uint32_t found,
                     uint32_t allowed)
{
    print_error("%s, %s, D %u, %s n=%u: %s: %u %s, at most %u\n", m->chip->target,
                dtype_name(m->features.dtype), m->features.head_dim,
                m->features.transform ? "sparsegen" : "softmax", m->features.length, entry,
                found, what, allowed);
    violations++;
}

static void hold(const struct made *m, const char *entry, const char *what, uint32_t found,
                 uint32_t allowed)
{
    if (found > allowed)
        complain(m, entry, what, found, allowed);
}

static uint32_t dim_index(uint32_t dim)
{
    uint32_t k = 0;
    while (dims[k] != dim)
        k++;
    return k;
}

/* There ptxas takes whatever registers the launch bounds leave: "registers of a block" holds them. */
static bool is_newest(const struct chip *c)
{
    return !strcmp(c->target, "sm_100a") || !strcmp(c->target, "sm_120");
}

static void judge_kernel(const struct made *m, const struct kernel_resources *r)
{
    const struct phase *p = find_phase(&m->launch, r->entry);
    const struct budget *b =
        find_budget(family_of(r->entry, &m->features), r->entry, m->features.transform);
    if (listing)
        print_message(
            "%-11s %-10s %-5s %-9s D %3u n %3u %-26s %3u registers %5u spilled %6u code "
            "%6u shared %4u threads\n",
            family_of(r->entry, &m->features), m->chip->target, dtype_name(m->features.dtype),
            m->features.transform ? "sparsegen" : "softmax", m->features.head_dim,
            m->features.length, r->entry, r->registers, r->spill_bytes, r->code_bytes,
            p ? p->shared_bytes : 0, p ? p->threads : 0);
    if (!p || !b) {
        complain(m, r->entry, p ? "budgets for it" : "launches of it", 0, 1);
        return;
    }
    const bool large = m->features.head_dim == 256;
    if (!is_newest(m->chip))
        hold(m, r->entry, "registers", r->registers,
             b->registers[dim_index(m->features.head_dim)]);
    hold(m, r->entry, "bytes spilled", r->spill_bytes, large ? b->spill_256 : b->spill);
    hold(m, r->entry, "bytes of code", r->code_bytes,
         1024 * (large ? b->code_kib_256 : b->code_kib));
    hold(m, r->entry, "bytes of shared memory", p->shared_bytes, 1024 * m->chip->shared_kib);
    hold(m, r->entry, "registers of a block", (r->registers + 7) / 8 * 8 * p->threads,
         REGISTERS);
}

/* Milliseconds of processor time for a target and a pass, by head dimension, on a quiet machine: a core
   that is shared with others takes up to BUSY times as long. Sums of 256 positions are much text; NVRTC
   then still takes less than a second of wall time, dQ beside dK and dV. */
enum { BUSY = 2 };
static const uint32_t most_ms[DIMS] = {900, 1000, 1000, 1000, 1000, 1400};

static void judge(const struct made *m)
{
    if (m->failed) {
        print_error("%s\n", m->error.text);
        violations++;
        return;
    }
    uint32_t ms = (uint32_t)(1000 * m->seconds);
    if (listing)
        print_message("%-10s %-5s %-9s D %3u n %3u: %u ms\n", m->chip->target,
                      dtype_name(m->features.dtype),
                      m->features.transform ? "sparsegen" : "softmax", m->features.head_dim,
                      m->features.length, ms);
    hold(m, "all passes", "ms to compile", ms,
         BUSY * most_ms[dim_index(m->features.head_dim)] * (m->features.backward ? 2 : 1));
    for (uint32_t k = 0; k < m->binary.n_kernels; k++)
        judge_kernel(m, &m->binary.kernel[k]);
}

/* ---- which ---- */

static bool is_parts(const struct family *f)
{
    return !strcmp(f->name, "parts");
}

static bool is_tall(const struct family *f)
{
    return !strcmp(f->name, "tall");
}

/* The usual run: every family at two targets, D = 64 with both transforms and 128 with softmax; D =
   64 with softmax at all other targets. With a soft mask, one of each. */
static bool is_usual(uint32_t chip, const struct family *f, uint32_t dim,
                     enum abi_transform transform)
{
    if (is_tall(f))
        return chip < USUAL_CHIPS && dim == 128;
    if (!f->usual)
        return chip == 0 && f->dtype != ABI_BF16 && dim == 64 && transform == ABI_SOFTMAX;
    if (f->soft)
        return chip == 0 && dim == 64 && transform == ABI_SOFTMAX;
    if (dim == 64)
        return chip < USUAL_CHIPS || transform == ABI_SOFTMAX;
    return dim == 128 && chip < USUAL_CHIPS && transform == ABI_SOFTMAX;
}

/* Targets and families that were named; none of a kind: all. */
static const char *const *named;

static bool is_chip(const char *name)
{
    uint32_t c = 0;
    while (c < CHIPS && strcmp(chips[c].target, name))
        c++;
    return c < CHIPS;
}

static bool is_named(const char *what)
{
    bool others = false;
    for (const char *const *name = named; *name; name++) {
        if (!strcmp(*name, what))
            return true;
        others |= is_chip(*name) == is_chip(what);
    }
    return !others;
}

static bool is_asked(bool all, uint32_t chip, const struct family *f, uint32_t dim,
                     enum abi_transform transform)
{
    if ((is_tall(f) || is_parts(f)) && transform == ABI_SPARSEGEN)
        return false;
    return is_named(chips[chip].target) && is_named(f->name) &&
           (all || is_usual(chip, f, dim, transform));
}

/* Whether the family is what such features bring about. */
static bool is_family(const struct chip *c, const struct family *f, const struct features *x)
{
    struct error e;
    struct source *s = emit_source(target_find(c->target, &e), x);
    bool same = !strcmp(family_of(s->launch.forward[0].entry, x), f->name);
    source_destroy(s);
    return same;
}

static void add(struct made **made, uint32_t *count, uint32_t *room, uint32_t chip,
                const struct family *f, uint32_t dim, enum abi_transform transform)
{
    struct features x = {.dtype = f->dtype,
                         .transform = transform,
                         .lambda = transform == ABI_SPARSEGEN ? -4 : 0,
                         .head_dim = dim,
                         .dropout = true,
                         .backward = true,
                         .soft = f->soft,
                         .length = f->length};
    x.shared_rows = x.cut_rows = is_parts(f);
    x.tall = is_tall(f);
    if (x.tall && !stream_takes_tall(target_find(chips[chip].target, NULL), &x))
        return;
    if (is_family(&chips[chip], f, &x))
        *MEMORY_PUSH(*made, *count, *room) =
            (struct made){.chip = &chips[chip], .family = f, .features = x};
}

static struct made *list_all(bool all, uint32_t *ret_count)
{
    struct made *made = NULL;
    uint32_t count = 0, room = 0;
    for (uint32_t c = 0; c < CHIPS; c++)
        for (uint32_t f = 0; f < FAMILIES; f++)
            for (uint32_t d = 0; d < DIMS; d++)
                for (enum abi_transform t = ABI_SOFTMAX; t <= ABI_SPARSEGEN; t++)
                    if (is_asked(all, c, &families[f], dims[d], t))
                        add(&made, &count, &room, c, &families[f], dims[d], t);
    *ret_count = count;
    return made;
}

static void test_gates(void **state)
{
    struct error e = {0};
    uint32_t count;
    if (!nvrtc_version(&e)[0]) {
        print_message("skipped: %s\n", e.text);
        skip();
    }
    struct made *made = list_all(*state != NULL, &count);
    for (uint32_t k = 0; k < count; k++) {
        compile(&made[k]);
        judge(&made[k]);
        binary_finish(&made[k].binary);
    }
    free(made);
    assert_true(count >= (named[0] ? 1 : FAMILIES / 2));
    assert_int_equal(violations, 0);
}

int main(int argc, char **argv)
{
    bool all = false;
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        all |= !strcmp(argv[at], "--all");
        listing |= !strcmp(argv[at], "--list");
    }
    named = (const char *const *)argv + at;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_gates, all ? &all : NULL)};
    return cmocka_run_group_tests_name("gates", tests, NULL, NULL);
}
