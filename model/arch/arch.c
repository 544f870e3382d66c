/* SPDX-License-Identifier: Apache-2.0 */
#include "model/arch/arch.h"
#include <string.h>

/* clang-format off */
static const struct arch *const all[] = {
    &arch_bert,
    &arch_camembert,
    &arch_distilbert,
    &arch_modernbert,
    &arch_mpnet,
    &arch_roberta,
    &arch_xlm_roberta,
};
/* clang-format on */

const struct arch *arch_find(const char *model_type)
{
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!strcmp(all[k]->model_type, model_type))
            return all[k];
    for (size_t k = 0; arch_own && arch_own[k]; k++)
        if (!strcmp(arch_own[k]->model_type, model_type))
            return arch_own[k];
    return NULL;
}

void arch_names(struct text *to)
{
    const size_t count = sizeof all / sizeof *all;
    for (size_t k = 0; k < count; k++)
        text_add(to, "%s%s", !k ? "" : k + 1 < count ? ", " : " or ", all[k]->model_type);
}

const struct arch_class *arch_class_find(const struct arch *a, const char *name)
{
    for (const struct arch_class *c = a->classes; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

void arch_class_names(const struct arch *a, struct text *to)
{
    for (const struct arch_class *c = a->classes; c->name; c++)
        text_add(to, "%s%s", c == a->classes ? "" : c[1].name ? ", " : " or ", c->name);
}

const struct arch_class *arch_class_ending(const struct arch *a, const char *end)
{
    const size_t ending = strlen(end);
    for (const struct arch_class *c = a->classes; c->name; c++) {
        const size_t length = strlen(c->name);
        if (length >= ending && !strcmp(c->name + length - ending, end))
            return c;
    }
    return NULL;
}

const struct arch_class *arch_class_of(const struct arch *a, uint32_t parts)
{
    const uint32_t shared = a->pooler == POOLER_SHARED ? PART_POOLER : 0;
    for (const struct arch_class *c = a->classes; c->name; c++)
        if (c->parts == parts || (c->parts & ~shared) == (parts & ~shared))
            return c;
    return NULL;
}

enum pooler_kind arch_pooler(const struct model_config *c)
{
    const struct arch_class *class = arch_class_find(c->arch, c->architecture);
    return class && class->dense ? POOLER_DROPS : c->arch->pooler;
}

uint32_t arch_relative(int32_t offset)
{
    enum { HALF = RELATIVE_ROWS / 2, EXACT = HALF / 2 };
    const uint32_t first = offset > 0 ? HALF : 0;
    const uint64_t n = (uint64_t)(offset < 0 ? -(int64_t)offset : offset);
    uint32_t k = 0;
    if (n < EXACT)
        return first + (uint32_t)n;
    while (k + 1 < EXACT && n * n >= UINT64_C(64) << (k + 1)) /* n >= 8 * 2^((k + 1) / 2) */
        k++;
    return first + EXACT + k;
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

const struct block *arch_block(const struct arch *a, enum block_kind kind)
{
    uint32_t k = 0;
    while (k + 1 < a->blocks && a->block[k].kind != kind)
        k++;
    return &a->block[k];
}

enum norm_place arch_norm_of(const struct arch *a, enum block_kind kind)
{
    return arch_block(a, kind)->norm;
}

bool arch_blocks_are(const struct arch *a, const struct block *list, uint32_t count)
{
    for (uint32_t k = 0; k < count && k < a->blocks; k++)
        if (a->block[k].kind != list[k].kind || a->block[k].norm != list[k].norm)
            return false;
    return count == a->blocks;
}
