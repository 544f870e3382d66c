/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of cuda_hopper's phases for the tests, with an encoder that writes down what it is given. */
#pragma once
#include "runtime/device/hopper_args.h"
#include <stdatomic.h>

enum { HEADS = 4, DIM = 64, ROWS = 200, BATCH = 3 };

/* Maps that the encoder made, and the address that it refuses; null: none. */
extern atomic_uint subject_encoded;
extern const void *subject_refused;

/* Shape that a tensor map was made from. */
struct map_shape subject_shape(const struct tensor_map *m);

/* Slots of a step and phase, for each pass. */
extern const uint32_t subject_slots[PASSES];
extern const struct phase subject_phases[PASSES];
/* Layers 0 and 1 have 5 and 2 places of it. */
extern const struct abi_work subject_work[7];

/* A kernel's maps and a launch of it. */
struct subject {
    struct artifact artifact;
    struct abi_steps steps[PASSES];
    struct hopper_maps *maps;
    struct device_launch launch;
};

/* Tensors in the layout [B, H, N, D]. */
void subject_init(struct subject *s, struct kernel_request r);
void subject_finish(struct subject *s);
/* The arguments of a pass; fails the test on an error. */
struct hopper_args subject_fill(struct subject *s, enum machine_pass pass);
