/* SPDX-License-Identifier: Apache-2.0 */
/* What the files hold against what config.json asks for: same name, same shape, a floating type, nothing
   twice unless it is the same. */
#pragma once
#include "model/checkpoint/weights.h"

/* Gives w->tensor[..].data its place in w->files; what is nobody's is noted and left out. A tensor that no
   file has keeps its null. */
int weights_match(struct weights *w, struct error *e);
