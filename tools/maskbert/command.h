/* SPDX-License-Identifier: Apache-2.0 */
/* A command of maskbert: a row of the table in main.c and a function that gets the parsed options and
   returns the program's exit code. */
#pragma once
#include "masks/base/error.h"
#include "tools/maskbert/options.h"

struct command {
    const char *name;
    const char *arguments; /* "DIR": for the usage line */
    const char *summary;   /* one line, for the map of the commands */
    const char *details;   /* a paragraph for --help, or null */
    uint64_t options;      /* OPTION_BITs */
    uint32_t n_arguments;  /* exactly so many */
    int (*run)(const struct options *o);
};

extern const struct command commands[]; /* ends with a null name */

int command_info(const struct options *o);
int command_convert(const struct options *o);
int command_init(const struct options *o);
int command_vocab(const struct options *o);
int command_tokenize(const struct options *o);
int command_embed(const struct options *o);
int command_fill_mask(const struct options *o);
int command_classify(const struct options *o);
int command_answer(const struct options *o);
int command_attention(const struct options *o);
int command_prune(const struct options *o);
int command_bench(const struct options *o);
int command_serve(const struct options *o);

struct weights;
/* What a user should know about the weights, on stderr. */
void notes_print(const struct weights *w, const char *folder);

/* Prints the error as the program prints all errors; its exit code. */
int command_fail(const struct error *e);
