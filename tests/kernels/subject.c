/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/subject.h"
#include "gen/emit/cuda.h"
#include "masks/base/memory.h"
#include "masks/load.h"
#include "runtime/compile/compile.h"
#include "tools/check/check.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the standard ones */
#include <cmocka.h>

static char folder[] = "/tmp/maskc-kernels-XXXXXX";
static bool own_folder;

struct cache *subject_start(void)
{
    own_folder = !getenv("XDG_CACHE_HOME");
    if (own_folder && !mkdtemp(folder))
        fail_msg("mkdtemp");
    setenv("XDG_CACHE_HOME", folder, 0);
    return cache_open(NULL);
}

void subject_finish(struct cache *cache)
{
    char line[64];
    cache_close(cache);
    if (!own_folder)
        return;
    snprintf(line, sizeof line, "rm -rf %s", folder);
    assert_int_equal(system(line), 0);
}

uint32_t subject_targets(const struct target **ret, uint32_t room)
{
    static const char *const level[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-bf16",
                                        "x86-64-amx"};
    uint32_t count = 0;
    struct error e;
    for (int k = 0; k < 5 && count + 1 < room; k++)
        if (machine_runs(level[k]))
            ret[count++] = target_find(level[k], &e);
    ret[count++] = target_find("sm_80", &e);
    return count;
}

/* A kernel file whose CUDA code is absent and whose CUDA text is there, as the emulation needs it. */
static uint8_t *write_emulated(const struct mask *m, const struct target *t,
                               const struct features *given, uint64_t *ret_size)
{
    struct error e = {0};
    struct features own = *given, *f = &own; /* with what the mask adds to them */
    own.length = m->n;
    struct artifact *a = memory_new(1, sizeof *a);
    struct plan *plan = plan_build(m, t, f, machine_find(target_machine(t, f), &e), &e);
    if (!plan)
        fail_msg("%s", e.text);
    struct source *source = emit_source(t, f);
    struct text text = {0}, view = {0};
    source_flatten(source, &text);
    plan_print(plan, 1, 1, &view);
    static const uint8_t absent[] = "absent";
    *a = (struct artifact){.features = *f, .n_plans = 1, .n_targets = 1};
    a->mask = memory_copy(m, sizeof *m);
    a->plan[0] = (struct artifact_plan){.strip_rows = plan->strip_rows,
                                        .text = view.bytes,
                                        .json = memory_text("{}"),
                                        .forward = plan->forward,
                                        .transposed = plan->transposed};
    a->target[0] = (struct artifact_target){.compiler = "none",
                                            .image = {{absent, sizeof absent}},
                                            .n_images = 1,
                                            .source = text.bytes,
                                            .launch = source->launch};
    snprintf(a->plan[0].machine, sizeof a->plan[0].machine, "%s", target_machine(t, f));
    snprintf(a->target[0].name, sizeof a->target[0].name, "%s", t->name);
    uint8_t *bytes = artifact_write(a, ret_size);
    free(a->mask);
    free(a->plan[0].json);
    text_finish(&text);
    text_finish(&view);
    source_destroy(source);
    plan_destroy(plan);
    free(a);
    return bytes;
}

static uint8_t *write_compiled(const struct mask *m, const struct target *t,
                               const struct features *f, struct cache *cache,
                               uint64_t *ret_size)
{
    struct error e = {0};
    uint8_t *bytes = NULL;
    struct compile_request r = {
        .mask = m, .targets = &t, .n_targets = 1, .features = *f, .cache = cache};
    if (kernel_compile(&r, &bytes, ret_size, &e))
        fail_msg("%s", e.text);
    return bytes;
}

struct maskc_kernel *subject_load(const struct mask *m, const struct target *t,
                                  const struct features *f, struct cache *cache)
{
    struct maskc_kernel *k = NULL;
    struct maskc_error e;
    uint64_t size = 0;
    bool cuda = t->kind == TARGET_CUDA;
    uint8_t *bytes =
        cuda ? write_emulated(m, t, f, &size) : write_compiled(m, t, f, cache, &size);
    if (maskc_load_memory(bytes, size, cuda ? "emulated" : "cpu", &k, &e))
        fail_msg("%s: %s", t->name, e.text);
    free(bytes);
    return k;
}

struct mask *subject_mask(const char *name, uint32_t n)
{
    struct error e = {0};
    struct mask_request request = {.name = name, .n = n, MASK_REQUEST_DEFAULTS};
    struct mask *m = mask_load(&request, NULL, &e);
    if (!m)
        fail_msg("%s n=%u: %s", name, n, e.text);
    return m;
}

uint32_t subject_judge(const struct maskc_kernel *k, const struct problem *p, bool backward,
                       const char *what)
{
    struct error e = {0};
    struct check_result *r = NULL;
    uint32_t count = 0, wrong = 0;
    if (check_problem(k, p, backward, 0, what, &r, &count, &e)) {
        print_error("%s\n", e.text);
        wrong++;
    }
    for (uint32_t c = 0; c < count; c++)
        if (!r[c].ok) {
            print_error("%s: %s: %.2e, at most %.2e\n", what, strrchr(r[c].name, ' '),
                        r[c].error, r[c].tolerance);
            wrong++;
        }
    free(r);
    return wrong;
}
