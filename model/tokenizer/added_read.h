/* SPDX-License-Identifier: Apache-2.0 */
/* The files that list added tokens. */
#pragma once
#include "model/tokenizer/settings.h"
#include "model/tokenizer/tokenizer.h"

/* added_tokens of tokenizer.json: a list of objects with an id. */
int added_read_list(struct tokenizer *t, const json_t *list, struct error *e);
/* Adds the tokens of the other files: added_tokens_decoder of tokenizer_config.json or else added_tokens.json, then the
   tokens with a role. */
int added_read_settings(struct tokenizer *t, const struct tokenizer_settings *s,
                        struct error *e);
