/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that change only on purpose. */
#pragma once
#include "masks/base/text.h"
#include <stdbool.h>

extern bool golden_update; /* --update: files are written instead */

/* The file must be the text; else the test fails with both. */
void golden_compare(const char *path, const struct text *text);
