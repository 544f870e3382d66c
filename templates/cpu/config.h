/* SPDX-License-Identifier: Apache-2.0 */
/* Specialisation of this kernel: the numbers of the kernel config, with defaults for missing ones. */
#ifndef MASKC_CPU_CONFIG_H
#define MASKC_CPU_CONFIG_H

#include "abi.h"
#ifndef PLAN_HEADER /* set to "cpu/kernel_config_default.h" to look at this text alone */
#define PLAN_HEADER "kernel_config.h"
#endif
#include PLAN_HEADER
#include "cpu/sizes.h"
#ifndef MATRIX /* 1: this kernel's dense work is the matrix unit's */
#define MATRIX 0
#endif
#ifndef DOTS /* 1: which makes dot products of vectors, and has no tiles */
#define DOTS 0
#endif
#ifndef GROUPED /* 1: fewer key than query heads */
#define GROUPED 0
#endif
#ifndef RECTANGULAR /* 1: another number of keys than of queries */
#define RECTANGULAR 0
#endif
#ifndef BIAS /* enum abi_bias: an array X beside the mask, learnt */
#define BIAS 0
#endif

#endif
