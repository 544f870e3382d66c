/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the files against config.json: same names, same shapes, floating types, and nothing twice unless it
   is the same. */
#pragma once
#include "model/checkpoint/weights.h"

/* Sets w->tensor[..].data to its place in w->files. A tensor that is no parameter is noted and ignored; a
   parameter that no file has keeps null. */
int weights_match(struct weights *w, struct error *e);

/* Tied weights that the files have twice, and not the same, are not tied: c->tied becomes false, with a note, as transformers
   5 does. A decoder of another shape is noted and ignored. */
void weights_untie(struct weights *w, struct model_config *c);
