/* SPDX-License-Identifier: Apache-2.0 */
/* See mutate.h. */
#include "tests/sass/mutate.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_DIGIT = 1,
    MAX_REGISTERS = 16
}; /* bits 52 .. 57 are the second and part of the third digit */

/* ---- lines ---- */

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? end + 1 : at + strlen(at);
}

static bool is_instruction(const char *line, struct line *ret)
{
    unsigned address;
    int used = 0;
    if (sscanf(line, " /*%x*/%n", &address, &used) != 1 || !used)
        return false;
    ret->at = line + used;
    ret->at += strspn(ret->at, " ");
    ret->length = (uint32_t)strcspn(ret->at, ";");
    ret->code = strstr(next_line(line), "/* 0x") + strlen("/* 0x");
    ret->ran = ret->needed = false;
    return true;
}

bool listing_find(struct listing *ret, const char *text, const char *entry)
{
    char begin[80];
    struct line l;
    snprintf(begin, sizeof begin, "\n.text.%s:", entry);
    const char *from = strstr(text, begin);
    *ret = (struct listing){.count = 0};
    if (!from)
        return false;
    snprintf(ret->entry, sizeof ret->entry, "%s", entry);
    for (const char *at = from + 1; *at && strncmp(at, "//-----", 7); at = next_line(at)) {
        if (!is_instruction(at, &l))
            continue;
        ret->line = realloc(ret->line, (ret->count + 1) * sizeof *ret->line);
        ret->line[ret->count++] = l;
    }
    return true;
}

void listing_finish(struct listing *l)
{
    free(l->line);
    l->line = NULL;
}

/* ---- what can be changed ---- */

static bool contains(const struct line *l, const char *what)
{
    const char *at = strstr(l->at, what);
    return at && at < l->at + l->length;
}

/* Registers of the line: where each number begins. Not those of 64-bit descriptors and addresses' uniform parts. */
static uint32_t registers(const struct line *l, const char **ret)
{
    uint32_t count = 0;
    const char *end = l->at + l->length;
    for (const char *at = strpbrk(l->at, " ,"); at && at < end && count < MAX_REGISTERS; at++) {
        const bool alone = strchr(" ,[-|~+", at[-1]) != NULL;
        if (alone && at[0] == 'R' && at[1] >= '0' && at[1] <= '9')
            ret[count++] = at + 1;
    }
    return count;
}

/* Bits 52 .. 57 of the control code: the third digit and half of the second. */
static uint32_t waits(const struct line *l)
{
    const char digits[] = {l->code[1], l->code[2], 0};
    return (uint32_t)strtoul(digits, NULL, 16) & 63;
}

bool mutate_can(const struct line *l, enum mutation kind)
{
    const char *at[MAX_REGISTERS];
    switch (kind) {
    case MUTATE_BARRIER:
        return l->needed && contains(l, "BAR.SYNC");
    case MUTATE_COPY_WAIT:
        return contains(l, "DEPBAR");
    case MUTATE_SCOREBOARD:
        return l->needed && waits(l) != 0;
    case MUTATE_GUARD:
        return l->at[0] == '@' && !contains(l, "PT ");
    case MUTATE_REGISTER:
        return registers(l, at) > 0;
    case MUTATE_FENCE:
        return contains(l, "FENCE.VIEW") || contains(l, "WARPGROUP.ARRIVE");
    case MUTATE_ARRIVAL:
        return contains(l, "SYNCS.ARRIVE");
    case MUTATE_PHASE:
        return contains(l, "SYNCS.PHASECHK");
    case MUTATE_BULK:
        return contains(l, "UTMA") || contains(l, "UBLKCP") || contains(l, "SYNCS.EXCH");
    case MUTATE_TRANSPOSE:
        return contains(l, ".tnspB");
    }
    return false;
}

/* ---- changes ---- */

/* The text with `length` bytes at `at` replaced. */
static char *replace(const char *text, const char *at, size_t length, const char *by)
{
    const size_t before = (size_t)(at - text), size = strlen(text) + strlen(by) + 1;
    char *to = malloc(size);
    snprintf(to, size, "%.*s%s%s", (int)before, text, by, at + length);
    return to;
}

static char *turn_guard(const char *text, const struct line *l)
{
    const bool inverted = l->at[1] == '!';
    return replace(text, l->at, inverted ? 2 : 1, inverted ? "@" : "@!");
}

static char *next_register(const char *text, const struct line *l, uint32_t which)
{
    const char *at[MAX_REGISTERS];
    char *end, number[32];
    const uint32_t count = registers(l, at);
    const char *one = at[which % count];
    const unsigned long value = strtoul(one, &end, 10);
    snprintf(number, sizeof number, "%lu", value < 250 ? value + 1 : value - 1);
    return replace(text, one, (size_t)(end - one), number);
}

static char *wait_for_none(const char *text, const struct line *l)
{
    char digits[4] = {l->code[1], l->code[2], 0};
    const unsigned long both = strtoul(digits, NULL, 16);
    snprintf(digits, sizeof digits, "%02lx", both & 0xc0);
    return replace(text, l->code + 1, 2, digits);
}

/* "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, ..." sets P0. */
static char *end_phase(const char *text, const struct line *l)
{
    char to[80];
    const char *predicate = strstr(l->at, " P");
    snprintf(to, sizeof to, "PLOP3.LUT %.2s, PT, PT, PT, PT, 0x80, 0x0 ", predicate + 1);
    return replace(text, l->at, l->length, to);
}

char *mutate(const char *text, const struct line *l, enum mutation kind, uint32_t which,
             char *name, size_t capacity)
{
    const char *address = l->at;
    while (address[-1] != '\n')
        address--;
    address += strspn(address, " ");
    snprintf(name, capacity, "%.*s", (int)(l->at + l->length - address), address);
    switch (kind) {
    case MUTATE_BARRIER:
    case MUTATE_COPY_WAIT:
    case MUTATE_FENCE:
    case MUTATE_ARRIVAL:
    case MUTATE_BULK:
        return replace(text, l->at, l->length, "NOP ");
    case MUTATE_PHASE:
        return end_phase(text, l);
    case MUTATE_TRANSPOSE:
        return replace(text, strstr(l->at, ".tnspB"), strlen(".tnspB"), "");
    case MUTATE_SCOREBOARD:
        return wait_for_none(text, l);
    case MUTATE_GUARD:
        return turn_guard(text, l);
    case MUTATE_REGISTER:
        return next_register(text, l, which);
    }
    return NULL;
}
