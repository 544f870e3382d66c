/* SPDX-License-Identifier: Apache-2.0 */
/* A small kernel for sm_90, with the templates' headers, opened on the emulated device. */
#pragma once
#include "runtime/device/emulated/emulated_text.h"
#include <stdbool.h>

/* Text that may include "cuda/hopper/device.h", in one piece with all that it includes. To be freed. */
char *hopper_text_flatten(const char *text, bool f16, bool rows_in_registers);
/* Such a text. Fails the test where it does not compile; emulated_close() frees it. */
struct emulated_text *hopper_text_open(const char *text, bool f16, bool rows_in_registers);
