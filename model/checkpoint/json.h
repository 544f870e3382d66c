/* SPDX-License-Identifier: Apache-2.0 */
/* JSON files of a model's folder, read with jansson, and typed access to their keys. A key that is
   missing or null leaves *ret as it is; one of another type is an error that names it. */
#pragma once
#include "masks/base/error.h"
#include "masks/base/json_load.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* "FOLDER/NAME"; caller frees. */
char *path_join(const char *folder, const char *name);
bool path_exists(const char *folder, const char *name);

/* Bytes of a text's beginning for a message: at most `most`, above 3, in whole characters. */
size_t json_prefix(const char *text, size_t most);

enum { JSON_SHOWN_BYTES = 64 };
/* At most 60 bytes of a JSON text for a message: whole characters, control characters as '?'. Returns ret. */
const char *json_shown(const char *text, char ret[JSON_SHOWN_BYTES]);

/* An object, or null with *e set. Both give 'where' to the messages. */
json_t *json_parse(const char *bytes, size_t size, const char *where, struct error *e);
json_t *json_read(const char *folder, const char *name, struct error *e);
/* A missing file is no error: *ret is null. */
int json_read_optional(const char *folder, const char *name, json_t **ret, struct error *e);
/* FOLDER/NAME with the text, which a line's end closes. */
int json_write_line(const char *folder, const char *name, const char *json, struct error *e);

int json_take_bool(const json_t *object, const char *key, bool *ret, struct error *e);
int json_take_u32(const json_t *object, const char *key, uint32_t *ret, struct error *e);
/* A limit in tokens: 0, no limit, if the number is below 1 or beyond 2^24. */
int json_take_limit(const json_t *object, const char *key, uint32_t *ret, struct error *e);
int json_take_real(const json_t *object, const char *key, double *ret, struct error *e);
/* The text lives as long as the object. */
int json_take_text(const json_t *object, const char *key, const char **ret, struct error *e);
