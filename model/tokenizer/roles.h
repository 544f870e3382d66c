/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens with a role and those around texts. */
#pragma once
#include "model/tokenizer/settings.h"
#include "model/tokenizer/tokenizer.h"

/* Looks up their ids, after all tokens are read. The post-processor moves out of the settings. */
int roles_find(struct tokenizer *t, struct tokenizer_settings *s, struct error *e);
