/* SPDX-License-Identifier: Apache-2.0 */
#include "model/engine/parts.h"
#include "model/arch/arch.h"

static const struct {
    uint32_t part;
    const char *name;
} parts[] = {
    {PART_POOLER, "pooler"},
    {PART_MLM, "masked language model's head"},
    {PART_NSP, "next sentence's head"},
    {PART_CLASSIFIER, "classifier"},
    {PART_SPAN, "span head"},
};

void parts_share(struct engine *g)
{
    if (arch_pooler(&g->config) == POOLER_SHARED &&
        g->parts & (PART_MLM | PART_CLASSIFIER | PART_SPAN))
        g->parts |= PART_POOLER;
}

int parts_check(const char *folder, const struct engine *g, struct error *e)
{
    uint32_t has = g->weights.parts & ~g->weights.new_parts;
    if (g->parts & (PART_CLASSIFIER | PART_SPAN) && config_check_class(&g->config, e) < 0)
        return error_prefix(e, "%s", folder);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if (g->parts & ~has & parts[k].part)
            return error_set(e, ERROR_INPUT, "%s: the model has no %s", folder, parts[k].name);
    return 0;
}
