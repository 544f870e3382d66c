/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/learn/learn_options.h"
#include <stddef.h>

const char *const learn_kind_names[LEARN_KINDS] = {NULL, "p", "dam-u", "dam-s"};
