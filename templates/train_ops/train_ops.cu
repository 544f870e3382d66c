/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of training beside attention and the products; args.h lists the entries. */
#include "train_ops/arrays.h"
#include "train_ops/elements.h"
#include "train_ops/loss.h"
#include "train_ops/rows.h"
