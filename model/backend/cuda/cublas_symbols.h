/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of cuBLASLt that we use, with their types and constants from cublasLt.h (the same in versions 12 and 13):
   the build needs no CUDA toolkit. Results are cublasStatus_t, 0 is success. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct lt_handle;
struct lt_desc;
struct lt_layout;
struct lt_preference;

struct lt_algorithm {
    uint64_t data[8];
};

struct lt_result {
    struct lt_algorithm algorithm;
    size_t workspace_bytes;
    int state; /* 0: the other fields are valid */
    float waves;
    int reserved[4];
};

enum {
    LT_MAJOR_VERSION = 0, /* a property of the library: 13 */
    LT_F32 = 0,           /* CUDA_R_32F */
    LT_BF16 = 14,         /* CUDA_R_16BF */
    LT_COMPUTE_32F = 68,
    LT_TRANSPOSE = 1, /* CUBLAS_OP_T */
    LT_DESC_TRANSA = 3,
    LT_DESC_TRANSB = 4,
    LT_DESC_EPILOGUE = 7,
    LT_DESC_BIAS_POINTER = 8,
    LT_EPILOGUE_DEFAULT = 1,
    LT_EPILOGUE_BIAS = 4,
    LT_EPILOGUE_RELU_BIAS = 6,
    LT_EPILOGUE_GELU_BIAS = 36, /* the tanh form */
    LT_PREFERENCE_MAX_WORKSPACE_BYTES = 1,
    LT_PREFERENCE_MIN_ALIGNMENT_BYTES = 5 /* of A; 6: of B, 7: of C, 8: of D */
};

/* clang-format off */
#define CUBLAS_SYMBOLS(S)                                                                      \
    S(cublasLtGetProperty, (int property, int *value))                                         \
    S(cublasLtCreate, (struct lt_handle **handle))                                             \
    S(cublasLtDestroy, (struct lt_handle *handle))                                             \
    S(cublasLtMatmulDescCreate, (struct lt_desc **desc, int compute, int scale))               \
    S(cublasLtMatmulDescDestroy, (struct lt_desc *desc))                                       \
    S(cublasLtMatmulDescSetAttribute, (struct lt_desc *desc, int attribute, const void *value, \
                                       size_t bytes))                                          \
    S(cublasLtMatrixLayoutCreate, (struct lt_layout **layout, int type, uint64_t rows,         \
                                   uint64_t columns, int64_t leading))                         \
    S(cublasLtMatrixLayoutDestroy, (struct lt_layout *layout))                                 \
    S(cublasLtMatmulPreferenceCreate, (struct lt_preference **preference))                     \
    S(cublasLtMatmulPreferenceDestroy, (struct lt_preference *preference))                     \
    S(cublasLtMatmulPreferenceSetAttribute, (struct lt_preference *preference, int attribute,  \
                                             const void *value, size_t bytes))                 \
    S(cublasLtMatmulAlgoGetHeuristic, (struct lt_handle *handle, struct lt_desc *desc,         \
        struct lt_layout *a, struct lt_layout *b, struct lt_layout *c, struct lt_layout *d,    \
        struct lt_preference *preference, int asked, struct lt_result *results, int *found))   \
    S(cublasLtMatmul, (struct lt_handle *handle, struct lt_desc *desc, const void *alpha,      \
        const void *a, struct lt_layout *a_layout, const void *b, struct lt_layout *b_layout,  \
        const void *beta, const void *c, struct lt_layout *c_layout, void *d,                  \
        struct lt_layout *d_layout, const struct lt_algorithm *algorithm, void *workspace,     \
        size_t workspace_bytes, void *stream))
/* clang-format on */
