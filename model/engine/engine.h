/* SPDX-License-Identifier: Apache-2.0 */
/* A BERT model ready to answer: weights packed for the matrix products, attention compiled for its mask.
   Token ids go in, hidden states come out. The heads of model/engine/heads.h and the tasks of model/tasks/tasks.h read
   those.

   Thread-safety: an engine does not change once it is loaded, but by engine_repack and
   engine_attention_swap, while nobody else uses it. Many threads may use it at once, each with a workspace of its own. A call uses at most `threads` OpenMP threads, which belong to the calling thread; a
   server has one thread that calls and many that wait.
   Memory: the engine holds the packed weights of the parts that were asked for; on the CPU word embeddings
   are read where the file is mapped. A workspace grows with its largest batch and allocates no more then. */
#pragma once
#include "model/checkpoint/sentence.h"
#include "model/checkpoint/weights.h"
#include "model/engine/lengths.h"
#include "model/ops/ops.h"
#include "model/tokenizer/tokenizer.h"

struct backend;

struct engine_options {
    const char *mask; /* as maskc's MASK argument; null: the model's own, else dense */
    const char
        *transform; /* "softmax", "sparsegen=LAMBDA"; null: the model's own, else softmax */
    const char *
        drop; /* taken out of the mask: "diagonal" or "random:K" (model/mask/drop.h); null: nothing */
    uint64_t drop_seed;
    uint32_t
        drop_length; /* of texts, as --max-length gives it: random entries are drawn within it; 0: the folder's limit */
    enum element dtype; /* ELEMENT_F32 or ELEMENT_BF16: of activations and packed weights */
    uint32_t threads;   /* 0: all */
    const char *device; /* "cpu", "cuda", "cuda:N", "emulated"; null: the CPU */
    const struct backend *
        backend; /* the caller's own, in the place of the device's: for tests; null: that of `device` */
    uint32_t
        parts; /* PART_ bits of the heads to make ready; one that the files lack is an error that names it */
    enum tokenizer_compat compat;
    void (*progress)(const char *step); /* called before each step; or null */
    bool
        trains; /* for model/train/: attention with a backward pass, weights that can be repacked and their
                     transposed twins */
    bool dropout; /* attention can drop out probabilities; only where it trains */
    bool
        biased; /* attention takes a bias beside its mask (gradients_request.bias); only where it trains */
    const uint8_t
        *kernel; /* what engine_kernel() gave for this mask and these options; null: compile */
    uint64_t kernel_size;
    bool
        outline; /* for gradients_memory: config.json and the mask alone are read. Only where it trains; nothing can be run */
};

struct encoder; /* internal: the backend, weights and kernels */

struct engine {
    struct model_config config;
    struct weights weights;      /* notes, names, and the word embeddings that the CPU reads */
    struct lengths lengths;      /* limits of texts that the folder has */
    struct tokenizer *tokenizer; /* null: the folder has none */
    uint32_t longest;            /* tokens of a sequence at most */
    uint32_t parts;              /* heads that are ready */
    uint32_t threads;            /* resolved */
    enum element dtype;
    const char *device; /* "cpu", "cuda", "emulated" */
    char kernels[16];   /* the device that kernels are loaded on: "cpu", "cuda:1" */
    bool trains, dropout, biased, outline; /* as it was asked for */
    bool phases_cost; /* to measure phases the device waits after each, which takes time */
    struct encoder *encoder;
};

/* Reads and checks a model's folder, packs weights, compiles attention (or takes it from maskc's cache). Null
   with *e set; ERROR_UNAVAILABLE where neither cache nor compiler has the kernel. */
struct engine *engine_load(const char *folder, const struct engine_options *o, struct error *e);
void engine_destroy(struct engine *g); /* null is fine */
/* Attention alone, for another mask; biased or not. The engine must not be used where it failed. */
int engine_reload_attention(struct engine *g, const char *folder,
                            const struct engine_options *o, struct error *e);

/* Target of attention's kernels, in the form that maskc_compile() accepts. */
const char *engine_target(const struct engine *g);

/* The kernel file that attention runs, *ret_size bytes; lives with the engine. */
const uint8_t *engine_kernel(const struct engine *g, uint64_t *ret_size);

/* One text or pair: the first `first_part` tokens have type 0, the rest type 1, or 0 where the model's tokenizer gives
   no types. */
struct sequence {
    const uint32_t *token_ids;
    uint32_t count, first_part;
};

/* Name of a phase of a forward pass. Seconds of phases add up over calls; they are those of the calling thread. */
const char *engine_phase_name(enum engine_phase p);

/* Input of a layer's attention, in the engine's dtype. Row r of head h of query, key and value begins at r * row + h *
   head elements and has head_dim of them. */
struct engine_layer {
    uint32_t layer;
    const void *query, *key, *value;
    uint64_t row, head;
    const void
        *hidden; /* [tokens, H]: the layer's input, which attention's output is added to */
};

/* Called with each layer, once all of it is computed. */
struct engine_watch {
    void (*layer)(void *context, const struct engine_layer *seen);
    void *context;
};

/* Packs new parameters for the products, in place. Called after every step of the optimiser; only where the engine
   trains. */
int engine_repack(struct engine *g, struct error *e);

/* ---- another mask on the same weights ---- */

struct attention;
struct mask;
/* Compiles attention for m [layers or 1][heads or 1], which is not kept, of at most g's positions (relative: as many as
   now). o: as loaded; its mask is ignored. Null with *e set. */
struct attention *engine_attention_new(const struct engine *g, const struct engine_options *o,
                                       const struct mask *m, struct error *e);
void engine_attention_destroy(struct attention *a); /* null is fine */
/* Exchanges *a and the engine's own. Nobody may use the engine meanwhile, and a workspace serves one of them alone: it
   may have recorded passes. */
void engine_attention_swap(struct engine *g, struct attention *a);

/* ---- forward pass ---- */

struct backend;
struct backend_workspace;

/* Memory and results of a call; zeroed: empty. */
struct engine_workspace {
    uint32_t sequences, tokens;
    int32_t *offsets; /* [sequences + 1]: rows of sequence s are offsets[s] .. offsets[s+1] */
    void *hidden;     /* [tokens, H] in the engine's dtype: the last hidden states */
    double *seconds;  /* [PHASE_COUNT], the caller's, or null */
    const struct engine_watch *watch; /* or null */
    /* Internal: */
    uint64_t offsets_bytes, hidden_bytes; /* as allocated */
    const struct backend *backend;        /* whose memory it is; null: none yet */
    struct backend_workspace *memory;
};
void engine_workspace_finish(struct engine_workspace *w);

/* Runs the encoder over n sequences without any padding. The result is in *w until the next call with it;
   w->hidden only after engine_fetch. Where a sequence is empty, longer than g->longest or has a number beyond
   the vocabulary the call fails and *w keeps its result. The other sequences of a batch change a
   sequence's result only by rounding. */
int engine_encode(const struct engine *g, const struct sequence *list, uint32_t n,
                  struct engine_workspace *w, struct error *e);

/* Makes w->hidden readable. Heads do not need it. */
int engine_fetch(const struct engine *g, struct engine_workspace *w, struct error *e);

/* One row of w->hidden, after engine_fetch, as f32 [H]. */
void engine_row(const struct engine *g, const struct engine_workspace *w, uint32_t row,
                float *ret);
