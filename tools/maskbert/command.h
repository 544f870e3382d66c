/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of maskbert: rows of the table in main.c, functions that get the parsed options and return
   the program's exit code; and what they share. */
#pragma once
#include "masks/base/error.h"
#include "tools/maskbert/options.h"

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
