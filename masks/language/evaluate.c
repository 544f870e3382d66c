/* SPDX-License-Identifier: Apache-2.0 */
/* Each node of the tree computes one row into its own buffer, inside the clip that its parent asks
   for. Of the operands of '&' the one that was cheaper so far goes first and narrows the clip of
   the others; that decides cost alone, never the result. */
#include "masks/language/evaluate.h"
#include "masks/base/memory.h"
#include "masks/language/primitive.h"
#include <unistd.h>

static void evaluate(struct node *node, uint32_t i, struct clip clip);

static void swap_out(struct node *node)
{
    struct runs kept = node->out;
    node->out = node->spare;
    node->spare = kept;
}

static void copy(struct runs *to, const struct runs *from)
{
    runs_union(from, &(struct runs){0}, to);
}

static void evaluate_union(struct node *node, uint32_t i, struct clip clip)
{
    for (uint32_t k = 0; k < node->n_children; k++) {
        evaluate(node->child[k], i, clip);
        runs_union(&node->out, &node->child[k]->out, &node->spare);
        swap_out(node);
    }
}

static void evaluate_minus(struct node *node, uint32_t i, struct clip clip)
{
    evaluate(node->child[0], i, clip);
    copy(&node->out, &node->child[0]->out);
    for (uint32_t k = 1; k < node->n_children && node->out.count; k++) {
        evaluate(node->child[k], i, runs_hull(&node->out));
        runs_minus(&node->out, &node->child[k]->out, &node->spare);
        swap_out(node);
    }
}

static void evaluate_both(struct node *node, uint32_t i, struct clip clip)
{
    uint32_t first = 0;
    for (uint32_t k = 1; k < node->n_children; k++)
        if (node->child[k]->cost < node->child[first]->cost)
            first = k;
    evaluate(node->child[first], i, clip);
    copy(&node->out, &node->child[first]->out);
    for (uint32_t k = 0; k < node->n_children && node->out.count; k++) {
        if (k == first)
            continue;
        evaluate(node->child[k], i, runs_hull(&node->out));
        runs_both(&node->out, &node->child[k]->out, &node->spare);
        swap_out(node);
    }
}

static void evaluate(struct node *node, uint32_t i, struct clip clip)
{
    node->out.count = 0;
    switch (node->kind) {
    case NODE_CALL:
        node->primitive->row(node->call, i, clip, &node->out);
        break;
    case NODE_UNION:
        evaluate_union(node, i, clip);
        break;
    case NODE_BOTH:
        evaluate_both(node, i, clip);
        break;
    case NODE_MINUS:
        evaluate_minus(node, i, clip);
        break;
    case NODE_NOT:
        evaluate(node->child[0], i, clip);
        runs_not(&node->child[0]->out, clip, &node->out);
        break;
    }
    node->cost += node->out.count;
    for (uint32_t k = 0; k < node->n_children; k++)
        node->cost += node->child[k]->out.count;
}

enum { SAMPLED_ROWS = 61, RUN_COPIES = 3 }; /* a mask, its transpose, and space to grow */

static double estimate_runs(struct node *root, uint32_t n)
{
    double sum = 0;
    for (uint64_t k = 0; k < SAMPLED_ROWS; k++) {
        evaluate(root, (uint32_t)(k * UINT64_C(2654435761) % n), (struct clip){0, n});
        sum += (double)root->out.count;
    }
    return sum / SAMPLED_ROWS * n;
}

static struct pattern *refuse(const struct node *root, const struct script *s, double estimate,
                              struct error *e)
{
    script_error(
        s, root->at, e,
        "the mask has about %.2g runs of active keys, at most 2^31 (2.1e+09) are held; "
        "a smaller -n is needed",
        estimate);
    return NULL;
}

static double run_bytes(double runs)
{
    return runs * RUN_COPIES * sizeof(struct run);
}

/* Bytes; 0 where the system does not say. */
static double physical_memory(void)
{
    double pages = (double)sysconf(_SC_PHYS_PAGES), bytes = (double)sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? pages * bytes : 0;
}

static struct pattern *refuse_memory(const struct node *root, const struct script *s,
                                     double estimate, double memory, struct error *e)
{
    script_error(s, root->at, e,
                 "the mask has about %.2g runs of active keys, which need about %.1f GB; this "
                 "machine has %.1f GB; a smaller -n is needed",
                 estimate, run_bytes(estimate) / 1e9, memory / 1e9);
    if (e)
        e->kind = ERROR_UNAVAILABLE;
    return NULL;
}

struct pattern *node_evaluate(struct node *root, uint32_t n, const struct script *s,
                              struct error *e)
{
    double most = (double)n * ((n + 1) / 2), memory = physical_memory(); /* every other key */
    bool many = most > (double)PATTERN_MAX_RUNS, large = memory > 0 && run_bytes(most) > memory;
    double estimate = many || large ? estimate_runs(root, n) : 0;
    if (estimate > (double)PATTERN_MAX_RUNS)
        return refuse(root, s, estimate, e);
    if (large && run_bytes(estimate) > memory)
        return refuse_memory(root, s, estimate, memory, e);
    struct pattern *p = pattern_new(n);
    for (uint32_t i = 0; i < n; i++) {
        evaluate(root, i, (struct clip){0, n});
        for (size_t k = 0; k < root->out.count; k++) {
            if (!pattern_add(p, i, root->out.run[k].begin, root->out.run[k].end)) {
                pattern_destroy(p);
                return refuse(root, s, (double)PATTERN_MAX_RUNS, e);
            }
        }
        pattern_row(p, i);
    }
    return pattern_finish(p);
}
