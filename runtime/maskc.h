/* SPDX-License-Identifier: Apache-2.0 */
/* maskc.h - compile an attention mask once, launch it many times.

   For sequence b, layer l, head h:  S = scale * Q K^T; the active keys of query i are those j with
   M[l][h][i][j] = 1 and i, j < length[b]; P = softmax over the active keys (or sparsegen-lin with
   lambda < 1, Martins & Niculae 2016 / SSAF); O = dropout(P) V. A query without an active key gives
   O = 0, LSE = -inf and no gradient; one with a score of NaN or +inf gives NaN in both. Kernels compute
   whole tiles: a NaN or an infinity in a row may reach rows that share a tile with it. Rows beyond a
   length are not read.

   A kernel compiled with a soft mask reads an array X beside the mask, for learning one: it is added to
   the scores (bias: P = softmax(S + X)) or multiplied to the probabilities (scale: O = dropout(P X)
   V), for active keys alone, and the backward pass gives its gradient.

   Thread-safety: a loaded kernel may be launched from many threads at once, each launch with its
   own workspace; every other function is safe on different objects.
   Errors: functions return 0 or a code of enum maskc_code and fill *error (null is fine) with a
   complete text; outputs are untouched on failure.
   Zero in an option means its default.

   Two libraries: libmaskc has all of this; libmaskc-runtime, a small one, has all but what compiles:
   it loads kernel files and launches them, on the devices cpu and cuda.

   Versions: maskc_options, maskc_launch and maskc_info begin with struct_size, their size as the caller
   was compiled: `= {.struct_size = sizeof launch}`. 0 stands for the first version, below. Later versions
   add fields at the end, of which zero means what was done before. Set, or zero, the whole struct. */
#ifndef MASKC_H
#define MASKC_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MASKC_VERSION "0.2.0"

#if defined(__GNUC__)
#define MASKC_API __attribute__((visibility("default")))
#else
#define MASKC_API
#endif

enum maskc_code {
    MASKC_OK = 0,
    MASKC_FAILED = 1,      /* the thing asked about does not hold */
    MASKC_BAD_INPUT = 2,   /* bad input or usage */
    MASKC_UNAVAILABLE = 3, /* this machine cannot: no compiler, no GPU, no NVRTC */
};

struct maskc_error {
    int code;
    char text[4096];
};

/* MASKC_TF32: f32 tensors; CUDA targets only. */
enum maskc_dtype { MASKC_F32 = 0, MASKC_BF16 = 1, MASKC_F16 = 2, MASKC_TF32 = 3 };
enum maskc_transform { MASKC_SOFTMAX = 0, MASKC_SPARSEGEN = 1 };
enum maskc_soft { MASKC_SOFT_NONE = 0, MASKC_SOFT_BIAS = 1, MASKC_SOFT_SCALE = 2 };
enum maskc_align { MASKC_ALIGN_START = 0, MASKC_ALIGN_END = 1 };
enum maskc_pass { MASKC_FORWARD = 0, MASKC_BACKWARD = 1 };

/* Bits of maskc_launch.flags. MASKC_SCALE_GIVEN: a scale of 0 is zero and not the default. */
enum maskc_launch_flag { MASKC_SCALE_GIVEN = 1 };

/* ---- compile: libmaskc alone ---- */

struct maskc_options {
    size_t struct_size;
    const char *targets; /* "cpu" (default), or a comma list: "x86-64-v3,sm_80,sm_90a" */
    enum maskc_dtype dtype;
    uint32_t head_dim; /* 64 by default; 16..256, a multiple of 8 */
    enum maskc_transform transform;
    float lambda;     /* sparsegen's, < 1; softmax: 0 */
    int dropout;      /* 1: the kernel can drop out attention probabilities */
    int forward_only; /* 1: no backward pass */
    uint32_t length;  /* -n: for expressions and the gallery, or to crop; 0: the mask's own */
    uint32_t heads;   /* repeats a one-head mask; 0: the mask's own */
    const char *machine;   /* row of the machine table, or "calibrated"; null: this machine as
                              `maskc calibrate` stored it where it runs the target, else by target */
    const char *cache_dir; /* null: $XDG_CACHE_HOME/maskc or ~/.cache/maskc; "": no cache */
    enum maskc_soft soft;
    uint32_t unused; /* 0 */
    /* Grouped-query attention: heads of K and V, which divide those of Q; query head h has key head h / (heads /
       kv_heads). Every query head has its own mask. 0: as many as query heads. */
    uint32_t kv_heads;
    /* Number of keys if it is not that of queries (cross-attention, a chunk against its prefix); 0:
       the same. `length` is then the number of queries, and the mask's length is the larger of the
       two. Queries and keys take its first positions (start) or its last ones (end): with more
       keys, query i is then at position i + kv_length - length, as in torch's causal_lower_right.
       Not with a soft mask, starts or offsets. If kv_length equals the number of queries, the kernel is an ordinary one:
       its launches refuse key_lengths, and another key_length. */
    uint32_t kv_length;
    enum maskc_align align;
    /* Tokens in another order, as `maskc order` finds it: position p holds token order[p], a permutation. The kernel file
       has it (maskc_kernel_order). Null: none. order_length must be the mask's length, 0 without an
       order. Without kv_length. */
    const uint32_t *order;
    uint32_t order_length;
    /* The mask is a graph: a query sees all keys that `hops` steps or fewer reach, itself among them. hops is 0 without
       has_hops. */
    int has_hops;
    uint32_t hops;
};

