/* SPDX-License-Identifier: Apache-2.0 */
/* See sass_setup.h. */
#include "tests/support/sass_setup.h"
#include "gen/family/family.h"
#include "masks/input/load.h"
#include "runtime/compile/compile.h"
#include "tests/support/covering.h"
#include "tests/support/machine/kernel_machine.h"
#include "tests/support/plan_shape.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* The GPU that kernels are for: "sm_90a" is 90. */
static void set_target(const char *target)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%d", atoi(target + strlen("sm_")));
    setenv("MASKC_SASS_CAPABILITY", digits, 1);
}

/* Where tools/find_nvdisasm says that it is. */
static bool find_nvdisasm(void)
{
    char line[512] = "";
    FILE *f = getenv("NVDISASM")
                  ? NULL
                  : popen("\"$MASKC_SOURCE/tools/find_nvdisasm\" 2>/dev/null", "r");
    if (!f)
        return getenv("NVDISASM") != NULL;
    const bool found = fgets(line, sizeof line, f) != NULL;
    line[strcspn(line, "\n")] = 0;
    if (pclose(f) || !found)
        return false;
    setenv("NVDISASM", line, 1);
    return true;
}

const char *setup_missing(void)
{
    static char missing[600];
    struct error e = {0};
    if (!nvrtc_version(&e)[0]) {
        snprintf(missing, sizeof missing, "%.500s", e.text);
        return missing;
    }
    if (!find_nvdisasm())
        return "no nvdisasm: pip install nvidia-cuda-nvdisasm";
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return "this CPU has no AVX2";
    return NULL;
}

const char *setup_machine(char **argv, const char *folder, const char *target)
{
    const char *missing = setup_missing();
    set_target(target);
    if (missing || getenv("MASKC_TEST_MACHINE"))
        return missing;
    setenv("MASKC_TEST_MACHINE", "1", 1);
    setenv("LD_LIBRARY_PATH", folder, 1);
    execv("/proc/self/exe", argv);
    return "the test could not start itself again";
}

struct mask *setup_mask(const struct sass_case *c, struct kernel_request *ret)
{
    struct error e = {0};
    struct mask *m =
        covering_heads(c->mask[0], c->mask[1] ? c->mask[1] : c->mask[0],
                       c->keys.heads ? 2 * c->keys.heads : 2, key_shape_side(&c->keys, c->n));
    *ret = c->request;
    if (key_shape_apply(&c->keys, c->n, &m, ret, &e))
        fail_msg("%s", e.text);
    return m;
}

/* A plan of the case's family and shape, which the caller destroys. */
static struct plan *make_plan(const struct sass_case *c, const struct mask *m,
                              const struct target *t, const struct kernel_request *r)
{
    struct error e = {0};
    const struct plan_options o = {.family = family_find(c->family, &e)};
    struct plan *p = plan_build(m, t, r, kernel_machine(t, r), &o, &e);
    if (!p)
        fail_msg("%s: %s", c->mask[0], e.text);
    plan_take_shape(p, m, c->shape);
    return p;
}

struct maskc_kernel *setup_try_on(const char *device, const struct sass_case *c,
                                  const char *target, struct cache *cache, struct error *e)
{
    struct maskc_kernel *k = NULL;
    const struct target *t = target_find(target, e);
    struct compile_request r = {.targets = &t, .n_targets = 1, .cache = cache};
    struct mask *m = setup_mask(c, &r.request);
    uint8_t *bytes = NULL;
    uint64_t size = 0;
    r.mask = m;
    r.planned = c->family ? make_plan(c, m, t, &r.request) : NULL;
    if (kernel_compile(&r, &bytes, &size, e) ||
        kernel_load(bytes, size, c->mask[0], device, &k, e))
        k = NULL;
    free(bytes);
    plan_destroy(r.planned);
    mask_destroy(m);
    return k;
}

struct maskc_kernel *setup_load(const struct sass_case *c, const char *target,
                                struct cache *cache)
{
    struct error e = {0};
    struct maskc_kernel *k = setup_try(c, target, cache, &e);
    if (!k)
        fail_msg("%s: %s", c->mask[0], e.text);
    return k;
}

struct maskc_kernel *setup_try(const struct sass_case *c, const char *target,
                               struct cache *cache, struct error *e)
{
    return setup_try_on("cuda", c, target, cache, e);
}

static double larger(double a, double b)
{
    return a > b || a != a ? a : b;
}

double setup_distance(const struct maskc_kernel *machine, const struct maskc_kernel *text,
                      const struct problem *p, uint64_t *ret_hash, struct error *e)
{
    const bool backward = machine->artifact->request.backward;
    const uint64_t size = problem_elements(p);
    struct problem_data *a = problem_inputs(p), *b = problem_inputs(p);
    double distance = INFINITY;
    if (!kernel_run_problem(machine, p, a, backward, 0, e) &&
        !kernel_run_problem(text, p, b, backward, 0, e)) {
        const uint64_t keys = problem_key_elements(p), sizes[] = {size, size, keys, keys};
        const double *const of_a[] = {a->o, a->d_q, a->d_k, a->d_v}, *const of_b[] = {
                                                                         b->o, b->d_q, b->d_k,
                                                                         b->d_v};
        distance = error_measure(a->lse, b->lse, size / p->head_dim);
        for (uint32_t k = 0; k < (backward ? 4 : 1); k++)
            distance = larger(distance, error_measure(of_a[k], of_b[k], sizes[k]));
        for (uint32_t k = 0; k < (backward ? 4 : 1) && ret_hash; k++)
            *ret_hash = XXH3_64bits_withSeed(of_a[k], sizes[k] * sizeof(double), *ret_hash);
    }
    problem_data_destroy(a);
    problem_data_destroy(b);
    return distance;
}
