/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of `maskc verify`: the whole mask forward and backward, every distinct layer, ragged and packed batches
   in other layouts, a sequence shorter than the mask, dropout if it is compiled in, and equal bits from run to run
   and for any number of threads. If the reference would be too slow, a sample of rows is checked, and the check's
   name says so. */
#include "masks/base/memory.h"
#include "runtime/device/emulated/emulated.h"
#include "tools/reference/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Multiply-adds of the reference: for the whole mask, and for each further check. */
static const uint64_t budget_whole = 2000000000, budget_further = 300000000;
/* Checks other than those of layers use the mask's top-left corner, which suffices. */
enum { CORNER = 800, CORNER_EMULATED = 150, SEED = 20190117 };

struct verify {
    const struct maskc_kernel *k;
    uint32_t threads;
    bool backward;
    void (*progress)(const char *what);
    struct check_result **ret;
    uint32_t *ret_count;
    struct error *e;
};

static uint32_t at_most(uint32_t x, uint32_t most)
{
    return x < most ? x : most;
}

/* So many queries and keys, or as many as the kernel has. */
static struct problem make_problem(const struct verify *r, uint32_t length)
{
    struct problem p = problem_of(r->k);
    p.length = at_most(length, p.length);
    p.key_length = at_most(length, p.key_length);
    p.seed = UINT64_C(0x9E3779B97F4A7C15);
    p.random_seed = SEED;
    return p;
}

/* The first and the last row, and others by chance, as many as the budget has time for; null where
   it has time for all. *ret_rows is how many were drawn. */
static uint8_t *choose_sample(const struct problem *p, bool backward, uint64_t budget,
                              uint32_t *ret_rows)
{
    uint64_t cost = problem_multiply_adds(p, backward);
    *ret_rows = p->length;
    if (cost <= budget || p->length < 3)
        return NULL;
    uint8_t *sample = memory_new(p->length, 1);
    uint32_t want = (uint32_t)((double)budget / (double)cost * p->length);
    sample[0] = sample[p->length - 1] = 1;
    *ret_rows = 2;
    for (uint32_t k = 0; k < want; k++) {
        uint32_t word[4];
        reference_philox((const uint32_t[4]){k}, (const uint32_t[2]){SEED}, word);
        uint32_t i = (uint32_t)((uint64_t)word[0] * p->length >> 32);
        *ret_rows += !sample[i];
        sample[i] = 1;
    }
    return sample;
}

static int check(const struct verify *r, struct problem *p, uint64_t budget, const char *name)
{
    char full[64];
    uint32_t rows;
    uint8_t *sample = choose_sample(p, r->backward, budget, &rows);
    p->sample = sample;
    snprintf(full, sizeof full, sample ? "%s, sample of %u rows" : "%s", name, rows);
    if (r->progress)
        r->progress(full);
    int code = check_problem(&(struct check){r->k, p, r->backward, r->threads, full}, r->ret,
                             r->ret_count, r->e);
    p->sample = NULL;
    free(sample);
    return code;
}

static bool same_layer(const struct mask *m, uint32_t a, uint32_t b)
{
    return !memcmp(m->at + (uint64_t)a * m->heads, m->at + (uint64_t)b * m->heads,
                   m->heads * sizeof *m->at);
}

/* Layer 0, and every layer that no layer before it is equal to. */
static int check_layers(const struct verify *r)
{
    const struct mask *m = r->k->artifact->mask;
    struct problem p = make_problem(r, m->n);
    for (uint32_t layer = 0; layer < m->layers; layer++) {
        char name[40];
        uint32_t first = 0;
        while (first < layer && !same_layer(m, first, layer))
            first++;
        if (first < layer)
            continue;
        snprintf(name, sizeof name, layer ? "layer %u" : "whole mask", layer);
        p.layer = layer;
        if (check(r, &p, layer ? budget_further : budget_whole, name))
            return -1;
    }
    return 0;
}

/* Batches at an odd length, in other layouts. */
static int check_batches(const struct verify *r, const struct problem *ragged,
                         const struct problem *packed)
{
    const int32_t n = (int32_t)ragged->length, starts[4] = {n / 3, n, 0, n - 1};
    struct problem left = *ragged, again = *ragged, ends = *packed;
    left.starts = starts;
    if (check(r, &again, budget_further, "ragged lengths, heads first"))
        return -1;
    if (ragged->key_length)
        return 0;
    return check(r, &ends, budget_further, "packed, fused qkv") ||
                   (r->k->device->starts &&
                    check(r, &left, budget_further, "starts, padded on both sides"))
               ? -1
               : 0;
}

