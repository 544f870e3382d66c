/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors container: an 8-byte little-endian header length, a JSON header padded with
   spaces to 8 bytes, then tensor data without gaps. Also the container of kernel files. */
#pragma once
#include "masks/base/error.h"
#include "masks/base/file.h"
#include <stdbool.h>
#include <stdint.h>

enum { SAFETENSORS_MAX_RANK = 8 };

struct safetensor {
    char *name;
    char dtype[16]; /* "F32", "BF16", "U8", "BOOL", "I64", ... */
    uint32_t rank;
    uint64_t shape[SAFETENSORS_MAX_RANK];
    const uint8_t *data; /* into the file's bytes, not aligned, or the caller's when writing */
    uint64_t size;       /* bytes */
};

struct safetensors {
    struct safetensor *tensor;
    uint32_t n_tensors;
    struct {
        char *key, *value;
    } * metadata;
    uint32_t n_metadata;
    uint64_t header_size; /* of the JSON, without the 8 bytes before it */
};

/* Parses bytes that stay owned by the caller and must outlive *ret. Every offset, shape and dtype
   is checked: no overlap, no gap, no byte left over, sizes that add up. Alignment is not: other
   writers pad no header. `path` is for messages. */
int safetensors_parse(const uint8_t *bytes, uint64_t size, const char *path,
                      struct safetensors *ret, struct error *e);

/* The same, except that tensors of a dtype that is not known here are let pass, for files of others
   that hold more than what is asked for: their place in the file is checked, their size is not held
   against their shape. */
int safetensors_parse_any(const uint8_t *bytes, uint64_t size, const char *path,
                          struct safetensors *ret, struct error *e);
void safetensors_finish(struct safetensors *s); /* a zeroed one is fine */

const struct safetensor *safetensors_find(const struct safetensors *s, const char *name);
const char *safetensors_metadata(const struct safetensors *s, const char *key); /* or null */
uint32_t safetensors_dtype_bytes(const char *dtype);                            /* 0: unknown */

/* Building a file in memory: tensors are laid out by descending element size, then in the order
   given, so that everything is aligned; metadata in the order given. */
void safetensors_add(struct safetensors *s, const char *name, const char *dtype, uint32_t rank,
                     const uint64_t *shape, const void *data); /* not copied; null: zeros */
void safetensors_add_metadata(struct safetensors *s, const char *key, const char *value);
uint8_t *safetensors_write(const struct safetensors *s, uint64_t *ret_size); /* caller frees */

/* The bytes of such a file from first to last: the header, then each tensor's data (null: zeros). Ends early where the sink
   does not return 0, and returns what it returned. */
typedef int (*safetensors_sink)(void *context, const void *bytes, uint64_t size);
int safetensors_stream(const struct safetensors *s, safetensors_sink sink, void *context);
