/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of the sample's cases (tests/support/known/known.h): the same plan and text, compiled by the same NVRTC and run by the same machine,
   come to the same result. */
#pragma once
#include "runtime/artifact/artifact.h"
#include "tests/support/known/known.h"
#include "tests/support/sass_setup.h"

/* Key of NVRTC, the machine, the launching code and the judge. */
struct cache_key sample_common(void);
/* Key of the case's kernel file, which is passed to `see` with its text and without machine code. */
struct cache_key sample_key(const struct sass_case *c, const char *target,
                            void (*see)(const struct artifact *a));
