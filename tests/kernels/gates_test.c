/* SPDX-License-Identifier: Apache-2.0 */
/* What NVRTC makes of every CUDA template, without a GPU: registers, spills and code within the
   budgets of gate_budgets.h, shared memory and registers within the chip, time to compile.
   `gates_test --all` takes every target, dtype and head dimension, with dropout and without (the usual
   run some of them); targets, families and head dimensions named after that are taken alone; `--times` holds
   compilation to its limit (no run without it fails by what else the machine does); `--list` prints what it
   finds, with `--times` the time by the clock too. */
#include "gen/emit/emit.h"
#include "gen/emit/stream.h"
#include "masks/base/memory.h"
#include "tests/kernels/gate_budgets.h"
#include "tests/kernels/gate_clock.h"
#include "tests/kernels/gate_units.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the standard ones */
#include <cmocka.h>

/* ---- what is compiled ---- */

/* Families and the lengths that bring them about: 0 is a length that is not known. "parts" is the
   streaming family with what plans with partial items need (as are others that say so), "tall" with strips of
   128 rows. */
static const struct family {
    const char *name;
    enum abi_dtype dtype;
    uint32_t length;
    bool usual;
    enum abi_soft soft;
    bool parts;
} families[] = {
    {"float", ABI_F32, 0, true},
    {"short", ABI_BF16, 64, false},
    {"short", ABI_BF16, 128, true},
    {"short", ABI_BF16, 186, false},
    {"short", ABI_BF16, 234, false},
    {"short", ABI_BF16, 396, false},
    {"short", ABI_BF16, 96, false},  /* the longest of D = 256, */
    {"short", ABI_BF16, 168, false}, /* of D = 128, */
    {"short", ABI_BF16, 192, false}, /* of D = 80 and 96, backward too on 227 KiB */
    {"short", ABI_BF16, 256, false}, /* of all, backward */
    {"short", ABI_F16, 64, false},
    {"short", ABI_F16, 96, false},
    {"short", ABI_F16, 128, false},
    {"short", ABI_F16, 168, false},
    {"short", ABI_F16, 186, false},
    {"short", ABI_F16, 192, false},
    {"short", ABI_F16, 234, false},
    {"stream", ABI_BF16, 0, true},
    {"stream", ABI_F16, 0, false},
    {"parts", ABI_F16, 0, false, ABI_SOFT_NONE, true},
    {"tall", ABI_F16, 0, false},
    {"tall", ABI_F16, 0, false, ABI_SOFT_NONE, true},
    {"soft float", ABI_F32, 0, true, ABI_SOFT_BIAS},
    {"soft float", ABI_F32, 0, true, ABI_SOFT_SCALE},
    {"soft stream", ABI_BF16, 0, true, ABI_SOFT_BIAS},
    {"soft stream", ABI_BF16, 0, true, ABI_SOFT_SCALE},
    {"soft stream", ABI_F16, 0, false, ABI_SOFT_SCALE},
    {"soft stream", ABI_BF16, 0, false, ABI_SOFT_BIAS, true},
    {"soft stream", ABI_BF16, 0, false, ABI_SOFT_SCALE, true},
    {"tf32", ABI_TF32, 0, false},
    {"soft tf32", ABI_TF32, 0, false, ABI_SOFT_BIAS},
    {"soft tf32", ABI_TF32, 0, false, ABI_SOFT_SCALE},
};
enum { FAMILIES = sizeof families / sizeof *families };

static bool is_slow(const struct family *f, uint32_t dim, enum abi_transform transform)
{
    for (uint32_t k = 0; k < SLOW; k++)
        if (!strcmp(slow[k].family, f->name) && slow[k].soft == f->soft && slow[k].dim == dim &&
            slow[k].transform == transform)
            return true;
    return false;
}

/* ---- one compilation ---- */

struct made {
    const struct chip *chip;
    const struct family *family;
    struct features features;
    struct launch_record launch;
    struct gate_units units;
    double wall[2]; /* seconds of backward, forward by the clock; --list --times alone */
    bool failed;
    struct error error;
};

