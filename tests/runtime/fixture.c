/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/fixture.h"
#include "gen/plan/plan.h"
#include "masks/base/memory.h"
#include "masks/input/load.h"
#include "runtime/artifact/tables.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char code[] = "not really code";
static const char cuda_source[] = "__global__ void attention_forward() {}\n";

static void must(const void *made, const struct error *e)
{
    if (made)
        return;
    fprintf(stderr, "fixture: %s\n", e->text);
    abort();
}

static struct phase phase(const char *entry, enum abi_over over)
{
    struct phase p = {.over = over, .threads = 128, .shared_bytes = 4096};
    snprintf(p.entry, sizeof p.entry, "%s", entry);
    return p;
}

static void add_target(struct artifact *a, const char *name, const char *source, bool backward)
{
    struct artifact_target *t = &a->target[a->n_targets++];
    t->plan = a->n_plans - 1;
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->compiler, sizeof t->compiler, "made up 1.0");
    for (t->n_images = 0; t->n_images < (source ? 3 : 1); t->n_images++)
        t->image[t->n_images] =
            (struct code_image){(const uint8_t *)code, sizeof code - t->n_images};
    t->source = (char *)source;
    t->launch = (struct launch_record){.block_rows = 32,
                                       .delta_row = 4,
                                       .pack_row = 512,
                                       .partial_row = 520,
                                       .scratch_fixed = 1000,
                                       .scratch_col = 128};
    t->launch.forward[t->launch.n_forward++] = phase("pack", ABI_OVER_HEADS);
    t->launch.forward[t->launch.n_forward++] = phase("attention_forward", ABI_OVER_FORWARD);
    if (backward) {
        t->launch.backward[t->launch.n_backward++] = phase("attention_dq", ABI_OVER_FORWARD);
        t->launch.backward[t->launch.n_backward++] =
            phase("attention_dkv", ABI_OVER_TRANSPOSED);
    }
    t->kernel[t->n_kernels++] =
        (struct kernel_resources){"attention_forward", 64, 0, 4096, 1234};
}

static void add_plan(struct fixture *f)
{
    struct artifact_plan *p = &f->artifact.plan[f->artifact.n_plans++];
    p->block_rows = 32;
    snprintf(p->machine, sizeof p->machine, "x86-avx2");
    p->text = "a plan\n";
    p->json = "{}";
    p->forward = f->plan->forward;
    p->transposed = f->plan->transposed;
}

/* The same plan once more, as a GPU has it: every item takes the one kernel. */
static void add_plain_plan(struct fixture *f)
{
    add_plan(f);
    struct artifact_plan *p = &f->artifact.plan[f->artifact.n_plans - 1];
    struct plan_pass *const pass[2] = {&p->forward, &p->transposed};
    for (int k = 0; k < 2; k++) {
        pass[k]->items =
            memory_copy(pass[k]->items, pass[k]->n_items * sizeof(struct abi_item));
        for (uint64_t i = 0; i < pass[k]->n_items; i++)
            pass[k]->items[i].kernel = ABI_ROW_BLOCK_KERNEL;
        f->plain_items[k] = pass[k]->items;
    }
}

static struct fixture *make(struct mask *m, bool backward, enum abi_transform transform)
{
    struct error e = {0};
    struct fixture *f = memory_new(1, sizeof *f);
    f->mask = m;
    f->artifact = (struct artifact){.mask = f->mask};
    f->artifact.request = (struct kernel_request){.transform = transform,
                                                  .lambda = transform ? -0.3f : 0,
                                                  .head_dim = 64,
                                                  .dropout = true,
                                                  .backward = backward};
    f->plan = plan_build(f->mask, target_find("x86-64-v3", &e), &f->artifact.request,
                         machine_find("x86-avx2", &e), NULL, &e);
    must(f->plan, &e);
    add_plan(f);
    add_target(&f->artifact, "x86-64-v3", NULL, backward);
    if (transform == ABI_SOFTMAX)
        add_plain_plan(f);
    add_target(&f->artifact, "sm_80", cuda_source, backward);
    f->bytes = artifact_write(&f->artifact, &f->size);
    return f;
}

struct fixture *fixture_of(struct mask *m, bool backward)
{
    return make(m, backward, ABI_SPARSEGEN);
}

static struct mask *load(const char *expression, uint32_t n, uint32_t heads)
{
    struct error e = {0};
    struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = expression, .n = n,
                                   .heads = heads};
    struct mask *m = mask_load(&request, NULL, &e);
    must(m, &e);
    return m;
}

struct fixture *fixture_new(const char *expression, uint32_t n, uint32_t heads, bool backward)
{
    return fixture_of(load(expression, n, heads), backward);
}

struct fixture *fixture_softmax(const char *expression, uint32_t n)
{
    return make(load(expression, n, 2), true, ABI_SOFTMAX);
}

void fixture_free(struct fixture *f)
{
    mask_destroy(f->mask);
    plan_destroy(f->plan);
    free(f->plain_items[0]);
    free(f->plain_items[1]);
    free(f->bytes);
    free(f);
}

void fixture_sign(uint8_t *bytes, uint64_t size)
{
    char sum[CHECKSUM_DIGITS + 1];
    uint8_t *digits = checksum_find(bytes, size);
    if (!digits)
        return;
    checksum_compute(bytes, size, digits, sum);
    memcpy(digits, sum, CHECKSUM_DIGITS);
}

/* Masks that together need every kind of piece; the first is meant to need tiles with patterns, lines, and single rows
   as items. */
static const struct {
    const char *mask;
    uint32_t n;
} grounds[] = {
    {"(window(40)|distance(90)|global(0,-1))-diagonal(0)", 250},
    {"longformer(40,2)", 500},
    {"distance(1,2,5,11,30)|global(0,-1)", 200},
    {"blocks(3)", 250},
    {"fixed(23,1)", 250},
    {"diagonal(3)", 130},
    {"summary(16,3)&~rows(5..9)", 250},
    {"dense", 100},
};

/* With softmax: residue classes; items of diagonals; lines beside tiles; global rows; one in two ranges. */
static const struct {
    const char *mask;
    uint32_t n;
} plain[] = {{"strided(16)", 512},
             {"distance(1,40)", 250},
             {"strided(32)", 250},
             {"star", 250},
             {"(distance(1)|rows(7))&~columns(100..110)", 250}};

struct fixture *fixture_numbered(uint32_t k)
{
    const uint32_t count = sizeof grounds / sizeof *grounds;
    if (k >= count + sizeof plain / sizeof *plain)
        return NULL;
    return k < count ? fixture_new(grounds[k].mask, grounds[k].n, 2, true)
                     : fixture_softmax(plain[k - count].mask, plain[k - count].n);
}
