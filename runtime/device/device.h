/* SPDX-License-Identifier: Apache-2.0 */
/* A device runs a kernel file's code: one small table of functions each for cpu, cuda, emulated.
   Launching is the same everywhere: arguments are put together once (runtime/launch/), then each
   phase of the pass goes to the device. */
#pragma once
#include "masks/base/error.h"
#include "masks/base/text.h"
#include "runtime/artifact/artifact.h"
#include "runtime/maskc.h"
#include "templates/abi.h"
#include <stdbool.h>

struct emulated_stream;
struct device_code; /* loaded code and tables of one target; each device has its own */

struct device_launch {
    const struct phase *phases;
    uint32_t n_phases;
    uint32_t layer; /* of the mask */
    struct abi_args
        args; /* pointers are the device's; slice and scratch fields are set by launch */
    uint64_t scratch_bytes; /* of all workers together */
    uint32_t workers;
    void *stream;
    maskc_parallel *parallel; /* null: OpenMP's threads */
    void *pool;
    const int32_t
        *starts; /* devices that take them; null: none. args are those of a launch without */
    uint32_t element_bytes;           /* of the tensors */
    uint64_t *launches;               /* null, or incremented for each GPU kernel launched */
    struct emulated_stream *emulated; /* of the device "emulated"; null: launches run at once */
};

struct device {
    const char *name; /* "cpu", "cuda", "emulated" */

    /* Empty text: usable; else why not and what would help ("no NVIDIA driver: ..."). */
    const char *(*unavailable)(void);
    /* One line about it, for `maskc devices`. */
    void (*describe)(struct text *out);
    /* Larger is better; 0: this device cannot run code of that target. `ordinal` as in load(); if there is no
       such device, the answer is that of the first. */
    int (*prefers)(const struct artifact_target *t, int ordinal);

    /* `ordinal`: which device of that name, or DEVICE_CURRENT. */
    int (*load)(const struct artifact *a, const struct artifact_target *t, int ordinal,
                struct device_code **ret, struct error *e);
    /* The ordinal of the device that holds the code. Null: there is one device, 0. */
    int (*ordinal)(const struct device_code *c);
    void (*unload)(struct device_code *c);

    /* The plan's tables as the device sees them; `layer` is below artifact's layers. */
    void (*tables)(const struct device_code *c, bool transposed, uint32_t layer,
                   struct abi_plan *ret);
    /* Workers (threads, blocks) of a launch; `threads` is what the caller asked for, 0: all. */
    uint32_t (*workers)(const struct device_code *c, uint32_t threads);
    /* True where operands are packed per slice, so that slices should stay in the cache. */
    bool slices;
    /* True where workers pack for themselves, so that the whole batch is better given at once. Null: never.
       l->args are those of a launch of the whole batch. */
    bool (*whole)(const struct device_launch *l);
    /* For checking, not for work: it runs only where it is asked for by name. */
    bool on_request;
    /* Its memory is the host's: a launch checks lengths and offsets before they are used. */
    bool host_memory;
    /* It takes device_launch.starts: of one sequence, or of a slice where `whole` is true. */
    bool starts;
    /* Runs all phases in order for one slice. No allocation, no synchronisation (CUDA). */
    int (*launch)(const struct device_code *c, const struct device_launch *l, struct error *e);

    /* Memory, for the commands and the tests. `sync` waits and reports what went wrong. */
    void *(*allocate)(const struct device_code *c, uint64_t bytes, struct error *e);
    void (*release)(const struct device_code *c, void *p);
    int (*upload)(const struct device_code *c, void *to, const void *from, uint64_t bytes,
                  struct error *e);
    int (*download)(const struct device_code *c, void *to, const void *from, uint64_t bytes,
                    struct error *e);
    int (*sync)(const struct device_code *c, struct error *e);
};

/* CUDA targets: the indices of a phase, and its arguments, which are those of the launch but for `merge`. */
uint64_t phase_indices(enum abi_over over, const struct abi_args *a);
struct abi_args phase_args(enum abi_over over, const struct abi_args *a);
/* Bytes of an element of tensor t of *a: `of_dtype`, those of the kernel's dtype, or those of a
   float for dK and dV of query heads that share a key head. */
static inline uint32_t args_element_bytes(const struct abi_args *a, const struct abi_tensor *t,
                                          uint32_t of_dtype)
{
    return a->group > 1 && (t == &a->d_k || t == &a->d_v) ? sizeof(float) : of_dtype;
}
/* True if the phase goes over the transposed plan. */
bool over_transposed(enum abi_over over);

/* Waves of a CUDA launch: further rows of the grid, whose blocks the GPU starts as others end (templates/cuda/tiled/work_item.h). */
struct wave_grid {
    uint32_t blocks, waves; /* extents of the grid */
};

/* Sets ret[0] and ret[1]: whether launches over the plan, and over the transposed plan, have waves: some layer's list has a work of more than 1.5 times
   the mean cost. Other lists lose more by blocks that start late than they gain. */
void waves_needed(const struct artifact *a, const struct artifact_target *t, bool ret[2]);

/* The grid for so many works, where `fit` blocks fit on the GPU at once and the launch has `waves` waves. */
struct wave_grid waves_grid(uint64_t works, uint32_t fit, uint32_t waves);

extern const struct device device_cpu, device_cuda;
/* A table for each library (emulated/devices_all.c, devices_runtime.c); it ends with null, the best come first. */
extern const struct device *const devices[];
extern const char devices_known[];  /* for messages: all names */
extern const char devices_advice[]; /* ... and what else runs code that no device here runs */

/* In place of an ordinal: the device of the calling thread's context, else the first. */
enum { DEVICE_CURRENT = -1 };

/* "cpu", "cuda:1", ...; *ret_ordinal is DEVICE_CURRENT without a number. Null name: null device (choose by file). */
int device_find(const char *name, const struct device **ret, int *ret_ordinal, struct error *e);
