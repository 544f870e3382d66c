/* SPDX-License-Identifier: Apache-2.0 */
#include "model/arch/arch.h"
#include "model/arch/bert.h"
#include <string.h>

static const struct arch *const all[] = {&arch_bert};

const struct arch *arch_find(const char *model_type)
{
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!strcmp(all[k]->model_type, model_type))
            return all[k];
    return NULL;
}

const char *arch_names(void)
{
    return "bert";
}

const struct arch_class *arch_class_find(const struct arch *a, const char *name)
{
    for (const struct arch_class *c = a->classes; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

const struct arch_class *arch_class_of(const struct arch *a, uint32_t parts)
{
    for (const struct arch_class *c = a->classes; c->name; c++)
        if (c->parts == parts)
            return c;
    return NULL;
}

const struct parameter_row *arch_parameter(const struct arch *a, enum parameter_id id)
{
    const struct parameter_row *const tables[] = {a->before, a->in_layer, a->after};
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        for (const struct parameter_row *r = tables[k]; r->name; r++)
            if (r->id == id)
                return r;
    return NULL;
}

bool arch_norms_are(const struct arch *a, enum norm_place place)
{
    for (uint32_t k = 0; k < a->blocks; k++)
        if (a->block[k].norm != place)
            return false;
    return true;
}
