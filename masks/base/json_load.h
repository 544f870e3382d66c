/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of other programs, whose numbers may be beyond 64 bits. */
#pragma once
#include <jansson.h>
#include <stddef.h>

/* The largest number that stands for one beyond a double, as Python's Infinity. */
#define JSON_CLAMPED "9e307"

/* Files are read as they are; lines of a .jsonl may also hold NaN, Infinity, NUL and halves of surrogate pairs. */
enum json_source { JSON_FROM_FILE, JSON_FROM_LINES };

/* json_loadb() for files of other programs: an integer beyond 64 bits becomes the nearest double, a number beyond a
   double JSON_CLAMPED. Readers of a key check its range; all other keys are ignored. */
json_t *json_load_bytes(const char *bytes, size_t size, enum json_source source,
                        json_error_t *why);
