/* SPDX-License-Identifier: Apache-2.0 */
/* A BERT model ready to answer: weights packed for the matrix products, attention compiled for its
   mask. Token numbers go in, hidden states come out, and the heads of model/heads.h and the tasks of
   model/tasks.h read those.

   Thread-safety: an engine does not change once it is loaded and may be used from many threads at
   once, each with a room of its own. A call uses at most `threads` OpenMP threads, all of which
   belong to the calling thread; a server has one thread that calls and many that wait.
   Memory: the engine holds the packed weights of the parts that were asked for; the embeddings are
   read where the file is mapped. A room grows to engine_room_bytes() of its largest batch and stops
   allocating then. */
#pragma once
#include "model/checkpoint/sentence.h"
#include "model/checkpoint/weights.h"
#include "model/tokenizer/tokenizer.h"

struct engine_options {
    const char *mask; /* as maskc's MASK argument; null: the model's own, else dense */
    const char
        *transform;     /* "softmax", "sparsegen=LAMBDA"; null: the model's own, else softmax */
    enum element dtype; /* ELEMENT_F32 or ELEMENT_BF16: of activations and packed weights */
    uint32_t threads;   /* 0: all */
    const char *device; /* "cpu", "cuda", "cuda:N", "emulated"; null: the CPU */
    uint32_t parts; /* PART_ bits of the heads to make ready; those that the files lack are an
                              error that names them */
    enum tokenizer_compat compat;
    void (*progress)(const char *step); /* told what is done next; null: nobody */
};

struct encoder; /* internal: packed weights and kernels */

struct engine {
    struct model_config config;
    struct weights weights;            /* for their notes and names */
    struct sentence_settings sentence; /* its defaults where the folder has none */
    struct tokenizer *tokenizer;       /* null: the folder has none */
    uint32_t longest;                  /* tokens of a sequence at most */
    uint32_t parts;                    /* heads that are ready */
    uint32_t threads;                  /* resolved */
    enum element dtype;
    const char *device; /* "cpu", "cuda", "emulated" */
    bool phases_cost; /* to measure phases the device waits after each: the pass takes longer */
    struct encoder *encoder;
};

/* Reads and checks a model's folder, packs weights, compiles the attention (or takes it from maskc's
   cache). Null with *e set; ERROR_UNAVAILABLE where this machine has no compiler for a mask that the
   cache does not hold. */
struct engine *engine_load(const char *folder, const struct engine_options *o, struct error *e);
void engine_destroy(struct engine *g); /* null is fine */

/* A text as the tokenizer leaves it: the first `first_part` tokens have type 0, the rest 1. */
struct sequence {
    const uint32_t *number;
    uint32_t count, first_part;
};

/* Where time goes: seconds of the calling thread, added up over calls. */
enum engine_phase {
    PHASE_EMBEDDINGS,
    PHASE_PROJECTION, /* query, key, value */
    PHASE_ATTENTION,
    PHASE_OUTPUT, /* of attention */
    PHASE_FEED_FORWARD,
    PHASE_NORMS,
    PHASE_COUNT
};
const char *engine_phase_name(enum engine_phase p);

/* Told of each layer's queries and keys, once all of them are there: row r, head h begins at
   r * row + h * head elements of the engine's dtype, and has head_dim of them. */
struct engine_watch {
    void (*layer)(void *context, uint32_t layer, const void *query, const void *key,
                  uint64_t row, uint64_t head);
    void *context;
};

/* What a call needs and leaves behind; zeroed: empty. */
struct engine_room {
    uint32_t sequences, tokens;
    int32_t *offsets; /* [sequences + 1]: rows of sequence s are offsets[s] .. offsets[s+1] */
    void *hidden;     /* [tokens, H] in the engine's dtype: the last hidden states */
    double *seconds;  /* [PHASE_COUNT], the caller's, or null */
    const struct engine_watch *watch; /* or null */
    struct arena *arena;              /* internal */
};
void engine_room_finish(struct engine_room *room);
/* Of one whose batches hold up to so many tokens. */
uint64_t engine_room_bytes(const struct engine *g, uint32_t tokens, uint32_t sequences);

/* Runs the encoder over n sequences without any padding; room->hidden and the rest of room are the
   result until the next call with it; engine_fetch comes before room->hidden is read. Fails, room unchanged in what counts, where a sequence is empty
   or longer than g->longest or has a number beyond the vocabulary. Results of a sequence depend on
   the other sequences of the batch only through rounding. */
int engine_encode(const struct engine *g, const struct sequence *list, uint32_t n,
                  struct engine_room *room, struct error *e);

/* Makes room->hidden what engine_encode promises: there is work to do only where the hidden states lie on a
   device. Heads need none of it. */
int engine_fetch(const struct engine *g, struct engine_room *room, struct error *e);

/* One row of room->hidden, which was fetched, as f32 [H]. */
void engine_row(const struct engine *g, const struct engine_room *room, uint32_t row,
                float *ret);
