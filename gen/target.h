/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets: what code can be made for, and the shape that the templates have there. */
#pragma once
#include "gen/request.h"
#include "masks/base/error.h"
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
    bool dots;             /* CPU: its matrix unit is bf16 dot products of vectors */
    uint32_t block_rows;   /* of CPU kernels and cuda_simt: see family_shape() */
    uint32_t vector_bytes; /* CPU */
    uint32_t threads;      /* CUDA: of a block */
    uint32_t shared_bytes; /* CUDA: shared memory that a block may ask for */
    bool ptx;              /* CUDA: PTX text in place of a cubin */
    bool no_tensor_maps;   /* CUDA: the driver of the GPU here makes none */
};

extern const struct target targets[]; /* ends with a null name */

/* Null with *e set, naming the known ones, where the name is not in the table. "cpu" and "cuda"
   depend on the machine and are resolved by the runtime before this is called. */
const struct target *target_find(const char *name, struct error *e);

/* The same target where the driver makes no tensor maps: a row of its own, which is not in the table. */
const struct target *target_without_tensor_maps(const struct target *t);
