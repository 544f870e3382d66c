/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of maskbert and what they share. Each is a row of the table in main.c and a function that gets
   the parsed options and returns the exit code. */
#pragma once
#include "masks/base/error.h"
#include "tools/maskbert/options.h"

int command_info(const struct options *o);
int command_convert(const struct options *o);
int command_init(const struct options *o);
int command_vocab(const struct options *o);
int command_prep(const struct options *o);
int command_pretrain(const struct options *o);
int command_finetune(const struct options *o);
int command_eval(const struct options *o);
int command_importance(const struct options *o);
int command_score(const struct options *o);
int command_plot(const struct options *o);
int command_tokenize(const struct options *o);
int command_embed(const struct options *o);
int command_fill_mask(const struct options *o);
int command_classify(const struct options *o);
int command_answer(const struct options *o);
int command_attention(const struct options *o);
int command_prune(const struct options *o);
int command_memory(const struct options *o);
int command_bench(const struct options *o);
int command_serve(const struct options *o);

struct weights;
/* Prints what a user should know about the weights to stderr. */
void notes_print(const struct weights *w, const char *folder);

/* Prints the error; returns its exit code. */
int command_fail(const struct error *e);
