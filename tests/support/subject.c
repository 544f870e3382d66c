/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/subject.h"
#include "gen/family/family.h"
#include "masks/input/load.h"
#include "runtime/compile/compile.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* A CPU that has all that AMX's kernels need, but no AMX, runs them with tests/support/tiles: their row, which
   says that the code is for such a CPU. */
static const char without_tiles[] = "x86-64-bf16";

static const struct target *tiles_emulated(void)
{
    static struct target row;
    row = *target_find("x86-64-amx", NULL);
    row.name = without_tiles;
    return &row;
}

const char *subject_name(const struct target *t)
{
    return t == tiles_emulated() ? "x86-64-amx (emulated tiles)" : t->name;
}

uint32_t subject_targets(const struct target **ret, uint32_t storage)
{
    static const char *const level[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-bf16",
                                        "x86-64-amx"};
    uint32_t count = 0;
    struct error e;
    for (int k = 0; k < 5 && count + 2 < storage; k++)
        if (machine_runs(level[k]))
            ret[count++] = target_find(level[k], &e);
    if (machine_runs(without_tiles) && !machine_runs("x86-64-amx"))
        ret[count++] = tiles_emulated();
    ret[count++] = target_find("sm_80", &e);
    return count;
}

bool subject_repeats(const struct target *t, const struct kernel_request *f)
{
    return t->kind == TARGET_CPU && t->matrix_machine &&
           !family_is_matrix(t, &(struct kernel_config){.request = *f});
}

static uint8_t *write(const struct compile_request *r, uint64_t *ret_size)
{
    struct error e = {0};
    uint8_t *bytes = NULL;
    const bool emulated = r->targets[0] == tiles_emulated();
    if (emulated)
        setenv("MASKC_TEMPLATES", TILES_FOLDER, 1);
    if (kernel_compile(r, &bytes, ret_size, &e))
        fail_msg("%s", e.text);
    if (emulated)
        unsetenv("MASKC_TEMPLATES");
    return bytes;
}

struct maskc_kernel *subject_load_request(const struct compile_request *r)
{
    struct maskc_kernel *k = NULL;
    struct maskc_error e;
    const struct target *t = r->targets[0];
    const char *device = t->kind == TARGET_CUDA ? "emulated" : "cpu";
    uint64_t size = 0;
    uint8_t *bytes = write(r, &size);
    if (maskc_load_memory(bytes, size, device, &k, &e))
        fail_msg("%s: %s", subject_name(t), e.text);
    free(bytes);
    return k;
}

struct maskc_kernel *subject_load(const struct mask *m, const struct target *t,
                                  const struct kernel_request *f, struct cache *cache)
{
    return subject_load_request(&(struct compile_request){.mask = m,
                                                          .targets = &t,
                                                          .n_targets = 1,
                                                          .request = *f,
                                                          .cache = cache,
                                                          .text_only = true});
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

uint32_t subject_check(const struct maskc_kernel *k, const struct problem *p, bool backward,
                       const char *what)
{
    struct error e = {0};
    struct check_result *r = NULL;
    uint32_t count = 0, wrong = 0;
    if (check_problem(&(struct check){k, p, backward, 0, what}, &r, &count, &e)) {
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
