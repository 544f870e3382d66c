/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel file (.mkb): a safetensors file with the mask, the plan's tables for each target
   kind, the code for each target and the record of how to launch it, under one checksum. */
#pragma once
#include "gen/cost/machine.h"
#include "gen/family/launch.h"
#include "gen/request.h"
#include "gen/tables/pass.h"
#include "gen/tables/steps.h"
#include "masks/mask.h"
#include <stdint.h>

enum {
    ARTIFACT_VERSION = 4,
    ARTIFACT_MAX_TARGETS = 16,
    ARTIFACT_MAX_KERNELS = 8,
    ARTIFACT_MAX_IMAGES = 4 /* of a target */
};

/* Compiler's report on one entry point (CUDA; zeros on a CPU). */
struct kernel_resources {
    char entry[40];
    uint32_t registers, spill_bytes, shared_bytes, code_bytes;
};

/* A shared object, a cubin or PTX text. */
struct code_image {
    const uint8_t *bytes;
    uint64_t size;
};

/* True if `name` occurs in the image as a whole identifier: in a cubin's symbol names, in PTX's text. */
bool image_names(const struct code_image *i, const char *name);

struct artifact_target {
    char name[24];     /* a row of gen/target.h */
    char compiler[96]; /* "clang 14.0.6", "nvrtc 13.0" */
    /* One for each unit of the source; on a CPU one. */
    struct code_image image[ARTIFACT_MAX_IMAGES];
    uint32_t n_images;
    char *source;  /* CUDA: the emitted text in one piece, for the emulation; or null */
    uint32_t plan; /* index into plans: targets with the same row block height share one */
    struct launch_record launch;
    struct kernel_resources kernel[ARTIFACT_MAX_KERNELS];
    uint32_t n_kernels;
};

struct artifact_plan {
    uint32_t block_rows;
    char machine[32];
    char *text;                           /* plan_print's */
    char *json;                           /* plan_json's, compact */
    struct plan_pass forward, transposed; /* summaries stay null: they are in text and json */
    struct plan_steps steps[PASSES];      /* by enum machine_pass */
};

struct artifact {
    struct mask *mask;     /* in the order of the kernel's positions */
    const uint32_t *order; /* [n]: position p holds token order[p]; null: p */
    struct kernel_request request;
    struct artifact_plan plan[ARTIFACT_MAX_TARGETS];
    uint32_t n_plans;
    struct artifact_target target[ARTIFACT_MAX_TARGETS];
    uint32_t n_targets;
    void *storage; /* what the pointers above live in; internal */
};

/* The whole file in memory; the caller frees. Deterministic: same input, same bytes. */
uint8_t *artifact_write(const struct artifact *a, uint64_t *ret_size);

/* Parses and checks everything: version, checksum, sizes, every index of every table (a forged file
   with a right checksum must not make a kernel read outside its tables). `bytes` must outlive *ret.
   `path` is for messages. */
int artifact_read(const uint8_t *bytes, uint64_t size, const char *path, struct artifact **ret,
                  struct error *e);
void artifact_destroy(struct artifact *a);

/* The mask of a kernel file, in the order of tokens: the reader that mask_load wants. */
struct mask *artifact_read_mask(const char *path, struct error *e);
/* The same; *ret_ordered: the kernel has another order. */
struct mask *artifact_read_tokens(const char *path, bool *ret_ordered, struct error *e);
