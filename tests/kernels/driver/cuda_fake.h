/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the device "cuda": the mock driver in the loader's path, and a kernel file to load. */
#pragma once
#include "tests/support/cuda_fixture.h"
#include "tests/support/fake_driver.h"

/* The names of a backward pass's units of code, ended by null, and a case whose code they are. */
extern const char *const cuda_units[];
extern const struct kernel_case cuda_example;

/* Whether the program was started by the next function. */
bool cuda_has_fake(void);
/* Runs the program again with `folder`, where the fake libcuda.so.1 is, in the loader's path. Returns, 1, where it cannot. */
int cuda_run_with_fake(char **argv, const char *folder);

struct fake *cuda_fake(void);
/* No call failed, and contexts, modules and memory are all given back. */
void cuda_must_hold_nothing(const struct fake *f);
/* cuda_example on `device`; null with *e set where that fails. */
struct maskc_kernel *cuda_load_example(const char *device, struct error *e);
