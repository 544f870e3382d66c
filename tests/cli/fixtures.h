/* SPDX-License-Identifier: Apache-2.0 */
/* Files good and bad for the tests of the command line, made in the working folder. */
#pragma once
#include <stddef.h>
#include <stdint.h>

void fixture_write(const char *path, const void *bytes, size_t size);
/* A .npy of version 1 with this header text's fields and `size` bytes of data. */
void fixture_npy(const char *path, const char *descr, const char *shape, const void *data,
                 size_t size);
/* A safetensors file with this JSON header and `size` zero bytes. */
void fixture_safetensors(const char *path, const char *header, size_t size);
uint8_t *fixture_read(const char *path, size_t *ret_size); /* caller frees; ends in a zero */

/* Every fixture that needs no maskc: bad masks, tensors to run on. */
void fixtures_make(void);
/* From good.mkb: cut.mkb, longer.mkb, flipped-K.mkb, version.mkb. */
void fixtures_break_kernel(void);
enum { FIXTURE_FLIPS = 12 };

/* All of these, and good.mkb, forward.mkb (forward only) and bias.mkb (--bias scale) of star at n = 32: a
   group's setup. */
int fixtures_set_up(void **state);
