/* SPDX-License-Identifier: Apache-2.0 */
/* sentencepiece.bpe.model, the vocabulary of XLM-R where there is no tokenizer.json: a message of protocol buffers. Its pieces
   and its normalizer go into the pipeline of transformers' XLMRobertaTokenizer. */
#pragma once
#include "masks/base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SENTENCEPIECE_FILE "sentencepiece.bpe.model"

/* The tokenizer.json that transformers makes of such a file: pieces in fairseq's order, <s>, <pad>, </s>, <unk>, .., <mask>.
   Null with *e set; models of another kind and pieces of other types are refused by name. With `prefix` a text begins with
   a blank. */
json_t *sentencepiece_parse(const uint8_t *bytes, size_t size, bool prefix, struct error *e);

/* The same of the file in a model's folder, whose tokenizer_config.json or config.json must name XLM-R. */
json_t *sentencepiece_load(const char *folder, struct error *e);
