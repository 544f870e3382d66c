/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel families: the sets of templates that can compute attention. A family is one file here, one row of
   kernel_families[], and its folder of templates. Everyone who must know what kernels can do asks the family; the kind of
   a target says only what a machine is. */
#pragma once
#include "gen/cost/price.h"
#include "gen/family/launch.h"
#include "gen/tables/can.h"
#include "gen/tables/item_kernel.h"
#include "gen/target.h"
#include "masks/base/text.h"
#include <stdbool.h>

enum family_pass { FAMILY_FORWARD, FAMILY_BACKWARD, FAMILY_PASSES };

/* The shape that templates have. */
struct family_shape {
    uint32_t block_rows;
    uint32_t threads; /* CUDA: of a block */
};

struct kernel_family {
    const char *name;  /* "cuda_tiled" */
    const char *title; /* as `plan` names it; null: it goes without saying */
    bool matrix;       /* a matrix unit does the dense work */
    /* Is the pass of such a kernel this family's? Families that stand before it in the table go first. */
    bool (*applies)(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass);
    uint32_t (*can)(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass); /* bits of enum family_can */
    /* What kernels beside the row-block kernel take; null: there are none. */
    struct item_kernels (*item_kernels)(const struct target *t, const struct kernel_request *r);
    struct family_shape (*shape)(const struct target *t, const struct kernel_config *c);
    /* Adds the pass's phases, and what it needs of the workspace. */
    void (*launch)(const struct target *t, const struct kernel_config *c, enum family_pass pass,
                   struct launch_record *ret);
    /* The numbers that its templates read: macros, enums, and the beginning of an enum that the emitter ends. */
    void (*numbers)(const struct target *t, const struct kernel_config *c, struct text *out);
    uint32_t bias_launches; /* of the gradient of a bias */
    /* Templates: `shared` has files that several families include, "common" below it and `folder` all others. The
       units have a kernel each; those that take longest to compile come first. */
    const char *shared, *folder;
    const char *backward_unit[2], *forward_unit, *bias_unit;
};

extern const struct kernel_family *const kernel_families[]; /* ends with null */

/* The first of kernel_families[] that applies. */
const struct kernel_family *family_of(const struct target *t, const struct kernel_request *r,
                                      enum family_pass pass);
/* What the kernels of all passes can do: a plan is made for these together. */
uint32_t family_can(const struct target *t, const struct kernel_request *r);
/* Of the forward pass's family, as both passes over a plan take an item alike. */
struct item_kernels family_item_kernels(const struct target *t, const struct kernel_request *r);
struct family_shape family_shape(const struct target *t, const struct kernel_config *c);
bool family_is_matrix(const struct target *t, const struct kernel_request *r);
/* What the prices of such kernels depend on, for n rows a head. */
struct price_shape family_price_shape(const struct target *t, const struct kernel_config *c,
                                      uint32_t n, uint32_t heads);
/* The machine that plans assume by default. */
const char *family_machine(const struct target *t, const struct kernel_request *r);
void family_launch(const struct target *t, const struct kernel_config *c,
                   struct launch_record *ret);
