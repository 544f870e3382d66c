/* SPDX-License-Identifier: Apache-2.0 */
/* nvdisasm's text of one function to instructions. A line is
       / *0060* /   @!P0 IADD3 R4, P1, R2, -R3, RZ ;   / * 0x... * /
   followed by a line with the second half of the encoding, whose upper bits are the control code. */
#include "tests/sass/machine.h"
#include <stdio.h>
#include <stdlib.h>

enum { LABEL_TEXT = 64, LINE_TEXT = 512 };

struct label {
    char name[LABEL_TEXT];
    uint32_t index;
};

struct parser {
    struct program *program;
    struct label *label;
    uint32_t labels, room;
    const char *line; /* for errors */
    char *why;
    size_t why_room;
};

static int refuse(struct parser *p, const char *what)
{
    snprintf(p->why, p->why_room, "%s: %.*s", what, (int)strcspn(p->line, "\n"), p->line);
    return -1;
}

static bool skip_text(const char **at, const char *text)
{
    size_t n = strlen(text);
    if (strncmp(*at, text, n))
        return false;
    *at += n;
    return true;
}

/* ---- operands ---- */

/* "R12", "RZ" after `prefix`; `zero` is what it is called that reads as zero or true. */
static bool read_index(const char **at, const char *prefix, const char *zero, uint8_t of_zero,
                       uint8_t *ret)
{
    const char *s = *at;
    if (skip_text(&s, zero)) {
        *ret = of_zero;
    } else {
        char *end;
        if (!skip_text(&s, prefix) || *s < '0' || *s > '9')
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
        if (skip_text(at, ".reuse") || skip_text(at, ".U32") || skip_text(at, ".F32"))
            continue;
        if (skip_text(at, ".64"))
            o->wide = true;
        else if (skip_text(at, ".H0_H0"))
            o->half = 1;
        else if (skip_text(at, ".H1_H1") || skip_text(at, ".H1"))
            o->half = 2;
        else if ((*at)[1] == 'B' && (*at)[2] >= '0' && (*at)[2] <= '3')
            o->half = (uint8_t)(1 + (*at)[2] - '0'), *at += 3;
        else if (skip_text(at, ".X16"))
            o->scale = 16;
        else if (skip_text(at, ".X4"))
            o->scale = 4;
        else if (skip_text(at, ".X8"))
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
    return skip_text(at, "]");
}

static bool read_constant(const char **at, struct operand *o)
{
    if (!skip_text(at, "c[0x"))
        return false;
    o->bank = (uint8_t)(*(*at)++ - '0');
    return o->bank < BANKS && skip_text(at, "][") && read_sum(at, o, OPERAND_CONSTANT);
}

static bool read_address(const char **at, struct operand *o)
{
    struct operand descriptor = {0};
    if (skip_text(at, "desc[") && !read_sum(at, &descriptor, OPERAND_ADDRESS))
        return false;
    return skip_text(at, "[") && read_sum(at, o, OPERAND_ADDRESS);
}

static bool read_special(const char **at, struct operand *o)
{
    static const struct {
        const char *name;
        enum special what;
    } table[] = {{"SRZ", SPECIAL_ZERO},          {"SR_TID.X", SPECIAL_THREAD},
                 {"SR_CTAID.X", SPECIAL_BLOCK},  {"SR_LANEID", SPECIAL_LANE},
                 {"SR_CgaCtaId", SPECIAL_ZERO},  {"SR_TID.Y", SPECIAL_ZERO},
                 {"SR_LMEMHIOFF", SPECIAL_ZERO}, {"SR_CTAID.Y", SPECIAL_ZERO}};
    o->kind = OPERAND_SPECIAL;
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (skip_text(at, table[k].name)) {
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
        if (skip_text(at, table[k].name)) {
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

static bool read_predicate(const char **at, struct operand *o)
{
    const char *s = *at;
    o->inverted = skip_text(&s, "!");
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
    bar = skip_text(&s, "|");
    o->absolute = bar;
    if (!read_register(&s, o) && !read_constant(&s, o))
        return false;
    if (bar && (!skip_text(&s, "|") || !read_suffixes(&s, o)))
        return false;
    *at = s;
    return true;
}

static bool read_label(struct parser *p, const char **at, struct operand *o)
{
    size_t n;
    if (!skip_text(at, "`("))
        return false;
    n = strcspn(*at, ")");
    o->kind = OPERAND_LABEL;
    o->value = UINT32_MAX; /* not in this function: its beginning, as RET names it */
    for (uint32_t k = 0; k < p->labels; k++)
        if (strlen(p->label[k].name) == n && !strncmp(p->label[k].name, *at, n))
            o->value = p->label[k].index;
    *at += n + 1;
    return true;
}

static bool read_operand(struct parser *p, const char **at, struct operand *o)
{
    if (skip_text(at, "PR")) {
        o->kind = OPERAND_FILE;
        return true;
    }
    if (skip_text(at, "SB")) {
        o->kind = OPERAND_SCOREBOARD;
        o->index = (uint8_t)strtoul(*at, (char **)at, 10);
        return true;
    }
    if (**at == 'B' && (*at)[1] >= '0' && (*at)[1] <= '9') {
        o->kind = OPERAND_BARRIER;
        o->index = (uint8_t)strtoul(*at + 1, (char **)at, 10);
        return o->index < MAX_BARRIERS;
    }
    if (!strncmp(*at, "SR", 2))
        return read_special(at, o);
    return read_label(p, at, o) || read_predicate(at, o) || read_value(at, o) ||
           read_address(at, o) || read_number(at, o);
}

/* Operands are parted by commas, BRX's and RET's by blanks. */
static int read_operands(struct parser *p, const char *at, struct instruction *i)
{
    while (*at && *at != ';' && *at != '(') {
        while (*at == ' ' || *at == ',')
            at++;
        if (!*at || *at == ';' || *at == '(')
            break;
        if (i->operands == MAX_OPERANDS || !read_operand(p, &at, &i->op[i->operands]))
            return refuse(p, "an operand that is not known");
        i->operands++;
        if (*at && !strchr(" ,;", *at))
            return refuse(p, "an operand that is not known");
    }
    while (1u + i->outputs < i->operands && i->op[1 + i->outputs].kind == OPERAND_PREDICATE)
        i->outputs++;
    return 0;
}

/* ---- lines ---- */

/* "/ *0060* /" at the beginning of an instruction's line. */
static bool line_address(const char *line, uint32_t *ret)
{
    int used = 0;
    return sscanf(line, " /*%x*/%n", ret, &used) == 1 && used > 0;
}

static bool line_hex(const char *line, uint64_t *ret)
{
    const char *hex = line + strspn(line, " ");
    return sscanf(hex, "/* %lx", (unsigned long *)ret) == 1;
}

static bool line_label(const char *line, char *ret)
{
    size_t n = strcspn(line, ":\n");
    if ((line[0] != '.' && line[0] != '$') || line[n] != ':' || n >= LABEL_TEXT ||
        !strncmp(line, ".text", 5))
        return false;
    memcpy(ret, line, n);
    ret[n] = 0;
    return true;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

/* Where labels are, and how many instructions there are. */
static void find_labels(struct parser *p, const char *text)
{
    for (const char *line = text; *line; line = next_line(line)) {
        struct label l;
        uint32_t address;
        if (line_label(line, l.name)) {
            l.index = p->program->count;
            if (p->labels == p->room)
                p->label = realloc(p->label, (p->room = 2 * p->room + 64) * sizeof *p->label);
            p->label[p->labels++] = l;
        }
        p->program->count += line_address(line, &address);
    }
}

static int read_instruction(struct parser *p, const char *line, struct instruction *i)
{
    const char *at = strstr(line, "*/") + 2;
    size_t n;
    while (*at == ' ' || *at == '{')
        at++;
    i->text = at;
    if (skip_text(&at, "@") && !read_predicate(&at, &i->guard))
        return refuse(p, "a guard that is not known");
    while (*at == ' ')
        at++;
    n = strcspn(at, " ;");
    if (!opcode_find(i, at, n, p->why, p->why_room))
        return -1;
    if (read_operands(p, at + n, i) < 0)
        return -1;
    scoreboard_list(i);
    return 0;
}

/* Bits 41.. of the encoding's second word: stall 4, yield 1, scoreboard set when done 3, when read 3,
   scoreboards to wait for 6. */
static void read_control_code(struct instruction *i, uint64_t high)
{
    i->stall = high >> 41 & 15;
    i->writes = high >> 46 & 7;
    i->reads = high >> 49 & 7;
    i->waits = high >> 52 & 63;
}

static int read_lines(struct parser *p, const char *text)
{
    struct instruction *i = p->program->code - 1;
    for (const char *line = text; *line; line = next_line(line)) {
        uint32_t address;
        uint64_t hex;
        p->line = line;
        if (line_address(line, &address)) {
            (++i)->address = address;
            if (read_instruction(p, line, i) < 0)
                return -1;
        } else if (i >= p->program->code && line_hex(line, &hex)) {
            read_control_code(i, hex);
        }
    }
    return 0;
}

int program_parse(struct program *program, const char *text, char *why, size_t room)
{
    struct parser p = {.program = program, .why = why, .why_room = room};
    program->text = strdup(text);
    program->count = 0;
    find_labels(&p, program->text);
    program->code = calloc(program->count ? program->count : 1, sizeof *program->code);
    int r = program->count ? read_lines(&p, program->text) : -1;
    if (!program->count)
        snprintf(why, room, "no instruction in nvdisasm's text");
    free(p.label);
    return r;
}

void program_finish(struct program *p)
{
    for (uint32_t k = 0; k < BANKS; k++)
        free(p->bank[k]);
    free(p->code);
    free(p->text);
    *p = (struct program){0};
}
