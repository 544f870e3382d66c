/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/memory.h"
#include "tools/maskbert/importance/importance.h"
#include <stdlib.h>

static double share(double sum, double count)
{
    return count > 0 ? sum / count : 0;
}

struct head_importance head_importance_of(const float *p, uint32_t n)
{
    double diagonal = 0, near = 0, special = 0, on = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            const double x = (double)p[(size_t)i * n + j];
            diagonal += i == j ? x : 0;
            near += i == j + 1 || j == i + 1 ? x : 0;
            special += i == 0 || j == 0 || i + 1 == n || j + 1 == n ? x : 0;
            on += x > 0.5;
        }
    return (struct head_importance){diagonal / n, share(near, 2.0 * (n - 1)),
                                    special / (n > 1 ? 4.0 * (n - 1) : 1),
                                    on / ((double)n * n)};
}

static void add_head(struct mean_importance *m, const float *p, float part)
{
    for (size_t k = 0; k < (size_t)m->n * m->n; k++)
        m->map[k] += part * p[k];
}

static bool is_border(uint32_t n, uint32_t i, uint32_t j)
{
    return i == 0 || j == 0 || i + 1 == n || j + 1 == n;
}

bool border_is_forced(const struct importance *p)
{
    const size_t heads = (size_t)p->layers * p->heads;
    for (size_t h = 0; h < heads; h++)
        for (uint32_t i = 0; i < p->n; i++)
            for (uint32_t j = 0; j < p->n; j++)
                if (is_border(p->n, i, j) && p->value[(h * p->n + i) * p->n + j] < 1)
                    return false;
    return p->n > 3;
}

static void find_distances(struct mean_importance *m)
{
    const uint32_t n = m->n, edge = m->border;
    for (uint32_t i = edge; i < n - edge; i++)
        for (uint32_t j = edge; j < n - edge; j++)
            m->distance[i > j ? i - j : j - i] += (double)m->map[(size_t)i * n + j];
    for (uint32_t d = 0; d < n - 2 * edge; d++)
        m->distance[d] /= (d ? 2.0 : 1.0) * (n - 2 * edge - d);
}

void mean_importance_of(const struct importance *p, struct mean_importance *ret)
{
    const size_t entries = (size_t)p->n * p->n, heads = (size_t)p->layers * p->heads;
    *ret = (struct mean_importance){.n = p->n,
                                    .border = border_is_forced(p),
                                    .map = memory_new(entries, sizeof(float)),
                                    .distance = memory_new(p->n, sizeof(double))};
    for (size_t h = 0; h < heads; h++)
        add_head(ret, p->value + h * entries, 1 / (float)heads);
    find_distances(ret);
}

void mean_importance_finish(struct mean_importance *m)
{
    free(m->map);
    free(m->distance);
}