/* A kernel file in memory. */
struct maskc_bytes {
    uint8_t *data; /* freed by maskc_bytes_free */
    size_t size;
};

/* `mask` is whatever the command line takes: a file, a gallery name, an expression. */
MASKC_API int maskc_compile(const char *mask, const struct maskc_options *options,
                            struct maskc_bytes *ret, struct maskc_error *error);

/* From memory: bits[((l * heads + h) * n + i) * n + j] != 0 where query i sees key j. */
MASKC_API int maskc_compile_dense(const uint8_t *bits, uint32_t layers, uint32_t heads,
                                  uint32_t n, const struct maskc_options *options,
                                  struct maskc_bytes *ret, struct maskc_error *error);

/* A mask as runs of active keys: for lengths at which n x n bytes are too many. Row r = (l * heads + h) * n + i is query
   i of head h of layer l; it sees the keys runs[2 k] .. runs[2 k + 1] - 1 for rows[r] <= k < rows[r + 1]. rows has
   layers * heads * n + 1 elements and begins with 0. Runs of a row ascend and do not overlap. */
MASKC_API int maskc_compile_runs(const uint64_t *rows, const int32_t *runs, uint32_t layers,
                                 uint32_t heads, uint32_t n,
                                 const struct maskc_options *options, struct maskc_bytes *ret,
                                 struct maskc_error *error);

MASKC_API int maskc_bytes_save(const struct maskc_bytes *bytes, const char *path,
                               struct maskc_error *error);
MASKC_API void maskc_bytes_free(struct maskc_bytes *bytes); /* null or zeroed is fine */

/* ---- load: from here on both libraries ---- */

struct maskc_kernel;

/* A kernel file contains native code: loading one is running it. `device` is "cpu", "cuda",
   "cuda:1", "emulated" (libmaskc alone), or null: what the file holds and the machine has, GPU first. "cuda" is the GPU
   of the caller's current context, else the first one; "cuda:0" is the first one. "cpu:0" and "emulated:0" are "cpu"
   and "emulated": torch may name a CPU so. The kernel uses the caller's context if
   it belongs to that GPU, else the GPU's primary context. */
MASKC_API int maskc_load(const char *path, const char *device, struct maskc_kernel **ret,
                         struct maskc_error *error);
MASKC_API int maskc_load_memory(const void *data, size_t size, const char *device,
                                struct maskc_kernel **ret, struct maskc_error *error);
/* Null is fine. On CUDA this waits for all work of the kernel's context, which ends a capture of any of its streams into a graph:
   destroy the kernel before or after. */
MASKC_API void maskc_kernel_destroy(struct maskc_kernel *kernel);

/* ---- query ---- */

struct maskc_info {
    size_t struct_size; /* set before the call; after it: bytes that were filled */
    uint32_t length, heads, layers, head_dim;
    enum maskc_dtype dtype;
    enum maskc_transform transform;
    float lambda;
    int dropout, backward;
    const char *target, *device; /* the code that was picked; live as long as the kernel */
    enum maskc_soft soft;
    uint32_t unused;
    uint32_t kv_heads, kv_length; /* of K and V; `length` is the queries' */
    uint32_t ordinal;             /* of the GPU that holds the kernel; other devices: 0 */
};

MASKC_API void maskc_kernel_info(const struct maskc_kernel *kernel, struct maskc_info *ret);
/* Text that `maskc plan` prints; lives as long as the kernel. */
MASKC_API const char *maskc_plan_text(const struct maskc_kernel *kernel);

/* The order of a kernel compiled with --order, [length], or null: position p of Q, K, V and O holds token order[p]. The
   caller permutes. Lives with the kernel. */
MASKC_API const uint32_t *maskc_kernel_order(const struct maskc_kernel *kernel);

/* ---- launch ---- */

