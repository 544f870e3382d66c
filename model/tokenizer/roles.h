/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens with a role, and the special tokens around texts. */
#pragma once
#include "model/tokenizer/settings.h"
#include "model/tokenizer/tokenizer.h"

/* Looks up their ids, after all tokens are read. Moves the post-processor from the settings to the tokenizer. */
int roles_find(struct tokenizer *t, struct tokenizer_settings *s, struct error *e);
