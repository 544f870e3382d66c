/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the writer of kernel files: the structured metadata values. */
#pragma once
#include "runtime/artifact/tables.h"
#include <jansson.h>

json_t *features_json(const struct features *f);
json_t *target_json(const struct artifact_target *t);
