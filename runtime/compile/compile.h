/* SPDX-License-Identifier: Apache-2.0 */
/* Source to binary for one target: the host compiler as a child process, or NVRTC by dlopen. */
#pragma once
#include "gen/emit/emit.h"
#include "masks/base/error.h"
#include "runtime/artifact/artifact.h"
#include "runtime/base/cache.h"
#include "runtime/device/machine.h"

_Static_assert((int)ARTIFACT_MAX_IMAGES == (int)SOURCE_MAX_UNITS,
               "a kernel file holds an image for each unit");

struct binary {
    /* NVRTC: one for each unit of the source; owned. */
    struct code_image image[ARTIFACT_MAX_IMAGES];
    uint32_t n_images;
    char compiler[96];
    struct kernel_resources kernel[ARTIFACT_MAX_KERNELS];
    uint32_t n_kernels;
    char remark
        [128]; /* NVRTC: why ptxas serialises products of a kernel, compiled now; else empty */
};

/* Looks in the cache (null: none), then among the kernels compiled ahead (CPU targets; not where $MASKC_CC names a
   compiler), then asks the host compiler or NVRTC, by the target's kind. The key is the source's bytes, the flags, the
   architecture and, in the cache, the compiler's version: never the mask. Without a compiler the cache gives what any
   made. Errors: no compiler (ERROR_UNAVAILABLE, with what to install); the compiler's first lines where it fails. */
int compile_source(const struct source *s, const struct target *t, struct cache *cache,
                   struct binary *ret, struct error *e);
/* Key of everything that decides the code except the compiler. */
struct cache_key source_key(const struct source *s, const struct target *t);
/* Would such a source be taken from the kernels compiled ahead? */
bool compiled_ahead(const struct source *s, const struct target *t);
void binary_finish(struct binary *b);
/* One more image, copied. */
void binary_add(struct binary *b, const void *bytes, uint64_t size);

/* The host compiler's arguments for a CPU target, all but the files; ended by null. The array points
   into the struct itself: do not copy it. */
enum { HOST_MAX_FLAGS = 24 };
struct host_flags {
    const char *flag[HOST_MAX_FLAGS];
    char arch[32];
};
void host_flags(const struct target *t, struct host_flags *ret);

/* Host: $MASKC_CC, else clang, else gcc, else cc. "clang 14.0.6"; empty where there is none. */
extern const char *const host_compilers[]; /* ends with null */
const char *host_compiler_version(void);

/* Identity of the compiler without running it (a quarter of the time of a cached compile): the executable file, its
   size and its times. Null if these do not identify it (a wrapper such as ccache): then call host_compiler_version().
   Caller frees. */
char *host_compiler_identity(void);
int host_compile(const struct source *s, const char *const *flags, struct binary *ret,
                 struct error *e);

/* The command a person can type in the emitted folder; for `maskc emit`. Appends to out. */
void compile_command(const struct source *s, const struct target *t, struct text *out);

/* NVRTC: "13.0", or empty with the reason in *e. */
const char *nvrtc_version(struct error *e);
/* Units are compiled side by side; the result does not depend on how many at a time. */
int nvrtc_compile(const struct source *s, const struct target *t, struct binary *ret,
                  struct error *e);

/* "cpu" on this machine: the best x86-64 level for such a kernel (null: for any) that this process may use. */
const char *machine_cpu_target(const struct kernel_request *r);

/* "sm_90a": the best row of the table for a GPU here; ordinals as in "cuda:N", or DEVICE_CURRENT. Null without a usable GPU. */
const char *machine_cuda_target(int ordinal);

/* A target list ("cpu,sm_80,cuda") to table rows for such a kernel, without repeats. "cuda" is the
   GPU here, "cuda:1" the second, as far as its driver makes tensor maps; without one "cuda" is sm_80, sm_90a and
   compute_80. */
int targets_resolve(const char *list, const struct kernel_request *f, const struct target **ret,
                    uint32_t capacity, uint32_t *ret_count, struct error *e);
