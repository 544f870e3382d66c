/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's functions, from a library found at run time. */
#pragma once
#include "masks/base/error.h"
#include "model/comm/nccl/nccl_symbols.h"

struct nccl_library {
#define S(name, type, args) type(*name) args;
    NCCL_SYMBOLS(S)
#undef S
};

/* It stays loaded. ERROR_UNAVAILABLE with what to install. */
int nccl_library_open(struct nccl_library *ret, struct error *e);
