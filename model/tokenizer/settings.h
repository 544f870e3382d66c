/* SPDX-License-Identifier: Apache-2.0 */
/* What tokenizer.json, tokenizer_config.json and special_tokens_map.json say. */
#pragma once
#include "masks/base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum special_name { NAME_UNKNOWN, NAME_BEGIN, NAME_END, NAME_PAD, NAME_MASK, NAME_COUNT };

struct tokenizer_settings {
    bool clean, ideographs, lowercase, strip_accents;
    bool strip_given; /* false: accents are stripped where letters are lowered */
    uint32_t max_chars, max_length;
    char *special[NAME_COUNT]; /* "[UNK]" .. */
    char *prefix;              /* "##" */
};

struct tokenizer_settings settings_default(void);
void settings_finish(struct tokenizer_settings *s);

/* Each reads what the object says over the values of *s. What is not supported is refused by name. */
int settings_take_json(struct tokenizer_settings *s, const json_t *tokenizer, struct error *e);
int settings_take_config(struct tokenizer_settings *s, const json_t *config, struct error *e);
int settings_take_special(struct tokenizer_settings *s, const json_t *map, struct error *e);
