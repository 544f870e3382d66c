/* SPDX-License-Identifier: Apache-2.0 */
#include "model/evaluate/labels.h"
#include "masks/base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NONE = -1 };

bool labels_unnamed(const struct model_config *c)
{
    char buffer[24], number[24];
    for (uint32_t k = 0; k < c->labels; k++) {
        snprintf(number, sizeof number, "LABEL_%u", k);
        if (strcmp(config_label(c, k, buffer), number) != 0)
            return false;
    }
    return true;
}

static int find(const struct model_config *c, const char *name,
                int (*compare)(const char *, const char *))
{
    char buffer[24];
    for (uint32_t k = 0; k < c->labels; k++)
        if (!compare(config_label(c, k, buffer), name))
            return (int)k;
    return NONE;
}

/* The number of a class among those that the task has for all files. */
static int fixed_class(const struct data_task *t, const char *name)
{
    for (int k = 0; k < TASK_CLASSES && t->classes[k]; k++)
        if (!strcmp(t->classes[k], name))
            return k;
    return NONE;
}

/* ---- rules: the label of a class ---- */

static int by_name(const struct model_config *c, const struct data_task *t, const char *name)
{
    (void)t;
    const int exact = find(c, name, strcmp);
    return exact == NONE ? find(c, name, strcasecmp) : exact;
}

static int by_other_name(const struct model_config *c, const struct data_task *t,
                         const char *name)
{
    const int k = fixed_class(t, name);
    return k == NONE || !t->other_names[k] ? NONE : by_name(c, t, t->other_names[k]);
}

static int by_number(const struct model_config *c, const struct data_task *t, const char *name)
{
    uint32_t classes = 0;
    while (classes < TASK_CLASSES && t->classes[classes])
        classes++;
    return c->labels == classes && labels_unnamed(c) ? fixed_class(t, name) : NONE;
}

/* ---- all classes ---- */

typedef int rule_fn(const struct model_config *c, const struct data_task *t, const char *name);
static rule_fn *const rules[] = {by_name, by_other_name, by_number};

bool labels_of_classes(const struct model_config *c, const struct data_task *t,
                       const char *const *name, uint32_t n, uint32_t *ret,
                       uint32_t *ret_missing)
{
    bool all = false;
    for (size_t rule = 0; rule < sizeof rules / sizeof *rules && !all; rule++) {
        bool *used = memory_new((size_t)c->labels + 1, sizeof *used);
        uint32_t k = 0;
        for (; k < n; k++) {
            const int label = rules[rule](c, t, name[k]);
            if (label == NONE || used[label])
                break;
            used[label] = true;
            ret[k] = (uint32_t)label;
        }
        free(used);
        all = k == n;
        if (rule == 0 && !all)
            *ret_missing = k;
    }
    return all;
}
