/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sass/operand.h"
#include <stdlib.h>

/* "R12", "RZ" after `prefix`; `zero` is what it is called that reads as zero or true. */
static bool read_index(const char **at, const char *prefix, const char *zero, uint8_t of_zero,
                       uint8_t *ret)
{
    const char *s = *at;
    if (text_skip(&s, zero)) {
        *ret = of_zero;
    } else {
        char *end;
        if (!text_skip(&s, prefix) || *s < '0' || *s > '9')
            return false;
        *ret = (uint8_t)strtoul(s, &end, 10);
        s = end;
    }
    *at = s;
    return true;
}

/* .reuse, .64, .H0_H0, .B1, .X4 of a register. */
static bool read_suffixes(const char **at, struct operand *o)
{
    o->scale = 1;
    while (**at == '.') {
        if (text_skip(at, ".reuse") || text_skip(at, ".U32") || text_skip(at, ".F32"))
            continue;
        if (text_skip(at, ".64"))
            o->wide = true;
        else if (text_skip(at, ".H0_H0"))
            o->half = 1;
        else if (text_skip(at, ".H1_H1") || text_skip(at, ".H1"))
            o->half = 2;
        else if ((*at)[1] == 'B' && (*at)[2] >= '0' && (*at)[2] <= '3')
            o->half = (uint8_t)(1 + (*at)[2] - '0'), *at += 3;
        else if (text_skip(at, ".X16"))
            o->scale = 16;
        else if (text_skip(at, ".X4"))
            o->scale = 4;
        else if (text_skip(at, ".X8"))
            o->scale = 8;
        else
            return false;
    }
    return true;
}

static bool read_register(const char **at, struct operand *o)
{
    if (read_index(at, "UR", "URZ", ZERO_REGISTER, &o->index))
        o->kind = OPERAND_UNIFORM;
    else if (read_index(at, "R", "RZ", ZERO_REGISTER, &o->index))
        o->kind = OPERAND_REGISTER;
    else
        return false;
    return read_suffixes(at, o);
}

/* R4.64 + UR5 + 0x10, up to a bracket. */
static bool read_sum(const char **at, struct operand *o, enum operand_kind kind)
{
    o->kind = kind;
    o->index = o->uniform = ZERO_REGISTER;
    o->scale = 1;
    while (**at && **at != ']') {
        struct operand part = {0};
        char *end;
        *at += **at == '+';
        if (read_register(at, &part)) {
            if (part.kind == OPERAND_UNIFORM)
                o->uniform = part.index;
            else
                o->index = part.index, o->wide = part.wide, o->scale = part.scale;
            continue;
        }
        o->value += (uint32_t)strtoll(*at, &end, 0);
        if (end == *at)
            return false;
        *at = end;
    }
    return text_skip(at, "]");
}

static bool read_constant(const char **at, struct operand *o)
{
    if (!text_skip(at, "c[0x"))
        return false;
    o->bank = (uint8_t)(*(*at)++ - '0');
    return o->bank < BANKS && text_skip(at, "][") && read_sum(at, o, OPERAND_CONSTANT);
}

static bool read_address(const char **at, struct operand *o)
{
    struct operand descriptor = {0};
    if (text_skip(at, "desc[") && !read_sum(at, &descriptor, OPERAND_ADDRESS))
        return false;
    return text_skip(at, "[") && read_sum(at, o, OPERAND_ADDRESS);
}

static bool read_special(const char **at, struct operand *o)
{
    static const struct {
        const char *name;
        enum special what;
    } table[] = {{"SRZ", SPECIAL_ZERO},          {"SR_TID.X", SPECIAL_THREAD},
                 {"SR_CTAID.X", SPECIAL_BLOCK},  {"SR_LANEID", SPECIAL_LANE},
                 {"SR_CgaCtaId", SPECIAL_ZERO},  {"SR_TID.Y", SPECIAL_ZERO},
                 {"SR_LMEMHIOFF", SPECIAL_ZERO}, {"SR_CTAID.Y", SPECIAL_WAVE}};
    o->kind = OPERAND_SPECIAL;
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (text_skip(at, table[k].name)) {
            o->index = (uint8_t)table[k].what;
            return true;
        }
    return false;
}

