/* SPDX-License-Identifier: Apache-2.0 */
/* From a command line to a command, and from what it returns to an exit code. */
#include "tools/common/program.h"
#include "tools/common/table.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_map(const struct program *p)
{
    struct table map = {0};
    struct text closing = {0};
    table_text_column(&map, "");
    table_text_column(&map, "");
    for (const struct command *c = p->commands; c->name; c++) {
        table_cell(&map, "  %s %s %s", p->name, c->name, c->arguments);
        table_cell(&map, "%s", c->summary);
    }
    printf("Usage: %s COMMAND ...\n%s\n\n", p->name, p->purpose);
    table_print(&map, TABLE_WIDTH);
    text_add(&closing, "\n%s\n", p->closing);
    lines_print(&closing, TABLE_WIDTH, 0);
}

static const struct command *find(const struct program *p, const char *name)
{
    for (const struct command *c = p->commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

/* A file that may not grow fails as a full disk does. No file that is opened gets the number of a closed standard
   stream, whose uses fail as before. */
static void begin_process(void)
{
    signal(SIGXFSZ, SIG_IGN);
    for (int k = STDIN_FILENO; k <= STDERR_FILENO; k++)
        if (fcntl(k, F_GETFD) < 0)
            open("/dev/null", k == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

const struct command *program_begin(const struct program *p, int argc, char **argv,
                                    struct options *o, int *ret_code)
{
    begin_process();
    const bool help = argc > 2 && !strcmp(argv[1], "help");
    const char *word = help ? argv[2] : argc > 1 ? argv[1] : "--help";
    const struct command *c = find(p, word);
    if (c && help)
        options_parse(p, c, 2, (char *[]){argv[2], "--help", NULL}, o); /* exits */
    if (c) {
        options_parse(p, c, argc - 1, argv + 1, o);
        return c;
    }
    *ret_code = 0;
    if (!strcmp(word, "--version") || !strcmp(word, "-V"))
        printf("%s %s\n", p->name, p->version);
    else if (!strcmp(word, "--help") || !strcmp(word, "-?") || !strcmp(word, "help"))
        print_map(p);
    else {
        fprintf(stderr, "%s: '%s' is not a command; %s alone lists them\n", p->name, word,
                p->name);
        *ret_code = 2;
    }
    *ret_code = program_end(p, *ret_code);
    return NULL;
}

int program_end(const struct program *p, int code)
{
    if ((fflush(stdout) || ferror(stdout)) && code == 0) {
        fprintf(stderr, "%s: cannot write to stdout\n", p->name);
        return 2;
    }
    return code;
}

int program_fail(const struct program *p, const struct error *e)
{
    fprintf(stderr, "%s: %s\n", p->name, e->text);
    return e->kind == ERROR_FALSE ? 1 : e->kind == ERROR_UNAVAILABLE ? 3 : 2;
}

bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);
    return n > k && !strcmp(name + n - k, suffix);
}
