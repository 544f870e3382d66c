/* SPDX-License-Identifier: Apache-2.0 */
/* Checks NVRTC's code of every CUDA template, without a GPU: registers, spills and code within the
   budgets of budget_table.h, shared memory and registers within the chip, time to compile.
   `resource_budgets_test --all` takes every target, dtype and head dimension, with dropout and without (the usual
   run some of them); targets, families and head dimensions named after that are taken alone; `--times` holds
   compilation to its limit (no run without it fails by what else the machine does); `--list` prints what it
   finds, with `--times` the time by the clock too. A run with none of these takes the figures of known.txt, which
   $MASKC_BUDGETS_KNOWN names, for units whose text is there; `--update` writes it. */
#include "gen/emit/emit.h"
#include "gen/family/cuda_tiled.h"
#include "tests/kernels/budgets/budget_clock.h"
#include "tests/kernels/budgets/budget_plans.h"
#include "tests/kernels/budgets/budget_table.h"
#include "tests/kernels/budgets/budget_units.h"
#include "tests/support/program/options.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one compilation ---- */

struct made {
    const struct chip *chip;
    struct kernel_config config;
    struct launch_record launch;
    struct budget_units units;
    double wall[2]; /* seconds of backward, forward by the clock; --list --times alone */
    bool failed;
    struct error error;
};

static bool listing; /* --list */

/* Time limit of a pass, on two cores, and the percentage of it from which a run complains: budget_clock.h takes
   others' work on the machine out of it, but not all. Twice the limit is a loop that was unrolled by mistake. */
enum { PASS_MS = 1000, NOISE_PERCENT = 120, BLUNDER_PERCENT = 200 };

static bool timing; /* --times */

static struct budget_known *known; /* null: everything is compiled */

static uint32_t most_ms(void)
{
    return PASS_MS * (timing ? NOISE_PERCENT : BLUNDER_PERCENT) / 100;
}

static void compile(struct made *m)
{
    const struct target *t = target_find(m->chip->target, &m->error);
    const double enough = (listing && timing ? PASS_MS : most_ms()) / 1000.0;
    struct source *s = emit_source(t, &m->config);
    m->launch = s->launch;
    m->failed = budget_units_compile(s, t, enough, known, &m->units, &m->error) < 0;
    for (int forward = 0; forward < 2 && listing && timing && !m->failed; forward++)
        m->wall[forward] = budget_pass_wall(s, t, &m->units, forward);
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
    return m->config.request.dropout ? ", dropout" : "";
}

static const char *bias_word(const struct made *m)
{
    static const char *const words[] = {"", ", bias", ", scale"};
    return words[m->config.request.bias];
}

static const char *rows_word(const struct made *m)
{
    return tiled_has_row_pass(&m->config) ? "" : ", no row pass";
}

static const char *shape_word(const struct made *m)
{
    const struct kernel_request *r = &m->config.request;
    return r->keys ? ", key heads, other keys" : r->kv_heads ? ", key heads" : "";
}

static void complain(const struct made *m, const char *entry, const char *what, uint32_t found,
                     uint32_t allowed)
{
    print_error("%s, %s, D %u, %s n=%u%s%s%s%s: %s: %u %s, at most %u\n", m->chip->target,
                dtype_name(m->config.request.dtype), m->config.request.head_dim,
                m->config.request.transform ? "sparsegen" : "softmax", m->config.request.length,
                dropout_word(m), bias_word(m), rows_word(m), shape_word(m), entry, found, what,
                allowed);
    violations++;
}

static void hold(const struct made *m, const char *entry, const char *what, uint32_t found,
                 uint32_t allowed)
{
    if (found > allowed)
        complain(m, entry, what, found, allowed);
}

static void check_kernel(const struct made *m, const struct kernel_resources *r)
{
    const struct phase *p = find_phase(&m->launch, r->entry);
    const struct budget *b = find_budget(budget_family_of(r->entry, &m->config), r->entry,
                                         m->config.request.transform);
    if (listing)
        print_message(
            "%-11s %-10s %-5s %-9s D %3u n %3u %-26s %3u registers %5u spilled %6u code "
            "%6u shared %4u threads%s%s%s%s\n",
            budget_family_of(r->entry, &m->config), m->chip->target,
            dtype_name(m->config.request.dtype),
            m->config.request.transform ? "sparsegen" : "softmax", m->config.request.head_dim,
            m->config.request.length, r->entry, r->registers, r->spill_bytes, r->code_bytes,
            p ? p->shared_bytes : 0, p ? p->threads : 0, dropout_word(m), bias_word(m),
            rows_word(m), shape_word(m));
    if (!p && strstr(r->entry, "_merge"))
        return; /* in the text of cuda_hopper, launched where global rows are cut */
    if (!p || !b) {
        complain(m, r->entry, p ? "budgets for it" : "launches of it", 0, 1);
        return;
    }
    const bool large = m->config.request.head_dim > 128;
    const uint32_t dim = budget_dim_index(m->config.request.head_dim);
    if (!m->chip->newest && dim < DIMS) /* there "registers of a block" holds them */
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
    return (uint32_t)(1000 * budget_pass_seconds(&m->units, forward));
}

