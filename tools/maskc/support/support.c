/* SPDX-License-Identifier: Apache-2.0 */
/* maskc support: which kernels compute what, on which hardware they have run. */
#include "masks/base/text.h"
#include "tools/maskc/command.h"
#include "tools/maskc/support/matrix.h"
#include <stdio.h>

static void add_targets(const struct support_row *row, struct text *out)
{
    const char *between = "";
    for (uint32_t t = 0; targets[t].name; t++)
        if (row->targets >> t & 1) {
            text_add(out, "%s%s", between, targets[t].name);
            between = ", ";
        }
}

static void add_dtypes(const struct support_row *row, struct text *out)
{
    const char *between = "";
    for (uint32_t d = 0; row->dtypes >> d; d++)
        if (row->dtypes >> d & 1) {
            text_add(out, "%s%s", between, dtype_name((enum abi_dtype)d));
            between = ", ";
        }
}

static const char *family_name(const struct support_row *row)
{
    return row->family ? row->family->name : "none";
}

/* Prints "TITLE A, B", the features whose cells have this status and `asked`, or nothing if there are none. */
static void print_features(const struct support_row *row, enum support_status status,
                           bool asked, const char *title)
{
    const char *between = title, *end = "";
    for (uint32_t k = 0; support_features[k].name; k++)
        if (row->cell[k].status == status && row->cell[k].asked == asked) {
            printf("%s%s", between, support_features[k].name);
            between = ", ";
            end = "\n";
        }
    printf("%s", end);
}

static void print_row(const struct support_row *row)
{
    struct text list = {0}, types = {0};
    const enum support_status status = support_status(row);
    add_targets(row, &list);
    add_dtypes(row, &types);
    printf("%-13s %-9s %-8s %-8s %s\n", family_name(row), text_get(&types), support_passes(row),
           support_status_name(status), text_get(&list));
    if (row->family) {
        print_features(row, SUPPORT_OTHER, false, "    other kernels: ");
        print_features(row, status, true, "    only by --family: ");
        print_features(row, SUPPORT_REFUSED, false, "    refused: ");
    }
    text_finish(&list);
    text_finish(&types);
}

static void print_list(const struct support_row *row, uint32_t count)
{
    printf("kernels       types     pass     status   targets\n");
    for (uint32_t k = 0; k < count; k++)
        print_row(&row[k]);
    printf("\nrun: has run on this hardware, checked against float64. emulated: has run on a "
           "CPU only.\n"
           "Hardware that kernels have run on:\n");
    for (const struct support_evidence *e = support_evidence; e->where; e++) {
        for (uint32_t f = 0; f < SUPPORT_FAMILIES_MOST && e->families[f]; f++)
            printf("%s%s", f ? ", " : "", e->families[f]);
        for (uint32_t t = 0; t < SUPPORT_TARGETS_MOST && e->targets[t]; t++)
            printf("%s%s", t ? ", " : ": ", e->targets[t]);
        printf("\n    %s\n", e->where);
    }
}

static void print_markdown(const struct support_row *row, uint32_t count)
{
    printf("| kernels | types | targets | pass |");
    for (uint32_t f = 0; support_features[f].name; f++)
        printf(" %s |", support_features[f].name);
    printf("\n| --- | --- | --- | --- |");
    for (uint32_t f = 0; support_features[f].name; f++)
        printf(" --- |");
    for (uint32_t k = 0; k < count; k++) {
        struct text list = {0}, types = {0};
        add_targets(&row[k], &list);
        add_dtypes(&row[k], &types);
        printf("\n| %s | %s | %s | %s |", family_name(&row[k]), text_get(&types),
               text_get(&list), support_passes(&row[k]));
        for (uint32_t f = 0; support_features[f].name; f++)
            printf(" %s%s |", support_status_name(row[k].cell[f].status),
                   row[k].cell[f].asked ? " (`--family`)" : "");
        text_finish(&list);
        text_finish(&types);
    }
    printf("\n");
}

static json_t *cells_json(const struct support_row *row)
{
    json_t *ret = json_object();
    for (uint32_t k = 0; support_features[k].name; k++) {
        const struct support_feature *f = &support_features[k];
        const struct support_cell *c = &row->cell[k];
        const uint32_t length = c->length ? c->length : f->length ? f->length : 128;
        struct text option = {0};
        text_add(&option, "-n %u --heads %d %s", length, SUPPORT_HEADS, f->option);
        if (f->longer_keys)
            text_add(&option, " --kv-length %u", 2 * length);
        json_object_set_new(ret, f->name,
                            json_pack("{s:s, s:b, s:s}", "status",
                                      support_status_name(c->status), "only_by_family",
                                      c->asked, "options", text_get(&option)));
        text_finish(&option);
    }
    return ret;
}

static json_t *targets_json(const struct support_row *row)
{
    json_t *ret = json_array();
    for (uint32_t t = 0; targets[t].name; t++)
        if (row->targets >> t & 1)
            json_array_append_new(ret, json_string(targets[t].name));
    return ret;
}

static json_t *dtypes_json(const struct support_row *row)
{
    json_t *ret = json_array();
    for (uint32_t d = 0; row->dtypes >> d; d++)
        if (row->dtypes >> d & 1)
            json_array_append_new(ret, json_string(dtype_name((enum abi_dtype)d)));
    return ret;
}

static void print_json(const struct support_row *row, uint32_t count)
{
    json_t *rows = json_array();
    for (uint32_t k = 0; k < count; k++)
        json_array_append_new(
            rows, json_pack("{s:o, s:s*, s:o, s:s, s:o}", "dtypes", dtypes_json(&row[k]),
                            "family", row[k].family ? row[k].family->name : NULL, "targets",
                            targets_json(&row[k]), "pass", support_passes(&row[k]), "features",
                            cells_json(&row[k])));
    command_print_json(json_pack("{s:o}", "support", rows));
}

int command_support(const struct options *o)
{
    struct support_row row[SUPPORT_ROWS_MOST];
    const uint32_t count = support_make(row);
    if (o->json)
        print_json(row, count);
    else if (o->markdown)
        print_markdown(row, count);
    else
        print_list(row, count);
    return 0;
}
