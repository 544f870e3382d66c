/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/steps/forge_steps.h"
#include "masks/base/memory.h"
#include "masks/input/load.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern const struct kernel_family family_cuda_hopper;
static const char code[] = "not really code";

/* Runs and repeated steps; gathers, patterns and a global row; groups of several row blocks, the last not whole. */
static const struct {
    const char *mask;
    uint32_t n;
} grounds[] = {{"causal|global(0)", 2000},
               {"longformer(40,2)", 500},
               {"window(20)|columns(7,99,180,301,411)", 700},
               {"dense", 1200}};
enum { GROUNDS = sizeof grounds / sizeof *grounds };

struct step_ground step_ground_make(uint32_t k)
{
    struct error e = {0};
    struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = grounds[k].mask,
                                   .n = grounds[k].n, .heads = 2};
    struct step_ground g = {.mask = mask_load(&request, NULL, &e)};
    const struct target *t = target_find("sm_90a", &e);
    struct artifact a = {.n_plans = 1, .n_targets = 1};
    if (!g.mask)
        fail_msg("%s", e.text);
    a.request = (struct kernel_request){
        .dtype = ABI_BF16, .head_dim = 64, .backward = true, .length = grounds[k].n};
    const struct plan_options o = {.plain = true, .family = &family_cuda_hopper};
    g.plan = plan_build(g.mask, t, &a.request, machine_find("h100-mma", &e), &o, &e);
    if (!g.plan)
        fail_msg("%s", e.text);
    a.mask = g.mask;
    a.plan[0] = (struct artifact_plan){
        .block_rows = 64, .machine = "h100-mma", .text = "a plan\n", .json = "{}"};
    a.plan[0].forward = g.plan->forward;
    a.plan[0].transposed = g.plan->transposed;
    memcpy(a.plan[0].steps, g.plan->steps, sizeof a.plan[0].steps);
    strcpy(a.target[0].name, "sm_90a");
    strcpy(a.target[0].compiler, "made up 1.0");
    a.target[0].image[0] = (struct code_image){(const uint8_t *)code, sizeof code};
    a.target[0].n_images = 1;
    family_launch(t, &g.plan->config, &a.target[0].launch);
    g.bytes = artifact_write(&a, &g.size);
    return g;
}

void step_ground_finish(struct step_ground *g)
{
    plan_destroy(g->plan);
    mask_destroy(g->mask);
    free(g->bytes);
}

/* True where the ground has what the lie needs; it must then be refused in one line. */
static bool tell(const struct step_ground *g, const struct lie *lie)
{
    uint8_t *bytes = memory_copy(g->bytes, g->size);
    struct artifact *a, *back;
    struct error e = {0};
    uint64_t size;
    assert_int_equal(artifact_read(bytes, g->size, "FILE", &a, &e), 0);
    const bool told = lie->tell(a);
    if (told) {
        uint8_t *forged = artifact_write(a, &size);
        if (artifact_read(forged, size, "FILE", &back, &e) == 0)
            fail_msg("%s: the lie '%s' was believed", g->mask->source, lie->name);
        assert_null(strchr(e.text, '\n'));
        free(forged);
    }
    artifact_destroy(a);
    free(bytes);
    return told;
}

void forge_steps(const struct lie *lies, size_t count)
{
    u32 told[64] = {0};
    assert_true(count <= sizeof told / sizeof *told);
    for (u32 k = 0; k < GROUNDS; k++) {
        struct step_ground g = step_ground_make(k);
        for (size_t i = 0; i < count; i++)
            told[i] += tell(&g, &lies[i]);
        step_ground_finish(&g);
    }
    for (size_t i = 0; i < count; i++)
        if (!told[i])
            fail_msg("the lie '%s' was never told: no mask has what it needs", lies[i].name);
}
