/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void hold(bool promise, const char *what)
{
    if (promise)
        return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

static void check_pattern(const struct pattern *p)
{
    uint64_t active = 0;
    hold(p->row[0] == 0 && p->row[p->n] == p->n_runs, "rows begin at 0 and end at n_runs");
    for (uint32_t i = 0; i < p->n; i++)
        for (uint64_t r = p->row[i]; r < p->row[i + 1]; r++) {
            hold(p->run[r].begin < p->run[r].end && p->run[r].end <= p->n, "runs lie inside");
            hold(r == p->row[i] || p->run[r - 1].end < p->run[r].begin, "runs never touch");
            active += p->run[r].end - p->run[r].begin;
        }
    hold(active == p->active, "active is counted");
}

void check_mask(struct mask *m)
{
    struct error e = {0};
    for (uint32_t k = 0; k < m->n_patterns; k++)
        check_pattern(m->pattern[k]);
    struct mask *transposed = mask_transpose(m, &e),
                *back = transposed ? mask_transpose(transposed, &e) : NULL;
    hold(back && mask_equal(m, back), "turning twice gives the mask back");
    mask_destroy(m);
    mask_destroy(transposed);
    mask_destroy(back);
}

void check_refusal(const struct error *e)
{
    hold(e->kind == ERROR_INPUT, "a refusal is bad input");
    hold(e->text[0] && e->text[0] != '\n', "a refusal has a text");
}
