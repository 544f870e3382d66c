/* SPDX-License-Identifier: Apache-2.0 */
/* Progress and result of pretrain for people, on stderr. */
#pragma once
#include "model/train/run/run.h"

/* Each step on a terminal's last line; elsewhere the lines that are due. */
void pretrain_progress(const struct run_progress *p);
void pretrain_say(const char *line);
/* Steps, tokens, time, losses, and what to do with the run. */
void pretrain_summary(const struct run_options *r, const struct run_result *result);
