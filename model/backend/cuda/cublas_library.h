/* SPDX-License-Identifier: Apache-2.0 */
/* The library itself, looked for by name. */
#pragma once
#include "masks/base/error.h"
#include "model/backend/cuda/cublas_symbols.h"

struct cublas_library {
#define S(name, args) int(*name) args;
    CUBLAS_SYMBOLS(S)
#undef S
};

/* It stays loaded. ERROR_UNAVAILABLE with what to install. */
int cublas_library_open(struct cublas_library *ret, struct error *e);
