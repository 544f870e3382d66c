/* SPDX-License-Identifier: Apache-2.0 */
/* Peak rates of one core of this CPU, measured by loops that do nothing else. */
#pragma once
#include "runtime/pipeline/calibration.h"

/* `target` is the best level of this CPU. Time is the thread's own, the least of several runs. */
struct ceilings ceilings_measure(const struct target *target);
