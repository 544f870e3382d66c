/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps, in an encoding of this machine's own. */
#include "tests/sass/hopper/hopper.h"

enum {
    MAGIC = 0x70616d74,
    INVALID_VALUE = 1,
    MAX_BOX = 256,
    LINE = 128, /* bytes of a row of chunks, over which the swizzle goes */
};

/* By CUtensorMapDataType: u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16. */
static const uint8_t element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};

/* Bytes that an inner box has at most, by CUtensorMapSwizzle: none, 32, 64, 128. */
static const uint16_t inner_bytes[] = {16384, 32, 64, 128};

static bool dimension_fits(const struct map_request *r, uint32_t k)
{
    if (!r->size[k] || r->size[k] > UINT64_C(1) << 32 || !r->box[k] || r->box[k] > MAX_BOX ||
        r->step[k] != 1)
        return false;
    return !k || (r->stride[k - 1] % 16 == 0 && r->stride[k - 1] < UINT64_C(1) << 40);
}

static bool request_fits(const struct map_request *r)
{
    if (r->rank < 1 || r->rank > MAP_DIMENSIONS || r->interleave || r->fill || r->type < 0 ||
        (size_t)r->type >= sizeof element_bytes || r->swizzle < 0 || r->swizzle > 3)
        return false;
    const uint32_t inner = r->box[0] * element_bytes[r->type];
    bool fits =
        (uintptr_t)r->address % 16 == 0 && inner % 16 == 0 && inner <= inner_bytes[r->swizzle];
    for (uint32_t k = 0; k < r->rank; k++)
        fits = fits && dimension_fits(r, k);
    return fits;
}

int map_encode(void *to, const struct map_request *r)
{
    if ((uintptr_t)to % 64 || !request_fits(r))
        return INVALID_VALUE;
    struct tensor_map m = {.magic = MAGIC,
                           .rank = r->rank,
                           .element = element_bytes[r->type],
                           .swizzle = (uint32_t)r->swizzle,
                           .address = (uint64_t)(uintptr_t)r->address};
    for (uint32_t k = 0; k < MAP_DIMENSIONS; k++) {
        m.size[k] = k < r->rank ? (uint32_t)(r->size[k] - 1) + 1u : 1;
        m.box[k] = k < r->rank ? r->box[k] : 1;
        m.stride[k] = k == 0 ? m.element : k < r->rank ? r->stride[k - 1] : 0;
    }
    memset(to, 0, MAP_BYTES);
    memcpy(to, &m, sizeof m);
    return 0;
}

bool map_is_valid(const struct tensor_map *m)
{
    return m->magic == MAGIC;
}

uint32_t map_bytes(const struct tensor_map *m)
{
    uint32_t bytes = m->element;
    for (uint32_t k = 0; k < MAP_DIMENSIONS; k++)
        bytes *= m->box[k];
    return bytes;
}

/* The swizzle exchanges chunks of 16 bytes within a line by the line's number: both are bits of the address. */
static uint32_t swizzled(const struct tensor_map *m, uint32_t at)
{
    return at ^ ((at / LINE & ((1u << m->swizzle) - 1)) * CHUNK);
}

/* One row of the box: dimension 0, in chunks. */
static void row_pieces(const struct bulk *b, const uint32_t *in_box, uint32_t shared,
                       map_visit *each, void *to)
{
    const struct tensor_map *m = &b->map;
    const uint32_t elements = CHUNK / m->element;
    uint64_t device = m->address;
    bool row_inside = true;
    for (uint32_t k = 1; k < m->rank; k++) {
        const int64_t x = (int64_t)b->at[k] + in_box[k];
        row_inside = row_inside && x >= 0 && x < (int64_t)m->size[k];
        device += (uint64_t)x * m->stride[k];
    }
    for (uint32_t c = 0; c < m->box[0]; c += elements) {
        const int64_t first = (int64_t)b->at[0] + c, left = (int64_t)m->size[0] - first;
        struct map_piece p = {.device = device + (uint64_t)(first * m->element),
                              .shared = swizzled(m, shared + c * m->element)};
        if (row_inside && first >= 0 && left > 0)
            p.inside = left < elements ? (uint32_t)left * m->element : CHUNK;
        each(to, &p);
    }
}

void map_pieces(const struct bulk *b, map_visit *each, void *to)
{
    const uint32_t *n = b->map.box;
    const uint32_t rows = n[1] * n[2] * n[3] * n[4], row_bytes = n[0] * b->map.element;
    for (uint32_t row = 0; row < rows; row++) {
        const uint32_t in_box[MAP_DIMENSIONS] = {0, row % n[1], row / n[1] % n[2],
                                                 row / (n[1] * n[2]) % n[3],
                                                 row / (n[1] * n[2] * n[3])};
        row_pieces(b, in_box, b->shared + row * row_bytes, each, to);
    }
}
