/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of encoders with rotated queries and keys: kinds of layers, angles, how classifiers pool. */
#pragma once
#include "model/checkpoint/config.h"

int config_take_rotary(const json_t *json, struct model_config *c, struct error *e);
