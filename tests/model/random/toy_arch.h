/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "model/arch/arch.h"

extern const struct arch arch_toy; /* model_type "toy" */
