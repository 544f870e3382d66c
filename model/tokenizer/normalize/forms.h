/* SPDX-License-Identifier: Apache-2.0 */
/* Unicode's normalisation forms as the library tokenizers has them: its tables are older than utf8proc's. */
#pragma once
#include "model/tokenizer/base/aligned.h"

enum unicode_form { FORM_NFD, FORM_NFKD, FORM_NFC, FORM_NFKC };

/* Appends the characters of text->bytes[0, size) in that form to *ret. */
void form_changes(enum unicode_form form, const struct aligned *text, struct changes *ret);
/* True if the text is known to be in this form: no character of it is beyond U+00BF, or with NFC U+02FF. */
bool form_holds(enum unicode_form form, const struct aligned *text);