static bool listing; /* --list */

/* What a pass may take, on two cores, and the percentage of it from which a run complains: gate_clock.h takes
   others' work on the machine out of it, but not all. Twice the limit is a loop that was unrolled by mistake. */
enum { PASS_MS = 1000, NOISE_PERCENT = 120, BLUNDER_PERCENT = 200 };

static bool timing; /* --times */

static uint32_t most_ms(void)
{
    return PASS_MS * (timing ? NOISE_PERCENT : BLUNDER_PERCENT) / 100;
}

static void compile(struct made *m)
{
    const struct target *t = target_find(m->chip->target, &m->error);
    const double enough = (listing && timing ? PASS_MS : most_ms()) / 1000.0;
    struct source *s = emit_source(t, &m->features);
    m->launch = s->launch;
    m->failed = gate_units_compile(s, t, enough, &m->units, &m->error) < 0;
    for (int forward = 0; forward < 2 && listing && timing && !m->failed; forward++)
        m->wall[forward] = gate_pass_wall(s, t, &m->units, forward);
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
        return f->dtype == ABI_TF32         ? "soft tf32"
               : dtype_bytes(f->dtype) == 4 ? "soft float"
                                            : "soft stream";
    if (f->shared_rows || f->tall)
        return f->tall ? "tall" : "parts";
    if (dtype_bytes(f->dtype) == 4)
        return f->dtype == ABI_F32 ? "float" : "tf32";
    return strstr(entry, "_short_") ? "short" : "stream";
}

/* A row may stand for all families whose names begin with its own. */
static const struct budget *find_budget(const char *family, const char *entry,
                                        enum abi_transform transform)
{
    for (size_t k = 0; k < sizeof budgets / sizeof *budgets; k++)
        if (!strncmp(budgets[k].family, family, strlen(budgets[k].family)) &&
            !strcmp(budgets[k].entry, entry) && budgets[k].transform == transform)
            return &budgets[k];
    return NULL;
}

/* ---- verdicts ---- */

static uint32_t violations;

static const char *dropout_word(const struct made *m)
{
    return m->features.dropout ? ", dropout" : "";
}

static const char *soft_word(const struct made *m)
{
    static const char *const words[] = {"", ", bias", ", scale"};
    return words[m->features.soft];
}

static void complain(const struct made *m, const char *entry, const char *what, uint32_t found,
                     uint32_t allowed)
{
    print_error("%s, %s, D %u, %s n=%u%s%s: %s: %u %s, at most %u\n", m->chip->target,
                dtype_name(m->features.dtype), m->features.head_dim,
                m->features.transform ? "sparsegen" : "softmax", m->features.length,
                dropout_word(m), soft_word(m), entry, found, what, allowed);
    violations++;
}

static void hold(const struct made *m, const char *entry, const char *what, uint32_t found,
                 uint32_t allowed)
{
    if (found > allowed)
        complain(m, entry, what, found, allowed);
}

/* DIMS: it has no budgets of its own. */
static uint32_t dim_index(uint32_t dim)
{
    uint32_t k = 0;
    while (k < DIMS && dims[k] != dim)
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
            "%6u shared %4u threads%s%s\n",
            family_of(r->entry, &m->features), m->chip->target, dtype_name(m->features.dtype),
            m->features.transform ? "sparsegen" : "softmax", m->features.head_dim,
            m->features.length, r->entry, r->registers, r->spill_bytes, r->code_bytes,
            p ? p->shared_bytes : 0, p ? p->threads : 0, dropout_word(m), soft_word(m));
    if (!p || !b) {
        complain(m, r->entry, p ? "budgets for it" : "launches of it", 0, 1);
        return;
    }
    const bool large = m->features.head_dim > 128;
    const uint32_t dim = dim_index(m->features.head_dim);
    if (!is_newest(m->chip) && dim < DIMS)
        hold(m, r->entry, "registers", r->registers, b->registers[dim]);
    hold(m, r->entry, "bytes spilled", r->spill_bytes, 0);
    hold(m, r->entry, "bytes of code", r->code_bytes,
         1024 * (large ? b->code_kib_256 : b->code_kib));
    hold(m, r->entry, "bytes of shared memory", p->shared_bytes, 1024 * m->chip->shared_kib);
    hold(m, r->entry, "registers of a block", (r->registers + 7) / 8 * 8 * p->threads,
         REGISTERS);
}

