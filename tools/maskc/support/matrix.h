/* SPDX-License-Identifier: Apache-2.0 */
/* Table of the work that kernels support: kernel families x targets x types x passes x features. A cell is a command line of
   `plan`, at up to four lengths: its requests are made, checked and offered to the families in the same way. */
#pragma once
#include "gen/family/family.h"
#include "tools/maskc/options.h"

/* SUPPORT_OTHER: kernels of another row compute it. */
enum support_status { SUPPORT_REFUSED, SUPPORT_OTHER, SUPPORT_EMULATED, SUPPORT_RUN };
enum {
    SUPPORT_TARGETS_MOST = 6,
    SUPPORT_FAMILIES_MOST = 3,
    SUPPORT_ROWS_MOST = 96,
    SUPPORT_FEATURES_MOST = 16,
    SUPPORT_HEADS = 2
};
enum support_pass { SUPPORT_FORWARD = 1, SUPPORT_BACKWARD = 2 };

struct support_feature {
    const char *name,
        *option; /* option: of the command line, "" if length or keys are the feature */
    struct options options;
    uint32_t length;  /* 0: any length of the list */
    bool longer_keys; /* twice as many keys as queries */
};
extern const struct support_feature support_features[]; /* ends with a null name */

struct support_cell {
    enum support_status status;
    bool asked;      /* computed, but only if --family names these kernels */
    uint32_t length; /* of the mask that was tried */
};

/* Types, targets and passes that have the same cells. */
struct support_row {
    uint32_t dtypes;                    /* a bit for each enum abi_dtype */
    const struct kernel_family *family; /* null: every request of these types is refused */
    uint32_t targets;                   /* a bit for each row of targets[] */
    uint32_t passes;                    /* bits of enum support_pass */
    struct support_cell cell[SUPPORT_FEATURES_MOST];
};

/* Hardware on which kernels have run and were checked against float64. Every other combination has run in emulation only. */
struct support_evidence {
    const char *targets[SUPPORT_TARGETS_MOST]; /* ends with a null */
    const char *families[SUPPORT_FAMILIES_MOST];
    uint32_t dtypes; /* a bit for each enum abi_dtype */
    const char *where;
};
extern const struct support_evidence support_evidence[]; /* ends with a null where */

/* Returns the number of rows, in the order of family, type and target. */
uint32_t support_make(struct support_row ret[SUPPORT_ROWS_MOST]);
const char *support_passes(const struct support_row *row); /* "forward", "backward", "both" */
/* The status of the row's first cell that these kernels compute, else SUPPORT_REFUSED. */
enum support_status support_status(const struct support_row *row);
const char *support_status_name(enum support_status status);
