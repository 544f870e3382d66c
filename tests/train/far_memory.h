/* SPDX-License-Identifier: Apache-2.0 */
/* A device whose memory the host cannot read: the CPU, but for its arrays. Their pages are protected unless a function of
   the backend runs. Any other access ends the program with SIGSEGV. */
#pragma once
#include "model/backend/backend.h"
#include "model/backend/training.h"

const struct backend *far_backend(void);
/* Arrays that exist. */
uint32_t far_arrays(void);
