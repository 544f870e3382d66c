/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/mask.h"
#include "masks/base/memory.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Index of an equal pattern among those kept, or the number kept. */
static uint32_t find_equal(const struct mask *m, const struct pattern *p)
{
    uint32_t k = 0;
    while (k < m->n_patterns && m->pattern[k] != p && !pattern_equal(m->pattern[k], p))
        k++;
    return k;
}

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (struct pattern *const *)a,
                    y = (uintptr_t) * (struct pattern *const *)b;
    return (x > y) - (x < y);
}

/* Each of them once, however often it is in the list. */
static void destroy_all(struct pattern **list, size_t count)
{
    qsort(list, count, sizeof *list, by_address);
    for (size_t k = 0; k < count; k++)
        if (k == 0 || list[k] != list[k - 1])
            pattern_destroy(list[k]);
}

struct mask *mask_new(uint32_t layers, uint32_t heads, struct pattern **given,
                      const char *source)
{
    size_t places = (size_t)layers * heads;
    struct mask *m = memory_new(1, sizeof *m);
    *m = (struct mask){.n = given[0]->n, .heads = heads, .layers = layers};
    m->source = memory_text(source ? source : "");
    m->at = memory_new(places, sizeof *m->at);
    m->pattern = memory_new(places, sizeof *m->pattern);
    struct pattern **spare = memory_new(places, sizeof *spare);
    size_t n_spare = 0;
    for (size_t k = 0; k < places; k++) {
        uint32_t same = find_equal(m, given[k]);
        m->at[k] = same;
        if (same == m->n_patterns)
            m->pattern[m->n_patterns++] = given[k];
        else if (m->pattern[same] != given[k])
            spare[n_spare++] = given[k];
    }
    destroy_all(spare, n_spare);
    free(spare);
    return m;
}

void mask_destroy(struct mask *m)
{
    if (!m)
        return;
    for (uint32_t k = 0; k < m->n_patterns; k++)
        pattern_destroy(m->pattern[k]);
    free(m->pattern);
    free(m->at);
    free(m->source);
    free(m);
}

const struct pattern *mask_pattern(const struct mask *m, uint32_t layer, uint32_t head)
{
    return m->pattern[m->at[(size_t)layer * m->heads + head]];
}

/* A function from pattern to pattern, and its length argument. */
struct change {
    struct pattern *(*run)(const struct pattern *p, uint32_t n, struct error *e);
    uint32_t n;
};

/* A new mask of `layers` x `heads`, starting at place `first`, with change.run() applied once per distinct pattern. Null if
   a call fails. */
static struct mask *rebuild(const struct mask *m, uint32_t first, uint32_t layers,
                            uint32_t heads, struct change change, struct error *e)
{
    struct pattern **made = memory_new(m->n_patterns, sizeof *made);
    struct pattern **given = memory_new((size_t)layers * heads, sizeof *given);
    struct mask *ret = NULL;
    for (size_t k = 0; k < (size_t)layers * heads; k++) {
        size_t place = m->heads == heads ? first + k : first + k / heads;
        uint32_t which = m->at[place];
        if (!made[which] && !(made[which] = change.run(m->pattern[which], change.n, e)))
            goto out;
        given[k] = made[which];
    }
    ret = mask_new(layers, heads, given, m->source);
    ret->queries = m->queries;
    ret->keys = m->keys;
    memset(made, 0, m->n_patterns * sizeof *made);
out:
    for (uint32_t k = 0; k < m->n_patterns; k++)
        pattern_destroy(made[k]);
    free(made);
    free(given);
    return ret;
}

static struct pattern *keep(const struct pattern *p, uint32_t n, struct error *e)
{
    (void)n, (void)e;
    return pattern_copy(p);
}

static struct pattern *crop(const struct pattern *p, uint32_t n, struct error *e)
{
    (void)e;
    return pattern_crop(p, n);
}

static struct pattern *transpose(const struct pattern *p, uint32_t n, struct error *e)
{
    (void)n;
    return pattern_transpose(p, e);
}

