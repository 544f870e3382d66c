/* SPDX-License-Identifier: Apache-2.0 */
/* Results of tasks as JSON, the same from a command's --json and from the server. */
#pragma once
#include "masks/base/text.h"
#include "model/tasks/tasks.h"
#include <jansson.h>

/* The words of a text's gaps: {"masks": [{"token", "offset", "words": [{"id", "word", "text",
   "probability"}..]}..]}: "word" as the vocabulary has it, "text" as people read it. New reference. */
json_t *result_gaps(const struct engine *g, const struct task_batches *b,
                    const struct task_gaps *gaps, uint32_t text);

/* A text's labels by the classifier, in the form of its kind, except for choices (by the caller).
   New reference. */
json_t *result_labels(const struct engine *g, const struct task_batches *b,
                      const struct task_labels *l, uint32_t text);

/* A token as text; [ID] where the vocabulary has none; `buffer` then holds it. */
const char *result_token(const struct engine *g, uint32_t token_id, struct text *buffer);
/* A token as people read it, such as " ad" for the byte-level piece that begins with U+0120. */
const char *result_text(const struct engine *g, uint32_t token_id, struct text *buffer);
uint32_t result_best(const float *x, uint32_t n); /* the first of the largest */