/* Element (b, i, h, d) is data[b * batch + i * row + h * head + d], strides in elements. All
   strides 0 means contiguous [B, N, H, D]; K, V and their gradients have N and H of their own. Packed batches: batch is ignored, row offsets[b] + i,
   contiguous [T, H, D]. Pointers and strides are multiples of 16 bytes. */
struct maskc_tensor {
    void *data;
    int64_t batch, row, head;
};

/* The caller's own threads: calls task(context, k) once for each k in 0..count-1, on any threads, in any order, at
   the same time or one after the other, and returns when all have ended. */
typedef void maskc_parallel(void *pool, uint32_t count, void (*task)(void *context, uint32_t k),
                            void *context);

struct maskc_launch {
    size_t struct_size;
    enum maskc_pass pass;
    uint32_t batch;  /* sequences; 0: 1 */
    uint32_t length; /* N of padded tensors; packed: the longest sequence; 0: the mask's */
    uint32_t layer;
    float scale;            /* 0: 1 / sqrt(head_dim), unless flags has MASKC_SCALE_GIVEN */
    const int32_t *lengths; /* [batch] in 0..N on the device, or null */
    const int32_t
        *offsets;    /* [batch + 1] on the device: a packed batch, T = tokens rows; or null */
    uint64_t tokens; /* packed: T = offsets[batch] */
    float dropout;   /* probability; needs a kernel compiled with dropout */
    uint64_t seed;
    struct maskc_tensor query, key, value, out; /* out: written forward, read backward */
    struct maskc_tensor grad_out, grad_query, grad_key, grad_value; /* backward */
    float *lse; /* [B, H, N] (packed [H, T]): written forward, read backward; sparsegen: tau */
    void *workspace; /* maskc_workspace_bytes(), 64-byte aligned; on the device */
    uint64_t workspace_bytes;
    uint32_t threads; /* CPU; 0: all */
    void *stream;     /* CUDA */
    /* Kernels with a soft mask, n being the mask's length: X, contiguous [H, n, n], shared by the
       batch and read by both passes; its gradient, summed over the batch, and the sums of that along
       diagonals, [H, 2n - 1] with offset j - i = o at o + n - 1: null where not wanted. Both are
       written in full, 0 where no key is active. A bias of -inf is as good as an inactive key; one
       below -1e37 may count as -inf. */
    const float *soft;
    float *grad_soft, *grad_soft_diagonals;
    /* Sample number of each sequence, [batch] on the device; null: its position in the batch.
       Dropout draws depend on (seed, sample, head, i, j), so a sequence that keeps its number keeps
       its draws, in any batch and at any place in it. */
    const uint32_t *samples;
    /* CPU: a launch of several threads runs on these in place of OpenMP's, so that one pool serves the whole program;
       null: OpenMP's. `threads` is the most that `parallel` is called with; 0: as without it. Same results. */
    maskc_parallel *parallel;
    void *pool; /* its first argument */
    /* Padded batches on the CPU: [batch], the row at which each sequence begins, in 0..N; null: 0. `lengths` counts
       from there (null: to N), and so do the mask, the soft mask and dropout's draws. Rows outside give O = 0, LSE =
       -inf and no gradient; those of Q, K, V and dO are not read. */
    const int32_t *starts;
    /* Kernels with another number of keys than of queries. key_length: rows of padded K, V and
       their gradients; 0: as many keys as the kernel has; fewer use the mask's upper left corner.
       `lengths` are those of queries; key_lengths, [batch] in 0..key_length on the device, or null,
       those of keys. Other kernels (maskc_info: kv_length equals length): 0 or the queries' length, and null; length and
       lengths are those of both. */
    uint32_t key_length;
    const int32_t *key_lengths;
    uint32_t flags; /* bits of enum maskc_launch_flag */
};

/* Bytes of workspace that a launch with these sizes needs. Reads pass, batch, length, key_length
   and threads. Kernels with a soft mask may need less where grad_soft is given, which is read too.
   With kv_heads it also reads offsets and tokens. */
MASKC_API uint64_t maskc_workspace_bytes(const struct maskc_kernel *kernel,
                                         const struct maskc_launch *launch);

/* Runs one pass on buffers the caller owns. No allocation and no synchronisation (CUDA: asynchronous
   on the stream, capturable in a graph). Every output element of the batch is written. Lengths and offsets in a GPU's memory
   are not read by the host, so that none are refused: a padded sequence is cut to the mask, and rows of a packed one beyond
   the mask's length are not written. Offsets outside 0..T are errors of the GPU. */
MASKC_API int maskc_run(const struct maskc_kernel *kernel, const struct maskc_launch *launch,
                        struct maskc_error *error);

#ifdef __cplusplus
}
#endif
#endif
