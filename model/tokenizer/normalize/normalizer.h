/* SPDX-License-Identifier: Apache-2.0 */
/* The normalizers of tokenizer.json. */
#pragma once
#include "masks/base/error.h"
#include "model/tokenizer/base/aligned.h"
#include "model/tokenizer/normalize/charsmap.h"
#include "model/tokenizer/normalize/expression.h"
#include "model/tokenizer/normalize/forms.h"
#include <jansson.h>

enum normalizer_kind {
    NORMALIZER_FORM,
    NORMALIZER_LOWERCASE,
    NORMALIZER_TRIM,
    NORMALIZER_PREPEND,
    NORMALIZER_REPLACE,
    NORMALIZER_CHARSMAP,
};

struct normalizer {
    enum normalizer_kind kind;
    enum unicode_form form;
    bool left, right; /* of NORMALIZER_TRIM */
    struct expression expression;
    char *content; /* of NORMALIZER_PREPEND and NORMALIZER_REPLACE */
    struct charsmap charsmap;
};

struct normalizers { /* zeroed: none */
    struct normalizer *list;
    uint32_t count, capacity;
};

/* json is null or a normalizer, possibly a Sequence of them. Other types are refused by name. */
int normalizers_read(struct normalizers *ret, const json_t *json, struct error *e);
void normalizers_finish(struct normalizers *n);

/* Memory that is kept from call to call; zeroed before the first. */
struct normalizing {
    struct aligned text, other;
    struct changes changes;
};

void normalizing_finish(struct normalizing *m);
/* Normalises m->text. */
void normalizers_run(const struct normalizers *n, struct normalizing *m);
