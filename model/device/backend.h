/* SPDX-License-Identifier: Apache-2.0 */
/* A device other than the CPU, as the engine sees it: memory, products of matrices, row kernels, and
   attention through maskc. Two drivers stand behind one table: "cuda" (driver API and cuBLASLt, both
   looked for at run time) and "emulated" (the same row kernels and attention kernels on this CPU,
   watched; products by plain loops). The CPU itself needs none of this (model/cpu/forward.c).

   Thread-safety: a backend does not change once it is open, and many threads may use it, each with a lane
   of its own; what a lane is given runs in order. */
#pragma once
#include "gen/emit/emit.h"
#include "model/cpu/rows.h"
#include "model/linear.h"
#include "templates/abi.h"
#include "templates/encoder_ops/args.h"

enum rows_entry { ROWS_EMBED, ROWS_NORM, ROWS_FINISH, ROWS_GATHER, ROWS_MEAN, ROWS_ENTRIES };

/* A stream and what runs in it needs; the driver's. Zeroed: none yet. */
struct lane {
    void *stream;
    void *workspace;
};

struct backend;
struct recording; /* of what a lane was given: it can be run again at once */

struct backend_driver {
    const char *name;   /* as runtime/device's */
    const char *target; /* that attention is compiled for: "cuda" or a row of gen/target.h */
    bool text_only;     /* attention needs no binary */
    bool rounds_up;     /* batches are rounded up to few sizes; recordings are kept of these */

    int (*open)(struct backend *b, int ordinal, const struct source *rows, struct error *e);
    void (*close)(struct backend *b);
    int (*lane_open)(const struct backend *b, struct lane *l, struct error *e);
    void (*lane_close)(const struct backend *b, struct lane *l);

    /* Bytes of the device, 256-byte aligned. `clear` sets them to 0, in the lane's order. */
    void *(*allocate)(const struct backend *b, uint64_t bytes, struct error *e);
    void (*release)(const struct backend *b, void *p);
    int (*clear)(const struct backend *b, struct lane *l, void *p, uint64_t bytes,
                 struct error *e);
    /* `send` may return before it is done: *from stays as it is until the lane is waited for. */
    int (*send)(const struct backend *b, struct lane *l, void *to, const void *from,
                uint64_t bytes, struct error *e);
    /* Waits for all that the lane was given. */
    int (*fetch)(const struct backend *b, struct lane *l, void *to, const void *from,
                 uint64_t bytes, struct error *e);
    int (*wait)(const struct backend *b, struct lane *l, struct error *e);

    /* y = x W^T. Where *fused comes in true, bias and activation follow if the driver can do them in one
       go; it goes out as what was done. x: [rows, in], y: [rows, out]. */
    int (*product)(const struct backend *b, struct lane *l, const struct linear *w,
                   uint32_t rows, const void *x, void *y, bool *fused, struct error *e);
    int (*rows)(const struct backend *b, struct lane *l, enum rows_entry entry,
                const struct rows_args *args, uint64_t blocks, struct error *e);

    /* Null where rounds_up is false. From record on nothing runs, until record_end hands it over (null
       with *e set; what was recorded is then forgotten). */
    int (*record)(const struct backend *b, struct lane *l, struct error *e);
    struct recording *(*record_end)(const struct backend *b, struct lane *l, struct error *e);
    int (*replay)(const struct backend *b, struct lane *l, const struct recording *r,
                  struct error *e);
    void (*forget)(const struct backend *b, struct recording *r);
};

extern const struct backend_driver backend_cuda, backend_emulated;
extern const char *const rows_entries[ROWS_ENTRIES]; /* their names */

struct backend {
    const struct backend_driver *driver;
    int ordinal;
    struct driver_state *state; /* the driver's own */
    void **kept;                /* the weights: released when it is closed */
    uint32_t n_kept, kept_room;
};

/* For a name as runtime/device's device_find takes it; *ret is null for "cpu" and a null name.
   ERROR_UNAVAILABLE where this machine has no such device. */
int backend_open(const char *name, const struct rows_features *f, struct backend **ret,
                 struct error *e);
void backend_close(struct backend *b); /* null is fine */

/* Memory with these bytes that lives as long as the backend. */
void *backend_keep(struct backend *b, const void *bytes, uint64_t size, struct error *e);

/* A weight matrix [out, in] and its bias, as linear_pack takes them. *ret needs no linear_finish. */
int backend_linear(struct backend *b, const struct linear_shape *shape, const float *weight,
                   const float *bias, struct linear *ret, struct error *e);
/* gain and shift go to the device; the host's are freed. n needs no free. */
int backend_norm(struct backend *b, struct norm *n, struct error *e);
