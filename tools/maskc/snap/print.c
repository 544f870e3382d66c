/* SPDX-License-Identifier: Apache-2.0 */
/* Results of maskc snap, for people and for scripts. */
#include "tools/common/table.h"
#include "tools/maskc/command.h"
#include "tools/maskc/snap/task.h"
#include <math.h>
#include <stdio.h>

static double density(const struct mask *m)
{
    double sum = 0;
    for (size_t k = 0; k < (size_t)m->layers * m->heads; k++)
        sum += (double)m->pattern[m->at[k]]->active;
    return sum / ((double)m->layers * m->heads * m->n * m->n);
}

static const struct snap_result *table_of(const struct task *t)
{
    return t->o->measure ? &t->equal : &t->result;
}

static void print_row(const struct task *t, int k)
{
    const struct snap_mask *m = &table_of(t)->kind[k];
    if (!m->mask) {
        printf("  %-10s    none\n", snap_kind_names[k]);
        return;
    }
    printf("%c %-10s %7.4f %9.4f %8.4f %10.1f us", k == (int)t->chosen.kind ? '*' : ' ',
           snap_kind_names[k], m->share, m->retained, density(m->mask), m->predicted * 1e6);
    if (t->measured[k] > 0)
        printf(" %9.1f us", t->measured[k] * 1e6);
    printf("\n");
}

static const char *reason(const struct task *t)
{
    if (t->o->measure)
        return "measured, it is the fastest of those that keep as much";
    if (t->request.uniform)
        return "its heads have the same share of the time";
    return t->request.retain > 0 ? "no kind that keeps as much is predicted to be faster"
                                 : "no kind keeps more within the time";
}

/* A GPU at a small batch takes as long as its longest row block, so the sum of all is no bound worth its name. */
static bool bound_tells(const struct task *t)
{
    return t->result.bound < 1 - 1e-9 || t->result.best.retained > 1 - 1e-9;
}

void task_print(const struct task *t)
{
    const struct snap_request *r = &t->request;
    printf("  %-10s %7s %9s %8s %13s%s\n", "kind", "share", "retained", "density", "predicted",
           t->o->measure ? "     measured" : "");
    for (int k = 0; k < SNAP_KINDS; k++)
        print_row(t, k);
    printf("share is of dense's %s, %.1f us predicted on %s with %u thread%s\n",
           r->training ? "forward and backward" : "forward", t->result.dense_predicted * 1e6,
           r->machine->name, r->threads, r->threads > 1 ? "s" : "");
    printf("bound %.4f: %s\n", t->result.bound,
           bound_tells(t)
               ? "no choice among the candidates of row blocks keeps more in that time"
               : "it says nothing here: it adds up row blocks, and these run side by side");
    struct text last = {0};
    text_add(&last, "%s: %s; %s\n", t->o->output, snap_kind_names[t->chosen.kind], reason(t));
    lines_print(&last, TABLE_WIDTH, 2);
}

static json_t *list_heads(const struct task *t)
{
    const struct mask *m = t->chosen.mask;
    json_t *list = json_array();
    for (uint32_t l = 0; l < m->layers; l++)
        for (uint32_t h = 0; h < m->heads; h++) {
            const struct pattern *p = mask_pattern(m, l, h);
            json_array_append_new(
                list, json_pack("{s:[i,i],s:f,s:o}", "at", (int)l, (int)h, "density",
                                (double)p->active / ((double)m->n * m->n), "retained",
                                command_number(snap_retained_head(&t->p, m, l, h))));
        }
    return list;
}

/* The figures of a kind without a mask are null. */
static json_t *describe(const struct task *t, int k)
{
    const struct snap_mask *m = &table_of(t)->kind[k];
    double none = m->mask ? 0 : NAN;
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o}", "kind", snap_kind_names[k], "share",
                     command_number(m->share + none), "retained",
                     command_number(m->retained + none), "density",
                     command_number(m->mask ? density(m->mask) : NAN), "predicted_s",
                     command_number(m->predicted + none), "measured_s",
                     command_number(t->measured[k] > 0 ? t->measured[k] : NAN));
}

void task_print_json(const struct task *t)
{
    const struct snap_request *r = &t->request;
    const struct snap_mask *best = &t->chosen;
    double dense = t->result.dense_predicted, measured = t->measured[best->kind];
    json_t *others = json_array();
    for (int k = SNAP_ROW_BLOCKS + 1; k < SNAP_KINDS; k++)
        json_array_append_new(others, describe(t, k));
    json_t *j = json_pack("{s:o,s:o,s:f,s:f,s:f,s:f,s:f,s:f,s:o,s:o,s:o}", "budget",
                          command_number(r->retain > 0  ? NAN
                                         : r->share > 0 ? r->share
                                                        : r->seconds / dense),
                          "retain", command_number(r->retain > 0 ? r->retain : NAN), "share",
                          best->share, "predicted_s", best->predicted, "dense_predicted_s",
                          dense, "retained", best->retained, "bound", t->result.bound,
                          "density", density(best->mask), "heads", list_heads(t), "others",
                          others, "measured_s", command_number(measured > 0 ? measured : NAN));
    json_object_set_new(j, "bound_tells", json_boolean(bound_tells(t)));
    json_object_set_new(j, "least_share", command_number(t->result.least_share));
    json_object_set_new(j, "kind", json_string(snap_kind_names[best->kind]));
    json_object_set_new(j, "snap", describe(t, SNAP_ROW_BLOCKS));
    json_object_set_new(j, "objective", json_string(r->training ? "training" : "forward"));
    json_object_set_new(j, "machine", json_string(r->machine->name));
    json_object_set_new(j, "target", json_string(r->target->name));
    json_object_set_new(j, "threads", json_integer(r->threads));
    json_object_set_new(j, "batch", json_integer(r->batch));
    json_object_set_new(j, "mask", json_string(t->o->output));
    command_print_json(j);
}
