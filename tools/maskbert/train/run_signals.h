/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end a run: it saves and the command exits with EXIT_INTERRUPTED. */
#pragma once
#include <stdbool.h>

enum { EXIT_INTERRUPTED = 4 };

void run_hold_signals(void); /* before the first thread begins */
bool run_asked_to_stop(void);
