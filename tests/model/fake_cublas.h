/* SPDX-License-Identifier: Apache-2.0 */
/* The cuBLASLt of fake_gpu.c, which includes it as its last part. fake_product.h computes the products. */
#pragma once

enum { NOT_SUPPORTED = 15, WORKSPACE = 32 << 20 };

/* True if sizes, types and leading dimensions agree. */
static bool fits(const struct lt_desc *desc, const struct lt_layout *a,
                 const struct lt_layout *b, const struct lt_layout *c,
                 const struct lt_layout *d)
{
    const bool transposed = desc->transpose_a == LT_TRANSPOSE,
               b_transposed = desc->transpose_b == LT_TRANSPOSE;
    const uint64_t rows = transposed ? a->columns : a->rows,
                   inner = transposed ? a->rows : a->columns,
                   b_inner = b_transposed ? b->columns : b->rows,
                   columns = b_transposed ? b->rows : b->columns;
    return rows == d->rows && inner == b_inner && columns == d->columns &&
           !memcmp(c, d, sizeof *c) && a->type == b->type && a->leading >= (int64_t)a->rows &&
           b->leading >= (int64_t)b->rows && d->leading >= (int64_t)d->rows &&
           desc->compute == LT_COMPUTE_32F && desc->scale == LT_F32;
}

/* An algorithm is one for a shape. */
static uint64_t shape_of(const struct lt_desc *desc, const struct lt_layout *a,
                         const struct lt_layout *d)
{
    return (((a->rows * 31 + d->rows) * 31 + d->columns) * 31 + desc->epilogue) * 31 +
           (uint64_t)desc->transpose_b;
}

FAKE(cublasLtGetProperty, int property, int *value)
{
    *value = 12 + fake_gpu.newer;
    return fail(property == LT_MAJOR_VERSION ? 0 : NOT_SUPPORTED);
}

FAKE(cublasLtCreate, struct lt_handle **handle)
{
    INSIDE;
    fake_gpu.handles++;
    *handle = (struct lt_handle *)(size_t)64;
    return 0;
}

FAKE(cublasLtDestroy, struct lt_handle *handle)
{
    fake_gpu.handles -= handle != NULL;
    return 0;
}

FAKE(cublasLtMatmulDescCreate, struct lt_desc **desc, int compute, int scale)
{
    COUNTED;
    fake_gpu.descriptions++;
    *desc = calloc(1, sizeof **desc);
    **desc = (struct lt_desc){compute, scale, 0, 0, LT_EPILOGUE_DEFAULT, NULL};
    return 0;
}

FAKE(cublasLtMatmulDescDestroy, struct lt_desc *desc)
{
    fake_gpu.descriptions--;
    free(desc);
    return 0;
}

FAKE(cublasLtMatmulDescSetAttribute, struct lt_desc *desc, int attribute, const void *value,
     size_t bytes)
{
    COUNTED;
    const struct {
        int attribute;
        size_t bytes;
        void *to;
    } known[] = {
        {LT_DESC_TRANSA, 4, &desc->transpose_a},
        {LT_DESC_TRANSB, 4, &desc->transpose_b},
        {LT_DESC_EPILOGUE, 4, &desc->epilogue},
        {LT_DESC_BIAS_POINTER, 8, &desc->bias},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k].attribute == attribute && known[k].bytes == bytes) {
            memcpy(known[k].to, value, bytes);
            return 0;
        }
    return INVALID_VALUE;
}

FAKE(cublasLtMatrixLayoutCreate, struct lt_layout **layout, int type, uint64_t rows,
     uint64_t columns, int64_t leading)
{
    COUNTED;
    fake_gpu.descriptions++;
    *layout = calloc(1, sizeof **layout);
    (*layout)->type = type;
    (*layout)->rows = rows;
    (*layout)->columns = columns;
    (*layout)->leading = leading;
    return type == LT_F32 || type == LT_BF16 ? 0 : INVALID_VALUE;
}

FAKE(cublasLtMatrixLayoutDestroy, struct lt_layout *layout)
{
    fake_gpu.descriptions--;
    free(layout);
    return 0;
}

FAKE(cublasLtMatmulPreferenceCreate, struct lt_preference **preference)
{
    COUNTED;
    fake_gpu.descriptions++;
    *preference = calloc(1, sizeof(uint64_t));
    return 0;
}

FAKE(cublasLtMatmulPreferenceDestroy, struct lt_preference *preference)
{
    fake_gpu.descriptions--;
    free(preference);
    return 0;
}

FAKE(cublasLtMatmulPreferenceSetAttribute, struct lt_preference *preference, int attribute,
     const void *value, size_t bytes)
{
    COUNTED;
    const bool alignment = attribute >= LT_PREFERENCE_MIN_ALIGNMENT_BYTES &&
                           attribute <= LT_PREFERENCE_MIN_ALIGNMENT_BYTES + 3;
    if (alignment)
        return bytes == sizeof(uint32_t) ? 0 : INVALID_VALUE;
    if (attribute != LT_PREFERENCE_MAX_WORKSPACE_BYTES || bytes != sizeof(uint64_t))
        return INVALID_VALUE;
    memcpy(preference, value, bytes);
    return 0;
}

FAKE(cublasLtMatmulAlgoGetHeuristic, struct lt_handle *handle, struct lt_desc *desc,
     struct lt_layout *a, struct lt_layout *b, struct lt_layout *c, struct lt_layout *d,
     struct lt_preference *preference, int asked, struct lt_result *results, int *found)
{
    COUNTED;
    uint64_t most;
    memcpy(&most, preference, sizeof most);
    *found = 0;
    if (!handle || asked < 1 || most != WORKSPACE || !fits(desc, a, b, c, d))
        return INVALID_VALUE;
    if (fake_gpu.refuses_fusing && desc->epilogue != LT_EPILOGUE_DEFAULT)
        return NOT_SUPPORTED;
    results[0] = (struct lt_result){.workspace_bytes = WORKSPACE / 2};
    results[0].algorithm.data[0] = shape_of(desc, a, d);
    *found = 1;
    return 0;
}

FAKE(cublasLtMatmul, struct lt_handle *handle, struct lt_desc *desc, const void *alpha,
     const void *a, struct lt_layout *a_layout, const void *b, struct lt_layout *b_layout,
     const void *beta, const void *c, struct lt_layout *c_layout, void *d,
     struct lt_layout *d_layout, const struct lt_algorithm *algorithm, void *workspace,
     size_t workspace_bytes, void *stream)
{
    INSIDE;
    const float one = 1, zero = 0;
    const bool adds = !memcmp(beta, &one, 4);
    if (!handle || memcmp(alpha, &one, 4) || (!adds && memcmp(beta, &zero, 4)) || c != d ||
        !workspace || (adds && desc->epilogue != LT_EPILOGUE_DEFAULT) ||
        workspace_bytes != WORKSPACE || !fits(desc, a_layout, b_layout, c_layout, d_layout) ||
        algorithm->data[0] != shape_of(desc, a_layout, d_layout) ||
        (desc->epilogue != LT_EPILOGUE_DEFAULT && !desc->bias))
        return INVALID_VALUE;
    fake_gpu.products += !stream || !((struct cu_stream *)stream)->capture;
    fake_gpu.fused += desc->epilogue != LT_EPILOGUE_DEFAULT;
    fake_gpu.gelus += desc->epilogue == LT_EPILOGUE_GELU_BIAS;
    struct work w = {.kind = WORK_PRODUCT,
                     .product = {*desc, *a_layout, *b_layout, *d_layout, a, b, d, adds}};
    return take(stream, &w);
}
