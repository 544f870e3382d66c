/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the rows of `routes` name: whether a path exists, the longest reply, and the replies. See struct route. */
#pragma once
#include "tools/maskbert/serve/route.h"

const char *vectors_missing(const struct serving *s);
size_t vectors_bytes(const struct serving *s, const struct request *r);
int vectors_run(struct serving *s, const struct task_batches *b, struct request *first,
                struct error *e);
size_t openai_bytes(const struct serving *s, const struct request *r);
int openai_run(struct serving *s, const struct task_batches *b, struct request *first,
               struct error *e);

const char *words_missing(const struct serving *s);
size_t words_bytes(const struct serving *s, const struct request *r);
int words_run(struct serving *s, const struct task_batches *b, struct request *first,
              struct error *e);

const char *labels_missing(const struct serving *s);
size_t labels_bytes(const struct serving *s, const struct request *r);
int labels_run(struct serving *s, const struct task_batches *b, struct request *first,
               struct error *e);

const char *ranking_missing(const struct serving *s);
size_t ranking_bytes(const struct serving *s, const struct request *r);
int ranking_run(struct serving *s, const struct task_batches *b, struct request *first,
                struct error *e);

/* Tokens of the request's texts. */
uint64_t request_tokens(const struct request *r);
/* The name of the model as the reply repeats it, a new reference. */
json_t *request_model(const struct serving *s, const struct request *r);
