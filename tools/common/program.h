/* SPDX-License-Identifier: Apache-2.0 */
/* Code shared by maskc and maskbert. A program is two tables, of its commands and of its options;
   the parser, --help, the map of the commands, and exit codes come of them. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The program's own: what its options were set to. As given; what was not given stays as it was. */
struct options;

enum value_kind {
    VALUE_FLAG,  /* bool */
    VALUE_TEXT,  /* const char *: lives as long as argv */
    VALUE_COUNT, /* uint32_t, a whole number from 1 */
    VALUE_WHOLE, /* uint64_t, a whole number from 0 */
    VALUE_REAL,  /* double, finite */
    VALUE_OWN,   /* what `read` makes of it */
};

/* Rows may share a name where commands mean different things by it. */
struct option_row {
    const char *name;
    char letter; /* short option, or 0 */
    const char *argument, *help;
    uint32_t group; /* of the program's titles; 0: none */
    enum value_kind kind;
    size_t at; /* in struct options */
    /* VALUE_OWN: sets what it means in *ret, or fails with one line that begins with the option. */
    int (*read)(const char *text, struct options *ret, struct error *e);
    size_t given;  /* of a bool in struct options to be set, or 0 */
    uint32_t most; /* VALUE_COUNT: the largest number taken; 0: INT32_MAX */
};

/* Rows of a table of options, a bit each. */
__extension__ typedef unsigned __int128 option_set;
#define OPTION_BIT(id) ((option_set)1 << (id))

struct command {
    const char *name;
    const char *arguments; /* "MASK", "FILE.mkb": for the usage line */
    const char *summary;   /* one line, for the map of the commands */
    const char *details;   /* a paragraph for --help, or null */
    option_set options;    /* rows that it takes */
    uint32_t min_arguments, max_arguments;
    int (*run)(const struct options *o); /* returns the exit code */
};

struct program {
    const char *name, *version;
    const char *purpose, *closing;  /* texts of the map, above and below the commands */
    const struct command *commands; /* ends with a null name */
    const struct option_row *rows;
    uint32_t n_rows;
    const char *const *titles; /* of groups from 1 on, or null */
    /* Where arguments go in struct options: const char *[], and how many there are, uint32_t. */
    size_t arguments_at, n_arguments_at;
};

enum { THREADS_MOST = 1024 }; /* of --threads: a launch uses no more */

/* The command that argv means, with *o filled in. Null where there is nothing to run: then *ret_code is the
   exit code, and what there was to say is said. Bad usage ends the program with one line and 2. */
const struct command *program_begin(const struct program *p, int argc, char **argv,
                                    struct options *o, int *ret_code);

/* The exit code after a command that returned `code`: a result that could not be written is not a success. */
int program_end(const struct program *p, int code);

/* Prints "NAME: TEXT" to stderr and returns the exit code of the error's kind. */
int program_fail(const struct program *p, const struct error *e);

/* Fills *ret from argv[1] on by the rows of the command. Ends the program: --help with 0, bad usage with 2. */
void options_parse(const struct program *p, const struct command *c, int argc, char **argv,
                   struct options *ret);

/* Digits alone, at most `most`; else false. */
bool whole_number(const char *text, uint64_t most, uint64_t *ret);

bool has_suffix(const char *name, const char *suffix);
