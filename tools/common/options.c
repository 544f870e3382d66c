/* SPDX-License-Identifier: Apache-2.0 */
/* A row says where its value goes and how it is read; argp's own table is made from the rows that a command
   takes, so that help and parser cannot differ. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "tools/common/program.h"
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_BASE = 1000,       /* argp's key of row 0: above any character */
    OPTIONS_UNGROUPED = 10 /* a command with more options lists them by group */
};

struct input {
    const struct program *program;
    const struct command *command;
    struct options *options;
};

bool whole_number(const char *text, uint64_t most, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || v > most)
        return false;
    *ret = v;
    return true;
}

static void read_own(struct argp_state *state, const struct option_row *r, const char *text,
                     struct options *o)
{
    struct error e = {0};
    if (r->read(text, o, &e) < 0)
        argp_error(state, "%s", e.text);
}

static void read_value(struct argp_state *state, const struct option_row *r, char *text,
                       struct options *o)
{
    void *to = (char *)o + r->at;
    const uint32_t most = r->most ? r->most : INT32_MAX;
    uint64_t whole = 0;
    char *end;
    switch (r->kind) {
    case VALUE_FLAG:
        *(bool *)to = true;
        break;
    case VALUE_TEXT:
        *(const char **)to = text;
        break;
    case VALUE_COUNT:
        if (!whole_number(text, most, &whole) || !whole)
            argp_error(state, "--%s: '%s' is not a whole number from 1 to %u", r->name, text,
                       most);
        *(uint32_t *)to = (uint32_t)whole;
        break;
    case VALUE_WHOLE:
        if (!whole_number(text, UINT64_MAX, &whole))
            argp_error(state, "--%s: '%s' is not a whole number from 0", r->name, text);
        *(uint64_t *)to = whole;
        break;
    case VALUE_REAL:
        *(double *)to = strtod(text, &end);
        if (end == text || *end || !isfinite(*(double *)to))
            argp_error(state, "--%s: '%s' is not a number", r->name, text);
        break;
    case VALUE_OWN:
        read_own(state, r, text, o);
        break;
    }
    if (r->given)
        *(bool *)((char *)o + r->given) = true;
}

static bool takes(const struct command *c, uint32_t row)
{
    return c->options >> row & 1;
}

static int key_of(const struct program *p, uint32_t row)
{
    return p->rows[row].letter ? p->rows[row].letter : KEY_BASE + (int)row;
}

/* The option of the command whose name only begins like that of `row`, which the command does not take; or null.
   argp accepts abbreviations: it would take --keep for --keep-rows. */
static const char *longer_name(const struct program *p, const struct command *c, uint32_t row)
{
    const char *name = p->rows[row].name, *longer = NULL;
    for (uint32_t k = 0; k < p->n_rows; k++) {
        if (!takes(c, k) || strncmp(p->rows[k].name, name, strlen(name)) != 0)
            continue;
        if (k == row || !strcmp(p->rows[k].name, name))
            return NULL;
        longer = p->rows[k].name;
    }
    return longer;
}

static void add_argument(struct argp_state *state, const struct input *in, const char *text)
{
    const char **list =
        (const char **)(void *)((char *)in->options + in->program->arguments_at);
    uint32_t *count = (void *)((char *)in->options + in->program->n_arguments_at);
    if (*count == in->command->max_arguments)
        argp_error(state, "unexpected argument '%s'", text);
    list[(*count)++] = text;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    const struct input *in = state->input;
    const struct program *p = in->program;
    for (uint32_t k = 0; k < p->n_rows; k++)
        if (takes(in->command, k) && key == key_of(p, k)) {
            read_value(state, &p->rows[k], text, in->options);
            return 0;
        }
    if (key >= KEY_BASE + (int)p->n_rows && key < KEY_BASE + 2 * (int)p->n_rows) {
        const uint32_t row = (uint32_t)(key - KEY_BASE) - p->n_rows;
        argp_error(state, "--%s is not an option of %s, --%s is", p->rows[row].name,
                   in->command->name, longer_name(p, in->command, row));
    }
    if (key == ARGP_KEY_ARG) {
        add_argument(state, in, text);
        return 0;
    }
    const uint32_t *count = (const void *)((const char *)in->options + p->n_arguments_at);
    if (key == ARGP_KEY_END && *count < in->command->min_arguments)
        argp_error(state, "%s is missing", in->command->arguments);
    return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}

static bool is_grouped(const struct program *p, const struct command *c)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->n_rows; k++)
        count += takes(c, k);
    return count > OPTIONS_UNGROUPED;
}

/* Hidden rows of options that the command does not take but would accept as abbreviations. */
static void add_refused(const struct program *p, const struct command *c,
                        struct argp_option *at)
{
    for (uint32_t k = 0; k < p->n_rows; k++)
        if (!takes(c, k) && longer_name(p, c, k))
            *at++ = (struct argp_option){
                .name = p->rows[k].name,
                .key = KEY_BASE + (int)(p->n_rows + k),
                .arg = p->rows[k].argument,
                .flags = OPTION_HIDDEN | (p->rows[k].argument ? OPTION_ARG_OPTIONAL : 0)};
}

/* The rows that the command takes, under their groups' titles; a group's rows need not be neighbours. Caller
   frees. */
static struct argp_option *make_table(const struct program *p, const struct command *c)
{
    struct argp_option *table = memory_new(2 * (size_t)p->n_rows + 1, sizeof *table),
                       *at = table;
    const bool grouped = is_grouped(p, c);
    uint32_t titled = 1; /* a bit a group; group 0 has no title */
    for (uint32_t k = 0; k < p->n_rows; k++) {
        const struct option_row *r = &p->rows[k];
        if (!takes(c, k))
            continue;
        const uint32_t group = grouped ? r->group : 0;
        if (!(titled >> group & 1))
            *at++ = (struct argp_option){.doc = p->titles[group], .group = (int)group};
        titled |= 1u << group;
        *at++ =
            (struct argp_option){r->name, key_of(p, k), r->argument, 0, r->help, (int)group};
    }
    add_refused(p, c, at);
    return table;
}

void options_parse(const struct program *p, const struct command *c, int argc, char **argv,
                   struct options *ret)
{
    struct argp_option *table = make_table(p, c);
    struct text about = {0}, name = {0};
    text_add(&about, "%s.%s%s", c->summary, c->details ? "\v" : "",
             c->details ? c->details : "");
    text_add(&name, "%s %s", p->name, c->name);
    char *word = argv[0];
    argv[0] = (char *)(uintptr_t)text_get(&name);
    /* An empty table, unlike none, leaks in glibc. */
    struct argp argp = {c->options ? table : NULL, parse, c->arguments, text_get(&about)};
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &(struct input){p, c, ret});
    argv[0] = word;
    text_finish(&name);
    text_finish(&about);
    free(table);
}
