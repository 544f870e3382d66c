/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the writer of kernel files: the structured metadata values. */
#pragma once
#include "runtime/artifact/tables.h"
#include <jansson.h>

json_t *kernel_request_json(const struct kernel_request *f);
json_t *target_json(const struct artifact_target *t);
