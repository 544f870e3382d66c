/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON body of a request: one table of keys for each form. */
#pragma once
#include "tools/maskbert/serve/route.h"

struct body_key {
    const char *name;
    /* Reads a value that is not null; false with a reply that refuses it. */
    bool (*read)(const struct serving *s, struct request *r, const struct body_key *key,
                 json_t *value);
    size_t at; /* offset in struct request_options of what `read` sets */
    bool required;
};

/* Tables end with a null name. */
extern const struct body_key body_of_texts[];   /* {"inputs", "truncate"} */
extern const struct body_key body_of_vectors[]; /* the same and "normalize" */
extern const struct body_key body_of_openai[];  /* OpenAI's embeddings */
extern const struct body_key body_of_ranking[]; /* {"query", "texts" or "documents", ..} */

/* Reads the body by the table of its route; false with a reply that refuses it. */
bool body_read(const struct serving *s, struct request *r);
