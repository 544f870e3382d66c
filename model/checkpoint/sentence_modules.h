/* SPDX-License-Identifier: Apache-2.0 */
/* modules.json of a sentence-transformers folder, and the files of its modules. */
#pragma once
#include "model/checkpoint/sentence.h"
#include <jansson.h>

/* Fills in pooling, step, normalize and excludes_prompt. The order must be Transformer, Pooling and then any of Dense and
   Normalize. */
int sentence_modules_read(const char *folder, struct sentence_settings *s, struct error *e);
/* Checks that a module's config.json, if it names its input and output, names the sentence vector. 0, or -1 with *e set. */
int sentence_names_check(const json_t *config, struct error *e);
