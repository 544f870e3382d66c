/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the phases that receive struct hopper_args: the steps of a pass, and tensor maps of its operands. Maps are
   encoded on the host and kept for further launches over the same tensors. */
#pragma once
#include "runtime/device/device.h"
/* after it */
#include "templates/cuda/hopper/args.h"

enum { MAP_DIMENSIONS = 4 };

/* Shape of a tensor map. Dimensions are listed innermost first: position in a head, head, row, sequence. */
struct map_shape {
    void *address;
    uint64_t extent[MAP_DIMENSIONS]; /* elements, 1 .. 2^32 - 1 */
    uint64_t stride[MAP_DIMENSIONS]; /* bytes: 2, then multiples of 16 below 2^40 */
    uint32_t box[MAP_DIMENSIONS];    /* elements */
    enum abi_dtype dtype;            /* ABI_BF16 or ABI_F16 */
};

/* Encodes a map for the device. 0, or -1 with *e set. */
typedef int map_encode_fn(const struct map_shape *s, struct tensor_map *ret, struct error *e);

/* True if some phase receives struct hopper_args. */
bool hopper_needed(const struct launch_record *l);

/* The maps of the latest launches of a kernel. Null with *e set where a phase receives steps that its plan lacks. */
struct hopper_maps;
struct hopper_maps *hopper_maps_new(const struct artifact *a, const struct artifact_target *t,
                                    map_encode_fn *encode, struct error *e);
void hopper_maps_destroy(struct hopper_maps *m); /* null is fine */

/* Fills the arguments of such a phase. `steps`: of each pass as the device sees them, `work` of layer 0's first entry.
   Allocates nothing; safe to call from several threads. -1 with *e set for tensors that no map can describe. */
int hopper_fill(struct hopper_maps *m, const struct phase *p, const struct device_launch *l,
                const struct abi_steps steps[PASSES], struct hopper_args *ret, struct error *e);

/* Places of the work list: work * slice_batch + (b - first_batch). */
static inline uint64_t hopper_indices(const struct hopper_args *a)
{
    return (uint64_t)a->steps.works * a->a.slice_batch;
}
