/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "model/engine/encoder_sources.h"

/* Elements that a source becomes, and their values; value: the tensor's, where it has one. */
uint64_t kept_count(const struct kept_source *s);
void kept_expand(const struct kept_source *s, const float *value, float *ret);
