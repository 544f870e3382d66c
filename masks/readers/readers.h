/* SPDX-License-Identifier: Apache-2.0 */
/* From arrays in files to masks: dense masks (booleans, integers, floats with a threshold or a
   share to keep) and the parameters of a differentiable attention mask. */
#pragma once
#include "masks/importance.h"
#include "masks/mask.h"
#include "masks/npy.h"
#include "masks/request.h"

/* An array in a file, .npy or one tensor of a .safetensors; `array.data` points into `file`. */
struct array_file {
    struct file file;
    struct npy array;
    char *name; /* for messages: the path, and the tensor where it was chosen; owned */
    char *dam;  /* how a mask was learned, as maskbert's files say: "dam-s"; or null; owned */
};

/* tensor may be null: the only one of the file. */
int array_open(const char *path, const char *tensor, struct array_file *ret, struct error *e);
void array_close(struct array_file *a); /* a zeroed one is fine */

/* An array [n,n], [H,n,n] or [L,H,n,n]; what is none is refused, in the words of a command or, `in_text`, of file()
   of the mask language. `name` is for messages. */
struct array_dims {
    uint64_t layers, heads;
    uint32_t n;
};
int array_dims(const struct npy *a, const char *name, bool in_text, struct array_dims *ret,
               struct error *e);

/* [n,n], [H,n,n] or [L,H,n,n]; request: has_threshold, threshold, has_keep, keep, name. Length and
   heads are the array's: the caller crops. */
struct mask *dense_read(const struct array_file *a, const struct mask_request *r,
                        struct error *e);

/* One pattern of such an array, for file() of the mask language, in whose words errors advise;
   `head` < 0: the array must have one. */
struct pattern *dense_read_head(const struct array_file *a, const struct mask_request *r,
                                int64_t head, struct error *e);

/* Parameters of a differentiable attention mask (dam_array.h), cropped to r->n; r->border. */
struct mask *dam_read(const struct array_file *a, const struct mask_request *r,
                      struct error *e);

/* The same parameters as probabilities [1 or L,H,n,n]: 1 / (1 + exp(a1 - a0)) or 1 / (1 + exp(-alpha)); 1 on a border
   that is forced on. NaN and infinite ones are refused. */
int dam_importance(const struct array_file *a, const struct mask_request *r,
                   struct importance *ret, struct error *e);

/* The array of r->name (.npy, or the tensor of a .safetensors): floats [n,n], [H,n,n] or [L,H,n,n], booleans and
   integers (1 where active, else 0), or with r->dam the parameters of a learned mask, as probabilities. r->heads
   repeats a one-head array, r->layer takes one layer, r->n crops. One line refuses a NaN, an infinite or negative
   value (with its place), another number of heads than asked, and an array without a value above zero. *ret is filled
   on success alone. */
int importance_read(const struct mask_request *r, struct importance *ret, struct error *e);

/* importance_read() of an array that is open; r->name, r->tensor and options of the file do not count. */
int importance_from_array(const struct array_file *a, const struct mask_request *r,
                          struct importance *ret, struct error *e);
