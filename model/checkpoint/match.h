/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the files against config.json: same names, same shapes, floating types, and nothing twice unless it
   is the same. */
#pragma once
#include "model/checkpoint/weights.h"

/* The tensor of the files with this parameter's name; null: there is none. */
const struct safetensor *weights_find_in_files(const struct weights *w, const char *name);
/* True if the files have the parameter, in its shape and of a floating type. */
bool weights_can_read(const struct weights *w, const struct parameter *p);

/* Sets w->tensor[..].data to its place in w->files. A tensor that is no parameter is noted, unless it is of the parts `left_out`, and
   ignored; a parameter that no file has keeps null. */
int weights_match(struct weights *w, uint32_t left_out, struct error *e);

/* Tied weights that the files have twice, and not the same, are not tied: c->tied becomes false, with a note, as transformers
   5 does. A decoder of another shape is noted and ignored. */
void weights_untie(struct weights *w, struct model_config *c);
