/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the functions of maskc.h: errors, and structs of callers that know another version of them. */
#pragma once
#include "gen/key_shape.h"
#include "masks/base/error.h"
#include "masks/request.h"
#include "runtime/maskc.h"

/* Bytes of the public structs in their first version: what struct_size 0 stands for. */
enum { OPTIONS_FIRST = 72, INFO_FIRST = 72, LAUNCH_FIRST = 392 };

/* The code of a result, and the text where the caller wants it. */
int api_answer(int result, const struct error *from, struct maskc_error *to);

/* A public struct begins with struct_size: its bytes as the caller knows it, 0: of the first version.
   api_take makes one as this library knows it: what the caller does not know is zero, what the library
   does not know must be. `name` is for messages. api_give fills a caller's struct as far as he knows it. */
struct api_struct {
    const char *name;
    size_t first, ours; /* bytes of the first version, and of this library's */
};
int api_take(const struct api_struct *s, const void *from, void *ret, struct error *e);
void api_give(const struct api_struct *s, const void *from, void *ret);

/* ---- what compiles (api_compile.c) ---- */

/* Null options are defaults. Refuses unknown numbers and fields without effect. */
int api_take_options(const struct maskc_options *from, struct maskc_options *ret,
                     struct error *e);
struct key_shape api_key_shape(const struct maskc_options *o);
/* The options for the mask. */
struct mask_request api_mask_request(const struct maskc_options *o, const char *name);
/* Takes the mask, of the side that the key shape asks for; it may be null with *e set. */
int api_compile_mask(struct mask *m, const struct maskc_options *o, struct maskc_bytes *ret,
                     struct error *e);