static uint32_t pass_ms(const struct made *m, bool forward)
{
    return (uint32_t)(1000 * gate_pass_seconds(&m->units, forward));
}

static void list_times(const struct made *m)
{
    print_message("%-10s %-5s %-9s D %3u n %3u%s%s: forward %.0f ms, backward %.0f ms; units",
                  m->chip->target, dtype_name(m->features.dtype),
                  m->features.transform ? "sparsegen" : "softmax", m->features.head_dim,
                  m->features.length, dropout_word(m), soft_word(m), 1000 * m->wall[1],
                  1000 * m->wall[0]);
    for (uint32_t k = 0; k < m->units.count; k++)
        print_message(" %.0f", 1000 * m->units.unit[k].seconds);
    print_message("\n");
}

static void judge_times(const struct made *m)
{
    if (listing && timing)
        list_times(m);
    hold(m, "forward", "ms to compile", pass_ms(m, true), most_ms());
    hold(m, "backward", "ms to compile", pass_ms(m, false), most_ms());
}

/* Is every entry that is launched in some unit? PTX tells of none. */
static void judge_entries(const struct made *m)
{
    const struct launch_record *l = &m->launch;
    const struct target *t = target_find(m->chip->target, NULL);
    for (uint32_t p = 0; p < l->n_forward + l->n_backward && !t->ptx; p++) {
        const char *entry =
            (p < l->n_forward ? &l->forward[p] : &l->backward[p - l->n_forward])->entry;
        bool found = false;
        for (uint32_t u = 0; u < m->units.count; u++)
            for (uint32_t k = 0; k < m->units.unit[u].binary.n_kernels; k++)
                found |= !strcmp(m->units.unit[u].binary.kernel[k].entry, entry);
        hold(m, entry, "times launched, but not compiled", !found, 0);
    }
}

static void judge(const struct made *m)
{
    if (m->failed) {
        print_error("%s\n", m->error.text);
        violations++;
        return;
    }
    judge_times(m);
    judge_entries(m);
    for (uint32_t u = 0; u < m->units.count; u++)
        for (uint32_t k = 0; k < m->units.unit[u].binary.n_kernels; k++)
            judge_kernel(m, &m->units.unit[u].binary.kernel[k]);
}

/* ---- which ---- */

static bool is_tall(const struct family *f)
{
    return !strcmp(f->name, "tall");
}

/* The usual run: every family at two targets, D = 64 with both transforms and 128 with softmax; D =
   64 with softmax at all other targets; tensor cores' D = 32 and 96 at one. With a soft mask, one of each. */
static bool is_usual_shape(uint32_t chip, const struct family *f, uint32_t dim,
                           enum abi_transform transform)
{
    if (is_tall(f))
        return chip < USUAL_CHIPS && dim == 128;
    if (!f->usual)
        return chip == 0 && f->dtype != ABI_BF16 && !f->soft && dim == 64 &&
               transform == ABI_SOFTMAX && (!f->length || f->length == 128);
    if (f->soft)
        return chip == 0 && dim == 64 && transform == ABI_SOFTMAX;
    if (dim == 64)
        return chip < USUAL_CHIPS || transform == ABI_SOFTMAX;
    if (dim == 32 || dim == 96)
        return chip == 0 && f->dtype == ABI_BF16 && transform == ABI_SOFTMAX;
    return dim == 128 && chip < USUAL_CHIPS && transform == ABI_SOFTMAX;
}

