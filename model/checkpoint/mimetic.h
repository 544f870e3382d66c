/* SPDX-License-Identifier: Apache-2.0 */
/* A start for short trainings: attention that finds equal words and near ones from the first step, after "Mimetic
   Initialization of Self-Attention Layers" (Trockman and Kolter 2023). In each head the key's weights equal the query's, so a
   token's score is highest with tokens like itself; positions are sinusoids, so tokens that are near are alike.
   The paper adds noise to a multiple of the identity, does the same to value and output, and has the sinusoids of
   "Attention Is All You Need"; here the product is that of equal random matrices, value and output stay random, and
   the longest wave is 200 pi positions. */
#pragma once
#include "model/checkpoint/weights.h"

/* Changes weights that weights_initialise() made with this deviation, of an architecture with a table of positions and
   separate matrices of queries and keys. */
void weights_make_mimetic(struct weights *w, double deviation);
