/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of the floating types of safetensors, to f32 and back. Rounding is to nearest even. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum element { ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16, ELEMENT_F64, ELEMENT_COUNT };

const char *element_name(enum element t);  /* "F32": safetensors */
const char *element_torch(enum element t); /* "float32": torch_dtype */
uint32_t element_bytes(enum element t);
/* "F32" or "f32"; false: no floating type. */
bool element_parse(const char *name, enum element *ret);

/* count elements; the bytes need no alignment. */
void elements_to_f32(enum element from, const void *bytes, uint64_t count, float *ret);
void elements_from_f32(enum element to, const float *values, uint64_t count, void *ret);
/* Index of the first NaN or infinity; count: there is none. */
uint64_t elements_not_finite(enum element t, const void *bytes, uint64_t count);
