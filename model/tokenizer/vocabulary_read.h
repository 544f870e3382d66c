/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "masks/base/error.h"
#include "model/tokenizer/tokenizer.h"
#include <jansson.h>

/* Reads {TOKEN: NUMBER}; `name` is used in error messages. */
int vocabulary_read(struct vocabulary *ret, const json_t *object, const char *name,
                    struct error *e);
/* RoBERTa's older files. */
int bpe_read_files(struct tokenizer *t, const json_t *vocabulary, const char *merges,
                   size_t size, struct error *e);
