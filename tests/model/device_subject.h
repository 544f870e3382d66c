/* SPDX-License-Identifier: Apache-2.0 */
/* Engines on the device that a run of device_test is about; and where that is the mock GPU, the
   kernels it runs: in the emulation, those of one engine at a time. */
#pragma once
#include "tests/model/fake_gpu.h"
#include "tests/model/random/random_bert.h"
#include <stdbool.h>

extern const char *device_name;      /* "emulated", "cuda" */
extern struct fake_gpu *device_fake; /* null: a real one, or none */
extern bool device_idle;             /* the fake's kernels are launched and do nothing */

/* The random model of tests/model/random/random_bert.h, loaded; here, or on another device. */
struct engine *device_load(const char *mask, const char *transform, enum element dtype,
                           uint32_t parts);
struct engine *device_load_on(const char *on, const char *mask, const char *transform,
                              enum element dtype, uint32_t parts);

/* Kernels that the fake runs from here on: of a model to be loaded, which runs some when it trains; of its attention. */
void device_use_ops(enum element dtype, uint32_t hidden, bool trains);
void device_use_attention(const struct engine *g);

/* The fake where it is in the loader's path, or null. */
struct fake_gpu *device_find_fake(void);
/* From here on it runs kernels; false where it is not there. */
bool device_begin_fake(void);
void device_end_fake(void);

/* A case on the device against float64, thrice where batches are recorded. */
void device_check(const struct bert_case *c, enum element dtype, double worst, double rms);

/* Runs the tests of the mock GPU (device_fake_test.c). Returns the number of failures. */
int device_run_fake_tests(void);
