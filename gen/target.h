/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets: what code can be made for, and the shape that the templates have there. */
#pragma once
#include "masks/base/error.h"
#include "templates/abi.h"
#include <stdbool.h>
#include <stdint.h>

enum target_kind { TARGET_CPU, TARGET_CUDA };

struct target {
    const char *name; /* "x86-64-v4", "sm_90a", "compute_80" */
    enum target_kind kind;
    const char *arch;    /* value of -march=, or of NVRTC's -arch= */
    const char *machine; /* row of the machine table that plans assume by default ... */
    const char
        *matrix_machine;   /* ... and where its matrix unit does the work; null: it has none */
    bool dots;             /* CPU: which is bf16 dot products of vectors, not tiles */
    uint32_t block_rows;   /* where no matrix unit works: see family_shape() */
    uint32_t vector_bytes; /* CPU */
    uint32_t threads;      /* CUDA: of a block */
    uint32_t shared_bytes; /* CUDA: shared memory that a block may ask for */
    bool ptx;              /* CUDA: PTX text in place of a cubin */
};

extern const struct target targets[]; /* ends with a null name */

/* Null with *e set, naming the known ones, where the name is not in the table. "cpu" and "cuda"
   depend on the machine and are resolved by the runtime before this is called. */
const struct target *target_find(const char *name, struct error *e);

/* What a user asks of a kernel, apart from the mask and the target. */
struct kernel_request {
    enum abi_dtype dtype;
    enum abi_transform transform;
    float lambda; /* sparsegen */
    uint32_t head_dim;
    bool dropout, backward;
    uint32_t length;    /* of the mask; 0: unknown, and no kernel is made for it */
    enum abi_bias bias; /* an array X beside the mask: learnt, not compiled in */
};

/* What code is specialised on: the request, and what a plan of some mask needs on top (plan_build). */
struct kernel_config {
    struct kernel_request request;
    /* CUDA: row blocks leave rows to other items and take them up; there are global rows; these are cut into
       parts; row blocks have 128 rows in the place of 64. */
    bool shared_rows, global_rows, cut_rows, tall;
    /* A CPU's matrix unit: groups of gathered columns that a thread keeps; 0: GATHERS_KEPT. */
    uint32_t gathers_kept;
};

/* Those that come and go, beside what row blocks share. */
enum { GATHERS_KEPT = 4 };

/* D a multiple of 8 in 16..256, lambda below 1; what is not so is refused with one clear line. */
int kernel_request_check(const struct kernel_request *r, const struct target *t,
                         struct error *e);
const char *dtype_name(enum abi_dtype dtype); /* "f32", "bf16", "f16", "tf32" */
uint32_t dtype_bytes(enum abi_dtype dtype);
int dtype_parse(const char *name, enum abi_dtype *ret, struct error *e);
/* "softmax" or "sparsegen=L"; sets transform and lambda. */
int transform_parse(const char *text, struct kernel_request *f, struct error *e);
const char *bias_name(enum abi_bias bias); /* "none", "bias", "scale" */
int bias_parse(const char *name, enum abi_bias *ret, struct error *e);
