/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people. */
#pragma once
#include "model/train/run/run_setup.h"

void run_say(const struct run *r, const char *line);
/* What the run begins with. */
void run_say_begin(const struct run *r);
