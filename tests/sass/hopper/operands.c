/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of HGMMA in shared memory, under the swizzle of 128 bytes. Warps of a block share most of them, so those of
   second operands are kept as floats until shared memory changes. */
#include "tests/sass/hopper/operands.h"
#include "tests/sass/hopper/hopper.h"
#include <immintrin.h>
#include <stdlib.h>

enum {
    LINE = 128, /* bytes of a row */
    HALVES = 8, /* of a chunk */
    PART = 64,  /* halves of a row */
    SWIZZLE_128 = 1,
    KEPT = 64,
};

struct layout {
    uint32_t start, leading, stride;
};

static struct layout layout_of(const struct warp *w, uint64_t descriptor)
{
    const uint32_t swizzle = (uint32_t)(descriptor >> 62), base = descriptor >> 49 & 7;
    if (swizzle != SWIZZLE_128 || base)
        fault(w, "a matrix descriptor that is not known: 0x%llx",
              (unsigned long long)descriptor);
    return (struct layout){.start = (uint32_t)(descriptor & 0x3fff) << 4,
                           .leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                           .stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4};
}

static uint32_t swizzled(uint32_t at)
{
    return at ^ (at / LINE % HALVES * CHUNK);
}

/* Address of chunk k of the matrix: 8 depths of one line; transposed, 8 lines at one depth. */
static uint32_t chunk_at(const struct layout *l, const struct matrix_request *m, uint32_t k)
{
    if (!m->transposed) {
        const uint32_t line = m->first + k / 2;
        return swizzled(l->start + line / 8 * l->stride + line % 8 * LINE + k % 2 * CHUNK);
    }
    const uint32_t depth = k % DEPTH, line = m->first + k / DEPTH * HALVES;
    return swizzled(l->start + line / PART * l->leading + depth / 8 * l->stride +
                    depth % 8 * LINE + line % PART * 2);
}

static uint32_t chunks_of(const struct matrix_request *m)
{
    return m->lines * DEPTH / HALVES;
}

void matrix_check(struct warp *w, const struct matrix_request *m)
{
    const struct layout l = layout_of(w, m->descriptor);
    for (uint32_t k = 0; k < chunks_of(m); k++) {
        const uint32_t at = chunk_at(&l, m, k);
        if (at < w->block->program->shared_base || at + CHUNK > w->block->shared_bytes)
            fault(w, "an operand of HGMMA at 0x%x is outside of shared memory", at);
        trail_read_async(w, at, CHUNK);
    }
}

static __m256 floats(const uint8_t *from, bool bf16)
{
    const __m128i x = _mm_loadu_si128((const __m128i *)from);
    return bf16 ? _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16))
                : _mm256_cvtph_ps(x);
}

/* Element (line, depth) goes to to[line * by_line + depth * by_depth]. */
static void convert(struct warp *w, const struct matrix_request *m, float *to, uint32_t by_line,
                    uint32_t by_depth)
{
    const struct layout l = layout_of(w, m->descriptor);
    const uint32_t step = m->transposed ? by_line : by_depth;
    for (uint32_t k = 0; k < chunks_of(m); k++) {
        float x[HALVES];
        const uint32_t line = m->transposed ? k / DEPTH * HALVES : k / 2;
        const uint32_t depth = m->transposed ? k % DEPTH : k % 2 * HALVES;
        float *at = to + line * by_line + depth * by_depth;
        _mm256_storeu_ps(x, floats(w->block->shared + chunk_at(&l, m, k), m->bf16));
        for (uint32_t e = 0; e < HALVES; e++)
            at[e * step] = x[e];
    }
}

void matrix_rows(struct warp *w, const struct matrix_request *m, float ret[ROWS][DEPTH])
{
    convert(w, m, ret[0], DEPTH, 1);
}

/* ---- second operands ---- */

struct kept {
    struct matrix_request key;
    uint32_t changes; /* of shared memory before it was read */
    float at[DEPTH][MAX_COLUMNS];
};

static struct kept *kept_of(struct hopper *h, const struct matrix_request *m)
{
    if (!h->kept) {
        h->kept = malloc(KEPT * sizeof *h->kept);
        for (uint32_t k = 0; k < KEPT; k++)
            h->kept[k].key = (struct matrix_request){0};
    }
    const uint64_t mixed = (m->descriptor ^ m->descriptor >> 16) * UINT64_C(0x9e3779b97f4a7c15);
    return &h->kept[mixed >> 32 & (KEPT - 1)];
}

const float (*matrix_columns(struct warp *w, const struct matrix_request *m))[MAX_COLUMNS]
{
    struct hopper *h = w->block->hopper;
    struct kept *k = kept_of(h, m);
    if (k->key.descriptor != m->descriptor || k->key.lines != m->lines ||
        k->key.transposed != m->transposed || k->key.bf16 != m->bf16 ||
        k->changes != h->changes) {
        k->key = *m;
        k->changes = h->changes;
        convert(w, m, k->at[0], 1, MAX_COLUMNS);
    }
    return (const float(*)[MAX_COLUMNS])k->at;
}

static float half_at(uint32_t word, bool high, bool bf16)
{
    const uint32_t bits = high ? word >> 16 : word & 0xffff, single = bits << 16;
    float x;
    memcpy(&x, &single, sizeof x);
    return bf16 ? x : _cvtsh_ss((uint16_t)bits);
}

void matrix_of_registers(const struct warp *w, uint32_t first, bool bf16,
                         float ret[ROWS][DEPTH])
{
    for (uint32_t k = 0; k < 4; k++) {
        const union each a = {w->r[first + k]};
        FOR_LANES for (uint32_t x = 0; x < 2; x++)
            ret[l / 4 + k % 2 * 8][l % 4 * 2 + x + k / 2 * 8] = half_at(a.lane[l], x, bf16);
    }
}