static int check_shorter(const struct verify *r, uint32_t corner)
{
    struct problem shorter = make_problem(r, corner);
    if (shorter.length < 2)
        return 0;
    shorter.length = shorter.length / 2 + 1;
    shorter.key_length = shorter.key_length / 2 + (shorter.key_length > 0);
    shorter.batch = 2;
    shorter.scale = 0.3;
    shorter.layout = LAYOUT_QKV;
    return check(r, &shorter, budget_further, "shorter than the mask");
}

/* Launches with the features that the whole-mask check leaves out. */
static int check_further(const struct verify *r, uint32_t corner)
{
    struct problem ragged = make_problem(r, corner), packed;
    const int32_t n = (int32_t)ragged.length, lengths[4] = {n / 2, 0, n, 1},
                  m = (int32_t)ragged.key_length, key_lengths[4] = {m, m / 2, m / 3, 0};
    ragged.batch = 4;
    ragged.lengths = lengths;
    ragged.key_lengths = m ? key_lengths : NULL;
    packed = ragged;
    ragged.layout = LAYOUT_BHND;
    packed.layout = LAYOUT_QKV;
    packed.packed = true;
    if (check_batches(r, &ragged, &packed) || check_shorter(r, corner))
        return -1;
    if (!r->k->artifact->request.dropout)
        return 0;
    packed.dropout = ragged.dropout = 0.1;
    return check(r, &ragged, budget_further, "dropout 0.1") ||
                   (!m && check(r, &packed, budget_further, "dropout 0.1, packed"))
               ? -1
               : 0;
}

static bool same_bits(const struct problem *p, const struct problem_data *a,
                      const struct problem_data *b, bool backward)
{
    uint64_t size = problem_elements(p) * sizeof(double);
    if (backward && p->bias &&
        (memcmp(a->d_x, b->d_x, problem_bias_elements(p) * sizeof(double)) != 0 ||
         memcmp(a->d_diagonal, b->d_diagonal, problem_diagonal_elements(p) * sizeof(double)) !=
             0))
        return false;
    const uint64_t keys = problem_key_elements(p) * sizeof(double);
    return !memcmp(a->o, b->o, size) && !memcmp(a->lse, b->lse, size / p->head_dim) &&
           (!backward || (!memcmp(a->d_q, b->d_q, size) && !memcmp(a->d_k, b->d_k, keys) &&
                          !memcmp(a->d_v, b->d_v, keys)));
}

/* The same launch again, and again with one thread and with three (emulated: other fiber orders). */
static int check_bits(const struct verify *r, uint32_t corner)
{
    static const uint32_t threads[] = {0, 1, 3};
    struct problem p = make_problem(r, corner);
    const int32_t lengths[2] = {(int32_t)p.length, (int32_t)(p.length / 3)};
    p.batch = 2;
    p.lengths = lengths;
    p.dropout = r->k->artifact->request.dropout ? 0.1 : 0;
    struct problem_data *first = problem_inputs(&p), *again = problem_data_copy(&p, first);
    struct check_result result = {.name = "equal bits from run to run, 1 and 3 threads",
                                  .ok = true};
    if (r->progress)
        r->progress(result.name);
    int code = kernel_run_problem(r->k, &p, first, r->backward, r->threads, r->e);
    for (uint32_t t = 0; t < 3 && !code; t++) {
        if (r->k->device == &device_emulated)
            emulated_set_seed(t);
        code = kernel_run_problem(r->k, &p, again, r->backward, threads[t], r->e);
        if (!code && !same_bits(&p, first, again, r->backward)) {
            result.ok = false;
            result.error++; /* how many of the three differ */
        }
    }
    if (!code)
        check_push(result, r->ret, r->ret_count);
    problem_data_destroy(first);
    problem_data_destroy(again);
    return code;
}

int verify_kernel(const struct maskc_kernel *k, uint32_t threads,
                  void (*progress)(const char *what), struct check_result **ret,
                  uint32_t *ret_count, struct error *e)
{
    *ret = NULL;
    *ret_count = 0;
    struct verify r = {k, threads, k->artifact->request.backward, progress, ret, ret_count, e};
    uint32_t corner = k->device == &device_emulated ? CORNER_EMULATED : CORNER;
    if (corner > k->artifact->mask->n)
        corner = k->artifact->mask->n;
    struct problem whole = make_problem(&r, k->artifact->mask->n);
    if (problem_fits(&whole, e) || check_layers(&r) || check_further(&r, corner) ||
        check_bits(&r, corner)) {
        free(*ret);
        *ret = NULL;
        *ret_count = 0;
        return -1;
    }
    return 0;
}
