/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "model/tokenizer/split/splitter.h"

/* An empty piece is left out. */
void pieces_add(struct pieces *p, struct span piece);
/* The pieces that Split makes of text->bytes[part). */
void behavior_cut(const struct splitter *s, const struct aligned *text, struct span part,
                  struct pieces *ret);
