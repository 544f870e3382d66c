/* SPDX-License-Identifier: Apache-2.0 */
/* Each node of the tree computes one row into its own buffer, inside the clip that its parent asks
   for. Of the operands of '&' the one that was cheaper so far goes first and narrows the clip of
   the others; that decides cost alone, never the result. */
#include "masks/language/evaluate.h"
#include "masks/language/primitive.h"

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

struct rows {
    struct node *root;
    uint32_t n;
};

static uint64_t count_runs(void *context, uint32_t i)
{
    struct rows *x = context;
    evaluate(x->root, i, (struct clip){0, x->n});
    return x->root->out.count;
}

static struct pattern *refuse(const struct node *root, const struct script *s,
                              const struct error *inner, struct error *e)
{
    script_error(s, root->at, e, "%s", inner->text);
    if (e)
        e->kind = inner->kind;
    return NULL;
}

struct pattern *node_evaluate(struct node *root, uint32_t n, const struct script *s,
                              struct error *e)
{
    struct rows x = {root, n};
    struct error inner;
    const struct pattern_rows rows = {.n = n,
                                      .count = count_runs,
                                      .context = &x,
                                      .what = "the mask has",
                                      .remedy = "a smaller -n is needed"};
    if (pattern_check_rows(&rows, &inner))
        return refuse(root, s, &inner, e);
    struct pattern *p = pattern_new(n);
    for (uint32_t i = 0; i < n; i++) {
        evaluate(root, i, (struct clip){0, n});
        for (size_t k = 0; k < root->out.count; k++) {
            if (!pattern_add(p, i, root->out.run[k].begin, root->out.run[k].end)) {
                pattern_destroy(p);
                pattern_refuse_rows(&rows, (double)PATTERN_MAX_RUNS, &inner);
                return refuse(root, s, &inner, e);
            }
        }
        pattern_row(p, i);
    }
    return pattern_finish(p);
}
