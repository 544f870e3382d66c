/* SPDX-License-Identifier: Apache-2.0 */
/* maskc order MASK: orders of the tokens, each by the predicted time of the mask in it. */
#include "masks/graph/order.h"
#include "gen/plan/plan.h"
#include "masks/base/memory.h"
#include "tools/maskc/command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 4 };

/* order null: the tokens as they are. */
struct candidate {
    const char *method;
    uint32_t *order;
    double seconds;
};

struct contest {
    const struct options *o;
    const struct target *target;
    const struct machine *machine;
    struct compile_request request;
    struct mask *mask;
    struct candidate of[CANDIDATES]; /* the first is the mask as it is */
    uint32_t count, best;
};

static int check_options(const struct options *o, struct error *e)
{
    const char *m = o->method ? o->method : "best";
    if (strcmp(m, "rcm") && strcmp(m, "bisection") && strcmp(m, "curve") && strcmp(m, "best"))
        return error_set(e, ERROR_INPUT,
                         "--method %.64s: rcm, bisection, curve or best is expected", m);
    if (!strcmp(m, "curve") && !o->coordinates)
        return error_set(e, ERROR_INPUT, "--method curve needs --coordinates X.npy");
    if (o->coordinates && strcmp(m, "curve") && strcmp(m, "best"))
        return error_set(e, ERROR_INPUT, "--coordinates goes with --method curve or best");
    if (!o->output || !has_suffix(o->output, ".npy"))
        return error_set(e, ERROR_INPUT, "order needs -o ORDER.npy");
    return 0;
}

static bool is_wanted(const struct options *o, const char *method)
{
    return !o->method || !strcmp(o->method, "best") || !strcmp(o->method, method);
}

/* Takes the order over. */
static void add(struct contest *c, const char *method, uint32_t *order)
{
    c->of[c->count++] = (struct candidate){method, order, 0};
}

static int find_orders(struct contest *c, struct error *e)
{
    double *point = NULL;
    uint32_t axes = 0;
    add(c, "none", NULL);
    if (c->o->coordinates && points_read(c->o->coordinates, c->mask->n, &point, &axes, e))
        return -1;
    if (point && is_wanted(c->o, "curve"))
        add(c, "curve", order_curve(point, c->mask->n, axes));
    free(point);
    if (!is_wanted(c->o, "rcm") && !is_wanted(c->o, "bisection"))
        return 0;
    struct pattern *graph = order_graph(c->mask, e);
    if (!graph)
        return -1;
    if (is_wanted(c->o, "rcm"))
        add(c, "rcm", order_rcm(graph));
    if (is_wanted(c->o, "bisection"))
        add(c, "bisection", order_bisect(graph));
    pattern_destroy(graph);
    return 0;
}

/* Forward and backward, all layers. */
static int predict(const struct contest *c, struct candidate *x, struct error *e)
{
    struct mask *permuted = x->order ? mask_permute(c->mask, x->order, e) : NULL;
    const struct mask *m = x->order ? permuted : c->mask;
    const struct plan_options best = {.family = c->request.plan.family};
    struct plan *p =
        m ? plan_build(m, c->target, &c->request.request, c->machine, &best, e) : NULL;
    uint32_t batch = c->o->batch ? c->o->batch : 1, threads = command_threads(c->o);
    for (uint32_t l = 0; p && l < m->layers; l++) {
        x->seconds += plan_predict(p, false, l, batch, threads);
        if (c->request.request.backward)
            x->seconds += plan_predict(p, true, l, batch, threads);
    }
    mask_destroy(permuted);
    plan_destroy(p);
    return p ? 0 : -1;
}

/* One method that was asked for wins whatever it costs. */
static int choose(struct contest *c, struct error *e)
{
    bool asked = c->o->method && strcmp(c->o->method, "best") != 0;
    for (uint32_t k = 0; k < c->count; k++) {
        if (predict(c, &c->of[k], e))
            return -1;
        if (asked || c->of[k].seconds < c->of[c->best].seconds)
            c->best = k;
    }
    return 0;
}

static int write_best(const struct contest *c, struct error *e)
{
    uint32_t *order = c->of[c->best].order, *same = NULL;
    if (!order) {
        same = memory_new(c->mask->n, sizeof *same);
        for (uint32_t p = 0; p < c->mask->n; p++)
            same[p] = p;
    }
    int r = order_write(c->o->output, order ? order : same, c->mask->n, e);
    free(same);
    return r;
}

static json_t *seconds_json(double seconds)
{
    return json_pack("{s:o}", "predicted_s", command_number(seconds));
}

static void print_json(const struct contest *c)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < c->count; k++)
        json_array_append_new(list, json_pack("{s:s, s:o}", "method", c->of[k].method,
                                              "predicted_s", command_number(c->of[k].seconds)));
    const struct candidate *best = &c->of[c->best];
    command_print_json(
        json_pack("{s:o, s:o, s:s, s:o}", "before", seconds_json(c->of[0].seconds), "after",
                  seconds_json(best->seconds), "method", best->method, "candidates", list));
}

static void print_text(const struct contest *c)
{
    printf("%s: %u tokens, %u head%s, %s; forward%s, predicted\n", c->mask->source, c->mask->n,
           c->mask->heads, c->mask->heads == 1 ? "" : "s", c->target->name,
           c->request.request.backward ? " and backward" : "");
    for (uint32_t k = 0; k < c->count; k++)
        printf("  %-10s %10.3f ms%8.2fx%s\n", c->of[k].method, c->of[k].seconds * 1e3,
               c->of[0].seconds / c->of[k].seconds, k == c->best ? "  written" : "");
}

static int order(struct contest *c, struct error *e)
{
    const struct target *target[ARTIFACT_MAX_TARGETS];
    if (check_options(c->o, e) || command_one_target(c->o, "cpu", target, &c->request, e))
        return -1;
    c->target = target[0];
    c->machine = machine_choose(c->request.machine, c->request.calibration, c->target,
                                &c->request.request, e);
    if (!c->machine)
        return -1;
    c->mask = options_kernel_mask(c->o, c->o->argument[0], c->o->length[0], COMMAND_HEADS,
                                  &c->request.request, e);
    if (!c->mask)
        return -1;
    c->request.request.length = c->mask->n;
    return find_orders(c, e) || choose(c, e) || write_best(c, e) ? -1 : 0;
}

int command_order(const struct options *o)
{
    struct error e = {0};
    struct contest c = {.o = o};
    int r = order(&c, &e);
    if (r == 0 && o->json)
        print_json(&c);
    else if (r == 0)
        print_text(&c);
    for (uint32_t k = 0; k < c.count; k++)
        free(c.of[k].order);
    mask_destroy(c.mask);
    return r < 0 ? command_fail(&e) : 0;
}
