/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert importance RUN: a learned mask's P as numbers and as a figure. */
#include "tools/maskbert/command.h"
#include "masks/base/memory.h"
#include "masks/readers/readers.h"
#include "model/checkpoint/json.h"
#include "tools/maskbert/importance/importance.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static int read_run(const char *run, struct importance *ret, struct error *e)
{
    if (!path_exists(run, "alpha.safetensors"))
        return error_set(
            e, ERROR_INPUT,
            "%s: has no alpha.safetensors; a run of pretrain --learn-mask is expected", run);
    char *path = path_join(run, "alpha.safetensors");
    const struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = path, .dam = true};
    int r = importance_read(&request, ret, e);
    free(path);
    return r;
}

static void add(struct head_importance *to, const struct head_importance *h, double part)
{
    to->p_diagonal += part * h->p_diagonal;
    to->p_neighbour += part * h->p_neighbour;
    to->p_special += part * h->p_special;
    to->density += part * h->density;
}

static json_t *json_of(const struct head_importance *h)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "p_diagonal", h->p_diagonal, "p_neighbour",
                     h->p_neighbour, "p_special", h->p_special, "density", h->density);
}

static void print_json(const struct importance *p, const struct head_importance *head,
                       const struct head_importance *mean)
{
    json_t *heads = json_array();
    for (uint32_t k = 0; k < p->layers * p->heads; k++) {
        json_t *each = json_of(&head[k]);
        json_object_set_new(
            each, "at",
            json_pack("[I,I]", (json_int_t)(k / p->heads), (json_int_t)(k % p->heads)));
        json_array_append_new(heads, each);
    }
    json_t *json = json_pack("{s:o, s:o}", "heads", heads, "mean", json_of(mean));
    json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(json);
}

static void print_line(const char *name, const struct head_importance *h)
{
    printf("%-10s %9.4f %10.4f %8.4f %8.4f\n", name, h->p_diagonal, h->p_neighbour,
           h->p_special, h->density);
}

static void print_table(const struct importance *p, const struct head_importance *head,
                        const struct head_importance *mean)
{
    char name[32];
    printf("%-10s %9s %10s %8s %8s\n", "P", "diagonal", "neighbour", "special", "density");
    for (uint32_t k = 0; k < p->layers * p->heads; k++) {
        if (p->layers > 1)
            snprintf(name, sizeof name, "%u.%u", k / p->heads, k % p->heads);
        else
            snprintf(name, sizeof name, "head %u", k);
        print_line(name, &head[k]);
    }
    print_line("mean", mean);
}

static void print(const struct options *o, const struct importance *p)
{
    const uint32_t heads = p->layers * p->heads;
    struct head_importance *head = memory_new(heads, sizeof *head), mean = {0};
    for (uint32_t k = 0; k < heads; k++) {
        head[k] = head_importance_of(p->value + (size_t)k * p->n * p->n, p->n);
        add(&mean, &head[k], 1.0 / heads);
    }
    (o->json ? print_json : print_table)(p, head, &mean);
    free(head);
}

static int draw(const struct importance *p, const struct figure *figure, struct error *e)
{
    struct mean_importance mean;
    mean_importance_of(p, &mean);
    int r = importance_draw(p, &mean, figure, e);
    mean_importance_finish(&mean);
    return r;
}

/* The numbers; with -o the figure, too. */
static int show(const struct options *o, struct error *e)
{
    struct importance p;
    const struct figure figure = {"importance", o->output, o->columns};
    if ((o->output && figure_check(&figure, e) < 0) || read_run(o->argument, &p, e) < 0)
        return -1;
    int r = o->output ? draw(&p, &figure, e) : 0;
    if (r == 0)
        print(o, &p);
    importance_finish(&p);
    return r;
}

/* Draws the masks that the run stored over time; prints nothing. */
static int show_film(const struct options *o, struct error *e)
{
    struct mask_history h;
    const struct figure figure = {"film", o->output, o->columns};
    if (o->json || !o->output)
        return error_set(
            e, ERROR_INPUT,
            "importance --film: -o FIGURE.pdf, .svg or .png is expected, no --json");
    if (figure_check(&figure, e) < 0 || mask_history_read(o->argument, &h, e) < 0)
        return -1;
    int r = film_draw(&h, &figure, e);
    mask_history_finish(&h);
    return r;
}

int command_importance(const struct options *o)
{
    struct error e = {0};
    return (o->film ? show_film : show)(o, &e) < 0 ? command_fail(&e) : 0;
}
