/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the mask that a command's MASK argument names: a file by its suffix, else a gallery entry
   by its name, else an expression of the mask language (contract: mask inputs). */
#pragma once
#include "masks/mask.h"
#include "masks/request.h"

/* A new mask, or null with *e set; the text names the file or points at the column. FILE.mkb is
   read through `read_mkb`, which the runtime hands in because masks/ does not know kernel files
   (null: such a file is refused). */
typedef struct mask *(*mask_mkb_reader)(const char *path, struct error *e);
struct mask *mask_load(const struct mask_request *request, mask_mkb_reader read_mkb,
                       struct error *e);
