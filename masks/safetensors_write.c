/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: a header made with jansson, then the tensors' bytes. See safetensors.h. */
#include "masks/base/memory.h"
#include "masks/safetensors.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8 };

void safetensors_add(struct safetensors *s, const char *name, const char *dtype, uint32_t rank,
                     const uint64_t *shape, const void *data)
{
    s->tensor = memory_resize(s->tensor, (size_t)s->n_tensors + 1, sizeof *s->tensor);
    struct safetensor *t = &s->tensor[s->n_tensors++];
    *t = (struct safetensor){.name = memory_text(name), .rank = rank, .data = data};
    strncpy(t->dtype, dtype, sizeof t->dtype - 1);
    t->size = safetensors_dtype_bytes(dtype);
    for (uint32_t k = 0; k < rank; k++) {
        t->shape[k] = shape[k];
        t->size *= shape[k];
    }
}

/* The tensors in the order of the file: by descending element size, then in the caller's order. */
static uint32_t *file_order(const struct safetensors *s)
{
    uint32_t *order = memory_new(s->n_tensors, sizeof *order), n = 0;
    for (uint32_t bytes = 8; bytes; bytes /= 2)
        for (uint32_t k = 0; k < s->n_tensors; k++)
            if (safetensors_dtype_bytes(s->tensor[k].dtype) == bytes)
                order[n++] = k;
    return order;
}

static json_t *describe(const struct safetensor *t, uint64_t begin)
{
    json_t *shape = json_array();
    for (uint32_t k = 0; k < t->rank; k++)
        json_array_append_new(shape, json_integer((json_int_t)t->shape[k]));
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", t->dtype, "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)(begin + t->size));
}

static json_t *describe_metadata(const struct safetensors *s)
{
    json_t *metadata = json_object();
    for (uint32_t k = 0; k < s->n_metadata; k++)
        json_object_set_new(metadata, s->metadata[k].key, json_string(s->metadata[k].value));
    return metadata;
}

static char *build_header(const struct safetensors *s, const uint32_t *order,
                          uint64_t *data_size)
{
    json_t *header = json_object();
    if (s->n_metadata)
        json_object_set_new(header, "__metadata__", describe_metadata(s));
    uint64_t begin = 0;
    for (uint32_t k = 0; k < s->n_tensors; k++) {
        const struct safetensor *t = &s->tensor[order[k]];
        json_object_set_new(header, t->name, describe(t, begin));
        begin += t->size;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    *data_size = begin;
    return text;
}

int safetensors_stream(const struct safetensors *s, safetensors_sink sink, void *context)
{
    uint32_t *order = file_order(s);
    uint64_t data_size;
    char *header = build_header(s, order, &data_size);
    const size_t text = strlen(header), length = (text + 7) / 8 * 8;
    uint8_t *first = memory_new(LENGTH_BYTES + length, 1);
    for (int k = 0; k < LENGTH_BYTES; k++)
        first[k] = (uint8_t)(length >> 8 * k);
    memset(first + LENGTH_BYTES, ' ', length);
    memcpy(first + LENGTH_BYTES, header, text);
    int r = sink(context, first, LENGTH_BYTES + length);
    for (uint32_t k = 0; k < s->n_tensors && r == 0; k++)
        r = sink(context, s->tensor[order[k]].data, s->tensor[order[k]].size);
    free(first);
    free(header);
    free(order);
    return r;
}

struct growing {
    uint8_t *bytes;
    uint64_t size;
};

static int append(void *context, const void *bytes, uint64_t size)
{
    struct growing *g = context;
    g->bytes = memory_resize(g->bytes, g->size + size, 1);
    if (bytes && size)
        memcpy(g->bytes + g->size, bytes, size);
    else
        memset(g->bytes + g->size, 0, size);
    g->size += size;
    return 0;
}

uint8_t *safetensors_write(const struct safetensors *s, uint64_t *ret_size)
{
    struct growing g = {0};
    safetensors_stream(s, append, &g);
    *ret_size = g.size;
    return g.bytes;
}
