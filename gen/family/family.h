/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel families: the sets of templates that can compute attention. A family is one file here, one row of
   kernel_families[], and its folder of templates. It states what its kernels can do; the kind of a target only describes
   a machine. A plan is built for each family that computes a request. The cheapest is chosen, a later family of the
   table only if it is over LEAST_FAMILY_GAIN cheaper. */
#pragma once
#include "gen/cost/price.h"
#include "gen/family/launch.h"
#include "gen/family/step_shape.h"
#include "gen/tables/can.h"
#include "gen/tables/item_kernel.h"
#include "gen/target.h"
#include "masks/base/text.h"
#include <stdbool.h>

enum family_pass { FAMILY_FORWARD, FAMILY_BACKWARD, FAMILY_PASSES };

/* Shape of the kernels. */
struct family_shape {
    uint32_t block_rows;
    uint32_t threads; /* CUDA: of a block */
};

struct kernel_family {
    const char *name;  /* "cuda_tiled" */
    const char *takes; /* the accepted requests, for an error message */
    bool matrix;       /* a matrix unit does the dense work */
    bool
        alone; /* its passes go with no other family's: they share names, or hand over more than O and LSE */
    uint32_t
        least_length; /* chosen for shorter masks on request only: its times there are unknown */
    /* True if the kernels compute this pass of the request on the target, whatever other families do. */
    bool (*applies)(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass);
    uint32_t (*can)(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass); /* bits of enum family_can */
    /* Turns the rates of the target's machine into those of these kernels; null: they are the same. */
    void (*rates)(const struct target *t, const struct kernel_config *c, struct machine *m);
    /* Row blocks of a plan that are in flight on a processor of a GPU in a pass; null: not known. */
    uint32_t (*in_flight)(const struct target *t, const struct kernel_config *c,
                          enum machine_pass pass);
    /* Items that kernels other than the row-block kernel accept; null: there are no such kernels. */
    struct item_kernels (*item_kernels)(const struct target *t, const struct kernel_request *r);
    struct family_shape (*shape)(const struct target *t, const struct kernel_config *c);
    /* Kernel shapes of a pass, where kernels read steps (gen/steps); null: they read items. config.step_shape is an index
       of this list. Returns how many. */
    uint32_t (*step_shapes)(const struct kernel_request *r, enum machine_pass pass,
                            const struct step_shape *ret[STEP_SHAPES_MOST]);
    /* Adds to *ret the phases of the pass and the workspace that it needs. */
    void (*launch)(const struct target *t, const struct kernel_config *c, enum family_pass pass,
                   struct launch_record *ret);
    /* The numbers that the templates of this family alone read, once for both passes; null: there are none. */
    void (*numbers)(const struct target *t, const struct kernel_config *c, struct text *out);
    /* The numbers that all families of this kind of target read: macros, enums, and the beginning of an enum that the
       emitter ends. */
    void (*common_numbers)(const struct target *t, const struct kernel_config *c,
                           struct text *out);
    uint32_t bias_launches; /* of the gradient of a bias */
    /* Templates: `shared` has files that several families include, "common" below it and `folder` all others. The
       units have a kernel each; those that take longest to compile come first. */
    const char *shared, *folder;
    const char *backward_unit[2], *forward_unit, *bias_unit;
};

enum { FAMILIES_MOST = 8 };
extern const struct kernel_family *const kernel_families[]; /* ends with null */

/* By name; null with *e set, naming the known ones. */
const struct kernel_family *family_find(const char *name, struct error *e);
/* All that compute the pass and accept the mask's length without being requested, in the order of the table. Returns their
   number, at least 1 for any request that kernel_request_check() accepts. */
uint32_t family_list(const struct target *t, const struct kernel_request *r,
                     enum family_pass pass, const struct kernel_family *ret[FAMILIES_MOST]);

/* The family of a config: its own, else the first that computes the pass. */
const struct kernel_family *family_of(const struct target *t, const struct kernel_config *c,
                                      enum family_pass pass);
/* Capabilities that the kernels of all passes share: one plan serves them together. */
uint32_t family_can(const struct target *t, const struct kernel_config *c);
/* Item kernels of the forward pass's family: both passes over a plan treat an item alike. */
struct item_kernels family_item_kernels(const struct target *t, const struct kernel_config *c);
struct family_shape family_shape(const struct target *t, const struct kernel_config *c);
/* Kernel shapes of the pass's family; 0: its kernels read items, or there is no such pass. */
uint32_t family_step_shapes(const struct target *t, const struct kernel_config *c,
                            enum machine_pass pass,
                            const struct step_shape *ret[STEP_SHAPES_MOST]);
bool family_is_matrix(const struct target *t, const struct kernel_config *c);
/* Inputs of the prices of such kernels, for n rows a head. */
struct price_shape family_price_shape(const struct target *t, const struct kernel_config *c,
                                      uint32_t n, uint32_t heads);
/* The price of a pass on a machine, by the rates of the pass's family. */
struct price family_price(const struct machine *m, enum machine_pass pass,
                          struct price_shape s);
/* Such a price times an effort, as coefficients of the machine's rates: for fitting. Returns the seconds that no rate is part of. */
double family_terms(const struct machine *m, enum machine_pass pass, struct price_shape s,
                    const struct effort *e, double ret[RATES]);
/* Row blocks in flight in a pass on a GPU, at least 1. */
uint32_t family_in_flight(const struct machine *m, enum machine_pass pass,
                          struct price_shape s);
/* The machine that plans assume by default. */
const char *family_machine(const struct target *t, const struct kernel_request *r);
void family_launch(const struct target *t, const struct kernel_config *c,
                   struct launch_record *ret);
