/* SPDX-License-Identifier: Apache-2.0 */
/* See covering.h. */
#include "tests/support/covering.h"
#include "gen/key_shape.h"
#include "masks/input/load.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const batch_names[] = {"whole", "ragged", "packed", "packed ragged"};

int covering_options(struct covering *c, const char *name, int argc, char **argv)
{
    c->seed = 1;
    for (int k = 1; k < argc; k++)
        if (!strcmp(argv[k], "--seed") && k + 1 < argc)
            c->seed = strtoull(argv[++k], NULL, 10);
        else if (!strcmp(argv[k], "--list"))
            c->list = true;
        else if (!strcmp(argv[k], "--orders"))
            c->orders = true;
        else if (!strcmp(argv[k], "--few"))
            c->few = true;
        else if (!strcmp(argv[k], "--update"))
            c->update = true;
        else if (!strcmp(argv[k], "--full")) {
            c->parts = 1;
            if (k + 1 < argc && sscanf(argv[k + 1], "%u/%u", &c->part, &c->parts) == 2)
                k++;
        } else
            return fprintf(stderr,
                           "usage: %s [--seed S] [--list] [--orders] [--few] [--update] "
                           "[--full [K/N]]\n",
                           name),
                   2;
    if (c->parts ? c->part >= c->parts : c->part)
        return fprintf(stderr, "--full K/N: 0 <= K < N is expected\n"), 2;
    return 0;
}

void covering_start(struct covering *c, uint32_t factors)
{
    struct pairs *p = &c->pairs;
    p->factors = factors;
    p->random = c->seed;
    for (uint32_t k = 0; k < factors; k++)
        p->values[k] = 2;
    p->values[BIAS] = p->values[LAYOUT] = 3;
    p->values[BATCH] = sizeof batch_names / sizeof *batch_names;
}

void covering_full(struct covering *c, void *context,
                   void (*run)(void *context, const struct pairs_row *r))
{
    const uint64_t count = pairs_product(&c->pairs);
    uint64_t rows = 0;
    for (uint64_t at = c->part; at < count; at += c->parts) {
        struct pairs_row r = pairs_at(&c->pairs, at);
        if (c->pairs.allows && !c->pairs.allows(&r))
            continue;
        run(context, &r);
        rows++;
    }
    print_message("%llu rows of %llu\n", (unsigned long long)rows, (unsigned long long)count);
    if (!rows)
        fail_msg("a slice without a row that may be: choose N smaller");
}

static struct pattern *make_pattern(const char *name, uint32_t n)
{
    struct error e = {0};
    struct mask_request request = {.name = name, .n = n, MASK_REQUEST_DEFAULTS};
    struct mask *one = mask_load(&request, NULL, &e);
    if (!one)
        fail_msg("%s n=%u: %s", name, n, e.text);
    struct pattern *p = pattern_copy(one->pattern[0]);
    mask_destroy(one);
    return p;
}

struct mask *covering_mask(const struct pairs_row *r, const char *first, const char *second,
                           uint32_t n)
{
    const uint32_t layers = 1 + r->value[LAYERS];
    struct pattern *given[4];
    for (uint32_t k = 0; k < 2 * layers; k++)
        given[k] = make_pattern(k % 2 == k / 2 ? first : second, n);
    return mask_new(layers, 2, given, "covering");
}

struct mask *covering_heads(const char *first, const char *second, uint32_t heads, uint32_t n)
{
    enum { MOST = 8 };
    struct pattern *given[MOST];
    assert_true(heads <= MOST);
    for (uint32_t h = 0; h < heads; h++)
        given[h] = make_pattern(h % 2 ? second : first, n);
    return mask_new(1, heads, given, "heads in alternation");
}

struct kernel_request covering_request(const struct pairs_row *r, enum abi_dtype dtype,
                                       uint32_t head_dim)
{
    return (struct kernel_request){
        .dtype = dtype,
        .transform = r->value[TRANSFORM] ? ABI_SPARSEGEN : ABI_SOFTMAX,
        .lambda = r->value[TRANSFORM] ? -4 : 0,
        .head_dim = head_dim,
        .dropout = r->value[DROPOUT] != 0,
        .backward = r->value[PASS] == 0,
        .bias = (enum abi_bias)r->value[BIAS],
    };
}

enum { SHORT = 16 };

struct problem covering_problem(const struct pairs_row *r, const struct mask *m,
                                const struct kernel_request *f, int32_t lengths[COVERING_BATCH])
{
    const uint32_t whole = request_queries(f, m),
                   length = whole - (r->value[CROP] ? whole / 4 : 0);
    const bool ragged = r->value[BATCH] % 2;
    for (uint32_t b = 0; b < COVERING_BATCH; b++)
        lengths[b] = (int32_t)(ragged && b % 2 ? (length + 1) / 2 : length);
    return (struct problem){
        .mask = m,
        .layer = r->value[LAYERS],
        .batch = length < SHORT ? COVERING_BATCH : 2,
        .length = length,
        .head_dim = f->head_dim,
        .kv_heads = f->kv_heads,
        .key_length = f->keys - (r->value[CROP] ? f->keys / 4 : 0),
        .lengths = r->value[BATCH] ? lengths : NULL,
        .packed = r->value[BATCH] >= 2,
        .dtype = f->dtype,
        .transform = f->transform,
        .lambda = (double)f->lambda,
        .scale = r->value[SCALE] ? -0.4 : 0,
        .dropout = r->value[DROPOUT] ? 0.2 : 0,
        .bias = f->bias,
        .seed = UINT64_C(0x123456789abcdef),
        .layout = r->value[LAYOUT],
        .random_seed = 7,
    };
}

void covering_name(const struct pairs_row *r, const struct kernel_request *f,
                   const char *kernel, const char *masks, char *ret, size_t storage)
{
    snprintf(ret, storage, "%s %s%s soft %s D=%u %s%s %s%s layout %u layers %u%s", kernel,
             f->transform ? "sparsegen" : "softmax", f->dropout ? " dropout" : "",
             bias_name(f->bias), f->head_dim, masks, r->value[CROP] ? " cropped" : "",
             batch_names[r->value[BATCH]], r->value[SCALE] ? " scale -0.4" : "",
             r->value[LAYOUT], 1 + r->value[LAYERS], f->backward ? "" : " forward alone");
}
