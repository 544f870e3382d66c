/* SPDX-License-Identifier: Apache-2.0 */
/* A test program of training on the mock GPU (tests/model/fake_gpu.c). */
#pragma once
#include "tests/model/device_subject.h"
#include "tests/train/subject.h"
#include <stdbool.h>

/* argv: the folder of the mock driver, and the mock of NCCL. Begins the program again, as the loader's path is read once. 0, or
   the exit code of the program. */
int mock_gpu_begin(int argc, char **argv);
/* Returns the exit code. */
int mock_gpu_end(int failed);

/* True if no object of the driver or of cuBLASLt is left. */
bool mock_gpu_holds_nothing(void);

/* A subject with dropout in attention, whose kernels the mock runs. */
enum { MOCK_HIDDEN = 32 };
void mock_gpu_subject(struct train_subject *s, uint32_t layers, enum element dtype);
