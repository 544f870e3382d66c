/* SPDX-License-Identifier: Apache-2.0 */
/* From config and target to source: template files as they are, plus one small generated header
   "kernel_config.h", plus the record of how to launch it. The mask is not in the source: its content is in
   the plan's tables, so masks with the same kernel_config share a source. */
#pragma once
#include "gen/family/launch.h"
#include "gen/target.h"
#include "masks/base/error.h"
#include "masks/base/text.h"
#include <stdint.h>

struct source_file {
    const char *
        name; /* "attention.c", "kernel_config.h", "cpu/tiles.h": the path that #include uses */
    const char *text;
};

/* The parts of a CUDA source that are compiled side by side. */
enum { SOURCE_MAX_UNITS = 4 };

struct source {
    const struct source_file *files; /* files[0] is the one to compile */
    uint32_t n_files;
    /* files[1] .. files[n_units] are all that files[0] includes, and may be compiled one by one; 0: files[0]
       is no such list. */
    uint32_t n_units;
    char *config_header; /* owned; also one of the files */
    struct launch_record launch;
};

/* Fails where MASKC_TEMPLATES names no folder. */
int emit_check_templates(struct error *e);

/* kernel_request_check must have passed. */
struct source *emit_source(const struct target *t, const struct kernel_config *c);
/* Makes it the source of another config with the same request: a new generated header and launch record, the same
   template files. */
void source_configure(struct source *s, const struct target *t, const struct kernel_config *c);

/* The row kernels of a model (templates/encoder_ops), or those of its training (templates/train_ops): what its matrix
   products leave to do, for CUDA targets. The launch record is empty; args.h of each folder says how they are launched. */
struct encoder_ops_features {
    enum abi_dtype dtype; /* ABI_F32 or ABI_BF16 */
    uint32_t hidden;      /* length of a row, 1 or more */
    bool trains;          /* those of training */
};
struct source *encoder_ops_source(const struct encoder_ops_features *f);
void source_destroy(struct source *s);

/* files[0] with every #include "FILE" replaced by that file, the first time, and by nothing
   after; appended to out. Names that the source has no file for stay as they are. */
void source_flatten(const struct source *s, struct text *out);

/* The generated header alone: for goldens. Deterministic: no date, path or pointer. */
void emit_config_header(const struct target *t, const struct kernel_config *c,
                        struct text *out);

/* The template files, embedded at build time (generated: templates_embedded.c); the environment
   variable MASKC_TEMPLATES names a folder that is read in their place. Ended by a null name. */
extern const struct source_file templates_embedded[];
