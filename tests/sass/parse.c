/* SPDX-License-Identifier: Apache-2.0 */
/* nvdisasm's text of one function to instructions. A line is
       / *0060* /   @!P0 IADD3 R4, P1, R2, -R3, RZ ;   / * 0x... * /
   followed by a line with the second half of the encoding, whose upper bits are the control code. */
#include "tests/sass/hopper/hopper.h"
#include "tests/sass/operand.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

struct parser {
    struct program *program;
    struct labels labels;
    const char *line; /* for errors */
    char *why;
    size_t why_capacity;
};

static int refuse(struct parser *p, const char *what)
{
    snprintf(p->why, p->why_capacity, "%s: %.*s", what, (int)strcspn(p->line, "\n"), p->line);
    return -1;
}

/* Operands are parted by commas, BRX's and RET's by blanks. */
static int read_operands(struct parser *p, const char *at, struct instruction *i)
{
    while (*at && *at != ';' && *at != '(') {
        while (*at == ' ' || *at == ',')
            at++;
        if (!*at || *at == ';' || *at == '(')
            break;
        if (i->operands == MAX_OPERANDS || !operand_read(&at, &p->labels, &i->op[i->operands]))
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

/* "/ *0060* /" at the beginning of an instruction's line. Not by sscanf, which would measure the whole text. */
static bool line_address(const char *line, uint32_t *ret)
{
    const char *at = line + strspn(line, " \t");
    char *end;
    if (strncmp(at, "/*", 2) || !isxdigit((unsigned char)at[2]))
        return false;
    *ret = (uint32_t)strtoul(at + 2, &end, 16);
    return !strncmp(end, "*/", 2);
}

static bool line_hex(const char *line, uint64_t *ret)
{
    const char *hex = line + strspn(line, " \t");
    if (strncmp(hex, "/* 0x", 5))
        return false;
    *ret = strtoull(hex + 3, NULL, 16);
    return true;
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

static void add_label(struct labels *to, struct label l)
{
    if (to->count == to->capacity)
        to->label =
            realloc(to->label, (to->capacity = 2 * to->capacity + 64) * sizeof *to->label);
    to->label[to->count++] = l;
}

/* Where labels are, and how many instructions there are. */
static void find_labels(struct parser *p, const char *text)
{
    for (const char *line = text; *line; line = next_line(line)) {
        struct label l;
        uint32_t address;
        if (line_label(line, l.name)) {
            l.index = p->program->count;
            add_label(&p->labels, l);
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
    if (text_skip(&at, "@") && !predicate_read(&at, &i->guard))
        return refuse(p, "a guard that is not known");
    while (*at == ' ')
        at++;
    n = strcspn(at, " ;");
    if (!opcode_find(i, at, n, p->why, p->why_capacity))
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
    i->writes = high >> 46 & 7;
    i->reads = high >> 49 & 7;
    i->waits = high >> 52 & 63;
    i->stall = high >> 41 & 15;
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
            p->program->apart |= runs_apart(i);
        } else if (i >= p->program->code && line_hex(line, &hex)) {
            read_control_code(i, hex);
        }
    }
    return 0;
}

int program_parse(struct program *program, const char *text, char *why, size_t capacity)
{
    struct parser p = {.program = program, .why = why, .why_capacity = capacity};
    program->text = strdup(text);
    program->count = 0;
    find_labels(&p, program->text);
    program->code = calloc(program->count ? program->count : 1, sizeof *program->code);
    int r = program->count ? read_lines(&p, program->text) : -1;
    if (!program->count)
        snprintf(why, capacity, "no instruction in nvdisasm's text");
    free(p.labels.label);
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
