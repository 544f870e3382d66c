/* SPDX-License-Identifier: Apache-2.0 */
/* maskc info: what a kernel file holds: targets, compilers, registers, spills, sizes, the plan. */
#include "gen/key_shape.h"
#include "masks/base/file.h"
#include "tools/common/table.h"
#include "tools/maskc/command.h"
#include "tools/maskc/plan_text.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static void print_features(const struct artifact *a)
{
    const struct kernel_request *f = &a->request;
    printf("  %u x %u, %u head%s", request_queries(f, a->mask), request_keys(f, a->mask),
           a->mask->heads, a->mask->heads == 1 ? "" : "s");
    if (f->kv_heads)
        printf(" on %u key head%s", f->kv_heads, f->kv_heads == 1 ? "" : "s");
    printf(", %u layer%s, %u distinct mask%s\n", a->mask->layers,
           a->mask->layers == 1 ? "" : "s", a->mask->n_patterns,
           a->mask->n_patterns == 1 ? "" : "s");
    printf("  %s, head dim %u, ", dtype_name(f->dtype), f->head_dim);
    if (f->transform == ABI_SPARSEGEN)
        printf("sparsegen lambda %g", (double)f->lambda);
    else
        printf("softmax");
    printf("%s%s", f->dropout ? ", dropout" : "", f->backward ? "" : ", forward only");
    printf(f->bias ? ", soft mask: %s\n" : "\n", bias_name(f->bias));
    if (a->order)
        printf("  tokens in the order of --order, which the file holds\n");
}

static uint64_t code_bytes(const struct artifact_target *t)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < t->n_images; k++)
        sum += t->image[k].size;
    return sum;
}

static void print_target(const struct artifact_target *t)
{
    struct text line = {0};
    struct table table = {0};
    text_add(&line, "  %-10s  %s, code %llu bytes\n", t->name, t->compiler,
             (unsigned long long)code_bytes(t));
    lines_print(&line, TABLE_WIDTH, 12);
    table_text_column(&table, "    bytes");
    table_number_column(&table, "registers");
    table_number_column(&table, "spills");
    table_number_column(&table, "shared");
    table_number_column(&table, "code");
    for (uint32_t k = 0; k < t->n_kernels; k++) {
        const struct kernel_resources *r = &t->kernel[k];
        if (!r->registers && !r->code_bytes)
            continue;
        table_cell(&table, "    %s", r->entry);
        table_cell(&table, "%u", r->registers);
        table_cell(&table, "%u", r->spill_bytes);
        table_cell(&table, "%u", r->shared_bytes);
        table_cell(&table, "%u", r->code_bytes);
    }
    if (table.cells)
        table_print(&table, TABLE_WIDTH);
    table_finish(&table);
}

void kernel_file_print(const struct artifact *a, const char *path, uint64_t size)
{
    printf("%s: %llu bytes\n", path, (unsigned long long)size);
    print_features(a);
    for (uint32_t t = 0; t < a->n_targets; t++)
        print_target(&a->target[t]);
}

static json_t *kernels_json(const struct artifact_target *t)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < t->n_kernels; k++) {
        const struct kernel_resources *r = &t->kernel[k];
        json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:i, s:i}", "entry", r->entry,
                                              "registers", (int)r->registers, "spill_bytes",
                                              (int)r->spill_bytes, "shared_bytes",
                                              (int)r->shared_bytes, "code_bytes",
                                              (int)r->code_bytes));
    }
    return list;
}

static json_t *targets_json(const struct artifact *a)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < a->n_targets; k++) {
        const struct artifact_target *t = &a->target[k];
        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:i, s:o}", "name", t->name,
                                              "compiler", t->compiler, "code_bytes",
                                              (json_int_t)code_bytes(t), "plan", (int)t->plan,
                                              "kernels", kernels_json(t)));
    }
    return list;
}

static json_t *plans_json(const struct artifact *a)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < a->n_plans; k++) {
        json_t *plan = json_loads(a->plan[k].json, 0, NULL);
        json_array_append_new(list, plan ? plan : json_null());
    }
    return list;
}

static json_t *info_json(const struct artifact *a, uint64_t size)
{
    const struct kernel_request *f = &a->request;
    bool sparse = f->transform == ABI_SPARSEGEN;
    return json_pack(
        "{s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:i, s:s, s:o, s:b, s:b, s:s, s:b, s:o, "
        "s:o}",
        "bytes", (json_int_t)size, "length", (int)request_queries(f, a->mask), "kv_length",
        (int)request_keys(f, a->mask), "heads", (int)a->mask->heads, "kv_heads",
        (int)request_kv_heads(f, a->mask), "layers", (int)a->mask->layers, "distinct",
        (int)a->mask->n_patterns, "dtype", dtype_name(f->dtype), "head_dim", (int)f->head_dim,
        "transform", sparse ? "sparsegen" : "softmax", "lambda",
        sparse ? json_real((double)f->lambda) : json_null(), "dropout", f->dropout, "backward",
        f->backward, "soft", bias_name(f->bias), "order", a->order != NULL, "targets",
        targets_json(a), "plans", plans_json(a));
}

void command_print_json(json_t *j)
{
    char *text = json_dumps(j, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    puts(text ? text : "null");
    free(text);
    json_decref(j);
}

int command_check_head(const struct options *o, struct error *e)
{
    return o->head >= 0 && o->json
               ? error_set(e, ERROR_INPUT, "--head and --json: JSON has all heads")
               : 0;
}

static int print_text(const struct artifact *a, uint64_t size, const struct options *o,
                      struct error *e)
{
    struct text plans = {0};
    int r = 0;
    for (uint32_t k = 0; k < a->n_plans && r == 0; k++) {
        json_t *plan = json_loads(a->plan[k].json, 0, NULL);
        text_add(&plans, "\n");
        r = plan_text(a->plan[k].text, plan, o, &plans, e);
        json_decref(plan);
    }
    if (r == 0) {
        kernel_file_print(a, o->argument[0], size);
        fputs(text_get(&plans), stdout);
    }
    text_finish(&plans);
    return r;
}

int command_check_layer(const struct options *o, const struct artifact *a, const char *path,
                        struct error *e)
{
    return o->layer < a->mask->layers
               ? 0
               : error_set(e, ERROR_INPUT,
                           "%s: --layer %lld is out of range, 0..%u is expected", path,
                           (long long)o->layer, a->mask->layers - 1);
}

static int info(const struct options *o, struct error *e)
{
    const char *path = o->argument[0];
    struct file f = {0};
    struct artifact *a = NULL;
    int code = file_open(path, &f, e);
    if (!code)
        code = artifact_read(f.bytes, f.size, path, &a, e);
    if (!code)
        code = command_check_layer(o, a, path, e);
    if (!code && o->json)
        command_print_json(info_json(a, f.size));
    else if (!code)
        code = print_text(a, f.size, o, e);
    artifact_destroy(a);
    file_close(&f);
    return code;
}

static int check_options(const struct options *o, struct error *e)
{
    if (o->layer >= 0 && o->head < 0)
        return error_set(e, ERROR_INPUT, "--layer goes with --head");
    return command_check_head(o, e);
}

int command_info(const struct options *o)
{
    struct error e = {0};
    return check_options(o, &e) || info(o, &e) ? command_fail(&e) : 0;
}
