/* SPDX-License-Identifier: Apache-2.0 */
/* The settings in tokenizer.json, tokenizer_config.json, special_tokens_map.json and added_tokens.json. */
#pragma once
#include "masks/base/error.h"
#include "model/tokenizer/added.h"
#include "model/tokenizer/post.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum special_name { NAME_UNKNOWN, NAME_BEGIN, NAME_END, NAME_PAD, NAME_MASK, NAME_COUNT };

/* Kinds of transformers' classes. */
enum tokenizer_class {
    CLASS_UNKNOWN, /* no file names one */
    CLASS_FILE,    /* runs tokenizer.json as it is */
    CLASS_BERT,    /* these replace parts of tokenizer.json by their own settings */
    CLASS_MPNET,
    CLASS_ROBERTA,
    CLASS_OTHER,
};

/* A token with a role, such as mask_token or one of additional_special_tokens. */
struct special_setting {
    char *text;
    struct added_flags flags;
    bool given; /* by a file; otherwise BERT's default */
};

struct tokenizer_settings {
    enum tokenizer_class class;
    bool from_json; /* a tokenizer.json of WordPiece was read */
    bool wordpiece; /* false: the settings of BERT's normalizer are ignored */
    bool clean, ideographs, lowercase, strip_accents;
    bool strip_given; /* false: accents are stripped if letters are lowered */
    uint32_t max_chars, max_length;
    struct special_setting special[NAME_COUNT]; /* "[UNK]" .. */
    struct special_setting *extra;
    uint32_t n_extra, extra_capacity;
    char *prefix;       /* "##" */
    struct post post;   /* if the file gives more than BERT's [CLS] A [SEP] B [SEP] */
    bool roberta_pairs; /* a post-processor that no file gives is RoBERTa's */
    int prefix_space,
        trims; /* add_prefix_space and trim_offsets of the config; -1: not given */
    bool
        cuts_left; /* truncation.direction of tokenizer.json, if the config has no truncation_side */
    json_t *decoder;   /* added_tokens_decoder of tokenizer_config.json, or null */
    json_t *added_map; /* added_tokens.json, or null */
};

struct tokenizer_settings settings_default(void);
/* Sets RoBERTa's names of special tokens that no file gives. */
void settings_name_roberta(struct tokenizer_settings *s);
/* Sets RoBERTa's settings that no file gives. */
void settings_roberta(struct tokenizer_settings *s);
/* Sets MPNet's names and post-processor, which no vocab.txt gives. */
void settings_mpnet(struct tokenizer_settings *s);
void settings_finish(struct tokenizer_settings *s);

/* The class in tokenizer_config.json, then that of config.json, which is refused if it is not supported, or of its
   model_type. */
int settings_take_class(struct tokenizer_settings *s, const json_t *config, struct error *e);
int settings_take_model(struct tokenizer_settings *s, const json_t *config, struct error *e);
/* Refuses a class that is not supported. */
int settings_check_class(const json_t *config, struct error *e);

/* Each function overwrites *s by the object's values and refuses unsupported ones by name. The first reads a
   tokenizer.json of WordPiece. */
int settings_take_json(struct tokenizer_settings *s, const json_t *tokenizer, struct error *e);
int settings_take_config(struct tokenizer_settings *s, const json_t *config, struct error *e);
int settings_take_special(struct tokenizer_settings *s, const json_t *map, struct error *e);
int settings_take_added(struct tokenizer_settings *s, const json_t *map, struct error *e);

/* Reads strip_accents. */
int settings_take_accents(struct tokenizer_settings *s, const json_t *from, struct error *e);
/* Reads lstrip, rstrip, single_word and normalized of an added token. */
int settings_take_flags(struct added_flags *ret, const json_t *token, struct error *e);
/* True if a file gives this token a role. */
bool settings_have_role(const struct tokenizer_settings *s, const char *text);