static bool is_tight(uint32_t chip, const struct family *f, uint32_t dim,
                     enum abi_transform transform)
{
    for (uint32_t k = 0; k < TIGHT; k++)
        if (!strcmp(tight[k].target, chips[chip].target) && !strcmp(tight[k].family, f->name) &&
            tight[k].soft == f->soft && tight[k].length == f->length && tight[k].dim == dim &&
            tight[k].transform == transform)
            return f->dtype == ABI_BF16;
    return false;
}

/* Half of these without dropout. At D = 256, where registers are fewest, those that take longest, and the
   others of the usual families without dropout. */
static bool is_usual(uint32_t chip, const struct family *f, uint32_t dim,
                     enum abi_transform transform, bool dropout)
{
    const bool plain = dim == 128 || chip >= USUAL_CHIPS || f->soft;
    if (is_tight(chip, f, dim, transform))
        return dropout;
    if (dim_index(dim) == DIMS)
        return false;
    if (chip == 0 && is_slow(f, dim, transform) &&
        (f->usual || f->dtype != ABI_F16 || f->parts))
        return dropout;
    if (chip == 0 && dim == 256 && f->usual && f->dtype == ABI_BF16 && !f->length)
        return !dropout && transform == ABI_SOFTMAX;
    return is_usual_shape(chip, f, dim, transform) && dropout != plain;
}

/* Targets, families and head dimensions that were named; none of a kind: all. */
static const char *const *named;

enum kind { KIND_TARGET, KIND_FAMILY, KIND_DIM };

static enum kind kind_of(const char *name)
{
    for (uint32_t c = 0; c < CHIPS; c++)
        if (!strcmp(chips[c].target, name))
            return KIND_TARGET;
    return name[0] >= '0' && name[0] <= '9' ? KIND_DIM : KIND_FAMILY;
}

static bool is_named(const char *what)
{
    bool others = false;
    for (const char *const *name = named; *name; name++) {
        if (!strcmp(*name, what))
            return true;
        others |= kind_of(*name) == kind_of(what);
    }
    return !others;
}

static bool is_asked(bool all, uint32_t chip, const struct family *f, uint32_t dim,
                     enum abi_transform transform, bool dropout)
{
    if ((is_tall(f) || f->parts) && transform == ABI_SPARSEGEN)
        return false;
    char number[16];
    snprintf(number, sizeof number, "%u", dim);
    return is_named(chips[chip].target) && is_named(f->name) && is_named(number) &&
           (all || is_usual(chip, f, dim, transform, dropout));
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
                const struct family *f, uint32_t dim, enum abi_transform transform,
                bool dropout)
{
    struct features x = {.dtype = f->dtype,
                         .transform = transform,
                         .lambda = transform == ABI_SPARSEGEN ? -4 : 0,
                         .head_dim = dim,
                         .dropout = dropout,
                         .backward = true,
                         .soft = f->soft,
                         .length = f->length};
    x.shared_rows = x.cut_rows = f->parts;
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
            for (uint32_t d = 0; d < 4 * (DIMS + OTHER_DIMS); d++) {
                const uint32_t dim = d / 4 < DIMS ? dims[d / 4] : other_dims[d / 4 - DIMS];
                if (is_asked(all, c, &families[f], dim, d / 2 % 2, d % 2))
                    add(&made, &count, &room, c, &families[f], dim, d / 2 % 2, d % 2);
            }
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
    assert_true(gate_clock_slowness() > 0);
    struct made *made = list_all(*state != NULL, &count);
    for (uint32_t k = 0; k < count; k++) {
        compile(&made[k]);
        judge(&made[k]);
        gate_units_finish(&made[k].units);
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
        timing |= !strcmp(argv[at], "--times");
    }
    named = (const char *const *)argv + at;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_gates, all ? &all : NULL)};
    return cmocka_run_group_tests_name("gates", tests, NULL, NULL);
}
