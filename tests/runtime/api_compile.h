/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel files by maskc.h, compiled for this machine's CPU into a cache of the test's own. */
#pragma once
#include "runtime/maskc.h"

/* The cache's folder, from api_set_up on. */
extern char api_cache[];
/* cmocka's set up and tear down of a group: the folder is made, and removed. */
int api_set_up(void **state);
int api_tear_down(void **state);

/* Both fail the test where the mask cannot be compiled. */
struct maskc_bytes api_compile(const char *mask, struct maskc_options o);
/* Loaded on the CPU, of default options, from the user's cache: no group has to be set up. */
struct maskc_kernel *api_kernel(const char *mask, uint32_t n, uint32_t heads);