static void list_times(const struct made *m)
{
    print_message(
        "%-10s %-5s %-9s D %3u n %3u%s%s%s%s: forward %.0f ms, backward %.0f ms; units",
        m->chip->target, dtype_name(m->config.request.dtype),
        m->config.request.transform ? "sparsegen" : "softmax", m->config.request.head_dim,
        m->config.request.length, dropout_word(m), bias_word(m), rows_word(m), shape_word(m),
        1000 * m->wall[1], 1000 * m->wall[0]);
    for (uint32_t k = 0; k < m->units.count; k++)
        print_message(" %.0f", 1000 * m->units.unit[k].seconds);
    print_message("\n");
}

static void check_times(const struct made *m)
{
    if (listing && timing)
        list_times(m);
    hold(m, "forward", "ms to compile", pass_ms(m, true), most_ms());
    hold(m, "backward", "ms to compile", pass_ms(m, false), most_ms());
}

/* Is every entry that is launched in some unit? PTX tells of none. */
static void check_entries(const struct made *m)
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

static void check_made(const struct made *m)
{
    if (m->failed) {
        print_error("%s\n", m->error.text);
        violations++;
        return;
    }
    check_times(m);
    check_entries(m);
    for (uint32_t u = 0; u < m->units.count; u++)
        if (m->units.unit[u].binary.remark[0])
            complain(m, m->units.unit[u].binary.remark, "remarks", 1, 0);
    for (uint32_t u = 0; u < m->units.count; u++)
        for (uint32_t k = 0; k < m->units.unit[u].binary.n_kernels; k++)
            check_kernel(m, &m->units.unit[u].binary.kernel[k]);
}

/* Targets, families and head dimensions; none of a kind: all. */
static const char *const *named;

static void check_plans(const struct budget_plan *plan, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        struct made made = {.chip = plan[k].chip, .config = plan[k].config};
        compile(&made);
        check_made(&made);
        budget_units_finish(&made.units);
    }
}

/* Where known figures turn out to be another compiler's, all is compiled. */
static void check_known_plans(const struct budget_plan *plan, uint32_t count)
{
    check_plans(plan, count);
    if (!known || !budget_known_is_wrong(known)) {
        print_message("%u units are new to known.txt\n", known ? budget_known_news(known) : 0);
        return;
    }
    print_message("known.txt is of another compiler: everything is compiled\n");
    budget_known_destroy(known);
    known = NULL;
    violations = 0;
    check_plans(plan, count);
}

static void test_resource_budgets(void **state)
{
    struct error e = {0};
    uint32_t count;
    if (!nvrtc_version(&e)[0]) {
        print_message("skipped: %s\n", e.text);
        skip();
    }
    assert_true(budget_clock_slowness() > 0);
    struct budget_plan *plan = budget_plans(*state != NULL, named, &count);
    check_known_plans(plan, count);
    free(plan);
    assert_true(count >= (named[0] ? 1 : CHIPS));
    assert_int_equal(violations, 0);
}

static bool read_option(const char *text, bool *all, bool *update)
{
    const struct {
        const char *name;
        bool *flag;
    } option[] = {
        {"--all", all}, {"--list", &listing}, {"--times", &timing}, {"--update", update}};
    for (size_t k = 0; k < sizeof option / sizeof *option; k++)
        if (!strcmp(text, option[k].name))
            return *option[k].flag = true;
    return false;
}

int main(int argc, char **argv)
{
    bool all = false, update = false;
    const char *path = getenv("MASKC_BUDGETS_KNOWN");
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++)
        if (!read_option(argv[at], &all, &update))
            test_usage(argv, argv[at],
                       "[--all] [--list] [--times] [--update] [TARGET|FAMILY|HEAD-DIM ..]");
    named = (const char *const *)argv + at;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_resource_budgets, all ? &all : NULL)};
    if (update || (path && !all && !listing && !timing))
        known = budget_known_open(update ? NULL : path);
    int failed = cmocka_run_group_tests_name("resource_budgets", tests, NULL, NULL);
    struct error e = {0};
    if (update && !failed && (!path || budget_known_write(known, path, &e) < 0)) {
        print_error("%s\n", path ? e.text : "MASKC_BUDGETS_KNOWN names no file");
        failed = 1;
    }
    budget_known_destroy(known);
    return failed;
}
