/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the device "cuda": a loaded kernel, and what stands on its GPU. */
#pragma once
#include "runtime/device/cuda_context.h"
#include "runtime/device/hopper_args.h"

enum { MAX_FUNCTIONS = 2 * EMIT_MAX_PHASES };

struct loaded_phase {
    char entry[40];
    struct cu_function *function;
    uint32_t fit; /* blocks that fit on the GPU at once */
};

struct device_code {
    const struct artifact *artifact;
    const struct artifact_target *target;
    struct cuda_context gpu;
    struct cu_module *module[ARTIFACT_MAX_IMAGES]; /* of each image */
    uint32_t n_modules;
    struct loaded_phase phase[MAX_FUNCTIONS];
    uint32_t n_phases, workers;
    cu_pointer tables;
    struct abi_plan plan[2];        /* forward, transposed; `work` of layer 0's first entry */
    struct abi_steps steps[PASSES]; /* the same */
    struct hopper_maps *maps;       /* null where no phase needs them */
    bool waves[2]; /* launches over the plan have waves, over the transposed one */
};

/* The entry's index among c->phase, or that of the next free one. */
uint32_t cuda_find_phase(const struct device_code *c, const char *entry);

/* Functions of struct device. */
int cuda_load(const struct artifact *a, const struct artifact_target *t, int ordinal,
              struct device_code **ret, struct error *e);
void cuda_unload(struct device_code *c);
void cuda_tables(const struct device_code *c, bool transposed, uint32_t layer,
                 struct abi_plan *ret);

/* Encodes a tensor map by the driver. */
map_encode_fn cuda_encode_map;