static bool read_number(const char **at, struct operand *o)
{
    static const struct {
        const char *name;
        uint32_t bits;
    } table[] = {{"+INF", 0x7f800000u},
                 {"-INF", 0xff800000u},
                 {"+QNAN", 0x7fffffffu},
                 {"-QNAN", 0xffffffffu}};
    char *end;
    o->kind = OPERAND_IMMEDIATE;
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (text_skip(at, table[k].name)) {
            o->value = table[k].bits;
            return true;
        }
    const char *digits = *at + (**at == '-');
    if (*digits < '0' || *digits > '9')
        return false;
    if (!strncmp(digits, "0x", 2)) {
        o->value = (uint32_t)strtoll(*at, &end, 16);
    } else {
        o->decimal = true;
        o->number = strtod(*at, &end);
        o->value = (uint32_t)(int64_t)o->number;
    }
    *at = end;
    return true;
}

bool predicate_read(const char **at, struct operand *o)
{
    const char *s = *at;
    o->inverted = text_skip(&s, "!");
    o->is_uniform = *s == 'U';
    if (!read_index(&s, "UP", "UPT", TRUE_PREDICATE, &o->index) &&
        !read_index(&s, "P", "PT", TRUE_PREDICATE, &o->index))
        return false;
    o->kind = OPERAND_PREDICATE;
    *at = s;
    return true;
}

/* Signs before, and a bar behind |x|. */
static bool read_value(const char **at, struct operand *o)
{
    const char *s = *at;
    bool bar;
    if (*s == '-' && (s[1] == 'R' || s[1] == 'U' || s[1] == 'c' || s[1] == '|'))
        o->negative = true, s++;
    if (*s == '~')
        o->inverted = true, s++;
    bar = text_skip(&s, "|");
    o->absolute = bar;
    if (!read_register(&s, o) && !read_constant(&s, o))
        return false;
    if (bar && (!text_skip(&s, "|") || !read_suffixes(&s, o)))
        return false;
    *at = s;
    return true;
}

static bool read_label(const char **at, const struct labels *labels, struct operand *o)
{
    size_t n;
    if (!text_skip(at, "`("))
        return false;
    n = strcspn(*at, ")");
    o->kind = OPERAND_LABEL;
    o->value = UINT32_MAX; /* not in this function: its beginning, as RET names it */
    for (uint32_t k = 0; k < labels->count; k++)
        if (strlen(labels->label[k].name) == n && !strncmp(labels->label[k].name, *at, n))
            o->value = labels->label[k].index;
    *at += n + 1;
    return true;
}

/* gdesc[UR4].negA.tnspB */
static bool read_matrix(const char **at, struct operand *o)
{
    static const struct {
        const char *name;
        uint8_t what;
    } table[] = {{".tnspA", MATRIX_TRANSPOSE_A},
                 {".tnspB", MATRIX_TRANSPOSE_B},
                 {".negA", MATRIX_NEGATIVE_A},
                 {".negB", MATRIX_NEGATIVE_B}};
    if (!text_skip(at, "gdesc[UR"))
        return false;
    o->kind = OPERAND_MATRIX;
    o->index = (uint8_t)strtoul(*at, (char **)at, 10);
    if (!text_skip(at, "]"))
        return false;
    for (size_t k = 0; k < sizeof table / sizeof *table;)
        if (text_skip(at, table[k].name))
            o->matrix |= table[k].what, k = 0;
        else
            k++;
    return true;
}

bool operand_read(const char **at, const struct labels *labels, struct operand *o)
{
    if (text_skip(at, "PR")) {
        o->kind = OPERAND_FILE;
        return true;
    }
    if (text_skip(at, "SB")) {
        o->kind = OPERAND_SCOREBOARD;
        o->index = (uint8_t)strtoul(*at, (char **)at, 10);
        return true;
    }
    if (text_skip(at, "gsb0")) {
        o->kind = OPERAND_GROUP;
        return true;
    }
    if (**at == 'g')
        return read_matrix(at, o);
    if (**at == 'B' && (*at)[1] >= '0' && (*at)[1] <= '9') {
        o->kind = OPERAND_BARRIER;
        o->index = (uint8_t)strtoul(*at + 1, (char **)at, 10);
        return o->index < MAX_BARRIERS;
    }
    if (!strncmp(*at, "SR", 2))
        return read_special(at, o);
    return read_label(at, labels, o) || predicate_read(at, o) || read_value(at, o) ||
           read_address(at, o) || read_number(at, o);
}
