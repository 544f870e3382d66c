/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the mask that a command's MASK argument names: a file with a known suffix (.mask, .npy, .npz, .safetensors,
   DuoAttention's .tsv, kernel files .mkb), else a gallery entry, else an expression of the mask language. masks/README.md
   describes the formats. */
#pragma once
#include "masks/mask.h"
#include "masks/request.h"

/* Returns a new mask, or null with *e set; the message names the file or points at the column. FILE.mkb is read through
   `read_mkb`, which the runtime supplies because masks/ cannot read kernel files (null: such files are refused). */
typedef struct mask *(*mask_mkb_reader)(const char *path, struct error *e);
struct mask *mask_load(const struct mask_request *request, mask_mkb_reader read_mkb,
                       struct error *e);

/* The same from a mask in memory, which is taken over: one layer, hops, length, order and heads of the request. Null with
   *e set, or as it was given. */
struct mask *mask_shape(struct mask *m, const struct mask_request *request, struct error *e);