int mask_check_heads(uint32_t layers, uint32_t heads, struct error *e)
{
    if (heads > MASK_MAX_HEADS)
        return error_set(e, ERROR_INPUT, "--heads %u is out of range, 1..%d is expected", heads,
                         MASK_MAX_HEADS);
    if ((uint64_t)layers * heads > MASK_MAX_PLACES)
        return error_set(
            e, ERROR_INPUT,
            "--heads %u: %u layers of so many are too many, at most %d heads in all are "
            "expected",
            heads, layers, MASK_MAX_PLACES);
    return 0;
}

struct mask *mask_repeat_heads(const struct mask *m, uint32_t heads, struct error *e)
{
    if (mask_check_heads(m->layers, heads, e) < 0)
        return NULL;
    if (m->heads != 1 && m->heads != heads) {
        error_set(e, ERROR_INPUT, "%s: the mask has %u heads, --heads %u needs 1 or %u",
                  m->source, m->heads, heads, heads);
        return NULL;
    }
    return rebuild(m, 0, m->layers, heads, (struct change){keep, 0}, e);
}

struct mask *mask_crop(const struct mask *m, uint32_t n, struct error *e)
{
    if (n > m->n) {
        error_set(e, ERROR_INPUT, "%s: -n %u is larger than the mask's length %u", m->source, n,
                  m->n);
        return NULL;
    }
    return rebuild(m, 0, m->layers, m->heads, (struct change){crop, n}, e);
}

struct mask *mask_layer(const struct mask *m, uint32_t layer, struct error *e)
{
    if (layer >= m->layers) {
        error_set(e, ERROR_INPUT, "%s: layer %u is out of range, the mask has %u", m->source,
                  layer, m->layers);
        return NULL;
    }
    return rebuild(m, layer * m->heads, 1, m->heads, (struct change){keep, 0}, e);
}

struct mask *mask_head(const struct mask *m, uint32_t head, struct error *e)
{
    if (head >= m->heads) {
        error_set(e, ERROR_INPUT, "%s: head %u is out of range, the mask has %u", m->source,
                  head, m->heads);
        return NULL;
    }
    struct pattern **made = memory_new(m->n_patterns, sizeof *made);
    struct pattern **given = memory_new(m->layers, sizeof *given);
    for (uint32_t l = 0; l < m->layers; l++) {
        const uint32_t which = m->at[(size_t)l * m->heads + head];
        if (!made[which])
            made[which] = pattern_copy(m->pattern[which]);
        given[l] = made[which];
    }
    struct mask *ret = mask_new(m->layers, 1, given, m->source);
    free(made);
    free(given);
    return ret;
}

struct mask *mask_transpose(const struct mask *m, struct error *e)
{
    return rebuild(m, 0, m->layers, m->heads, (struct change){transpose, 0}, e);
}

struct mask *mask_map(const struct mask *m,
                      struct pattern *(*change)(const struct pattern *p, void *context,
                                                struct error *e),
                      void *context, struct error *e)
{
    size_t places = (size_t)m->layers * m->heads;
    struct pattern **made = memory_new(m->n_patterns, sizeof *made);
    struct pattern **given = memory_new(places, sizeof *given);
    struct mask *ret = NULL;
    uint32_t done = 0;
    while (done < m->n_patterns && (made[done] = change(m->pattern[done], context, e)) != NULL)
        done++;
    for (size_t k = 0; k < places; k++)
        given[k] = made[m->at[k]];
    if (done == m->n_patterns)
        ret = mask_new(m->layers, m->heads, given, m->source);
    while (!ret && done)
        pattern_destroy(made[--done]);
    free(made);
    free(given);
    return ret;
}

double mask_bytes(const struct mask *m)
{
    double ret = 0;
    for (uint32_t k = 0; k < m->n_patterns; k++)
        ret += pattern_bytes(m->pattern[k]);
    return ret;
}

bool mask_equal(const struct mask *a, const struct mask *b)
{
    if (a->n != b->n || a->heads != b->heads || a->layers != b->layers)
        return false;
    for (uint32_t l = 0; l < a->layers; l++)
        for (uint32_t h = 0; h < a->heads; h++)
            if (!pattern_equal(mask_pattern(a, l, h), mask_pattern(b, l, h)))
                return false;
    return true;
}
