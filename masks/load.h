/* SPDX-License-Identifier: Apache-2.0 */
/* What a command's MASK argument names, and how it becomes a mask: a file by its suffix, else a
   gallery entry by its name, else an expression of the mask language (contract: mask inputs). */
#pragma once
#include "masks/mask.h"

struct mask_request {
    const char *name;   /* the MASK argument */
    uint32_t n;         /* -n, 0: not given */
    uint32_t heads;     /* --heads, 0: not given; repeats a one-head mask */
    int64_t layer;      /* --layer, -1: all */
    const char *tensor; /* --tensor, or null */
    bool dam, border;   /* --dam, --border */
    bool has_threshold, has_keep;
    double threshold, keep; /* active where > threshold; keep percent per head */
};

#define MASK_REQUEST_DEFAULTS .layer = -1

/* A new mask, or null with *e set; the text names the file or points at the column. FILE.mkb is
   read through `read_mkb`, which the runtime hands in because masks/ does not know kernel files
   (null: such a file is refused). */
typedef struct mask *(*mask_mkb_reader)(const char *path, struct error *e);
struct mask *mask_load(const struct mask_request *request, mask_mkb_reader read_mkb,
                       struct error *e);

/* An entry of the gallery. NAME with all its arguments, NAME(w=5, g=2), is the same mask as NAME. */
enum { GALLERY_MAX_ARGUMENTS = 4 };
struct gallery_entry {
    const char *name;
    struct {
        const char *name; /* null: no further argument */
        int value;
    } argument[GALLERY_MAX_ARGUMENTS];
    const char *text;  /* one line */
    const char *paper; /* null: of no paper */
};
extern const struct gallery_entry mask_gallery[]; /* ended by a null name */
