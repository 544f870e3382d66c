/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of a backend as the host sees them. Nothing is copied where the host may read them itself. */
#pragma once
#include "model/backend/training.h"

/* Values of count elements from `from` on, which lie in `array`: there, or in a copy, which becomes *ret_own. The caller
   frees *ret_own, which is null without a copy. Null with *e set. */
const float *array_view(const struct training_device *d, float *array, const float *from,
                        uint64_t count, float **ret_own, struct error *e);

/* An array and host memory of its size. */
struct mirror {
    struct training_device device;
    float *array; /* the backend's */
    float *
        host; /* the same address where the host may read the array, else a zeroed buffer of the host's */
    uint64_t count;
};

/* Begins a mirror of an existing array; its values are not copied to *ret yet. */
void mirror_begin(const struct training_device *d, float *array, uint64_t count,
                  struct mirror *ret);
/* The host's memory; the array stays. A zeroed one is fine. */
void mirror_finish(struct mirror *m);
int mirror_write(const struct mirror *m, struct error *e); /* host to array */
int mirror_read(const struct mirror *m, struct error *e);  /* array to host */
