/* SPDX-License-Identifier: Apache-2.0 */
/* Inside training on a driver. All of it runs on the backend's one stream, in order. Gradients flow as f32 [T, H], the
   stream of graph.h; what a product takes is of the engine's dtype. */
#pragma once
#include "model/backend/gpu/workspace.h"
#include "model/base/arena.h"
#include "model/gradients/gradients.h"
#include "model/graph/graph.h"

/* Rows of a target that are worked on together: their logits are that many times the vocabulary. */
enum { WORDS_CHUNK = 1024 };

/* Lists of 32-bit words that a pass reads, sent at once. Passes use two stages alternately: one is filled and sent while the
   kernels of the pass before run. The device then copies the words to one place, where the kernels of all passes read them:
   recorded kernels have addresses. */
struct stage {
    uint32_t *word; /* pinned */
    uint32_t count;
    uint32_t *device;      /* the same words there */
    struct gpu_event done; /* the end of the last copy that reads them */
};
enum {
    STAGES = 2,
    STAGE_PLACES = STAGES + 1 /* on the device: the stages, and the place that kernels read */
};
struct stages {
    struct stage each[STAGES];
    uint32_t turn;            /* index of the stage in use */
    uint32_t capacity;        /* words of each */
    uint32_t *words, *device; /* of all */
    uint32_t *current;        /* of the pass that runs, on the device */
    struct gpu_stream stream; /* of the copies, if open */
    bool open;
};
uint32_t stage_add(struct stage *s, const void *words, uint64_t count); /* where it begins */

/* Rows to be added up by what they are of, in two steps: pieces of at most SEGMENT_ROWS rows of one target, then the pieces
   of each target. Places in the stage. The counts are bounds that depend only on sizes: the last pieces may be empty, and the
   last targets TRAIN_NOWHERE. */
enum { SEGMENT_ROWS = 64 };
struct segments {
    uint32_t pieces, targets;
    uint32_t from, begin;             /* [rows], [pieces + 1] */
    uint32_t begin_of_target, target; /* [targets + 1], [targets] */
};

/* Where the lists of a target begin among the staged inputs. Each list ends with the added rows (gpu_train_target_rows()). */
struct staged_target {
    uint32_t row;    /* [rows]: read; of the added ones 0 */
    uint32_t to;     /* [rows]: their gradients' rows; of the added ones TRAIN_NOWHERE */
    uint32_t label;  /* words, [rows]: of the added ones TRAIN_NOWHERE */
    uint32_t weight; /* words: a float */
    uint32_t place;  /* other targets, [rows][2] */
};

struct inputs {
    uint32_t number, position, type; /* [T] each */
    uint32_t place;                  /* [T][2] */
    uint32_t offsets, sample;        /* [sequences + 1], [sequences] */
    struct segments words, positions, types;
    struct staged_target target[TARGETS_MOST];
};

/* Masked rows, a chunk at a time. */
struct words_arrays {
    void *gathered, *normed, *d_dense; /* [chunk, H] of the dtype */
    float *pre, *d;                    /* [chunk, H] */
    struct norm_tape norm;
    float *logits;               /* [chunk, V] */
    void *d_logits;              /* [chunk, V] of the dtype; f32: logits */
    struct train_row_loss *loss; /* [words]: of all chunks */
};

/* Rows of a target with few labels. */
struct label_arrays {
    float *x, *dx;          /* [rows, H] */
    float *logits;          /* [rows, labels], then [labels]: sums of their gradient */
    void *gathered, *d_pre; /* [rows, H] of the dtype */
    float *pre;             /* [rows, H] */
};

/* Sums of columns whose partial sums are there: gpu_train_end_sums() adds them all. */
struct pending_sums {
    struct train_sum sum[TRAIN_SUMS];
    uint32_t count;
    uint64_t used; /* elements of the partial sums */
};

/* What the host reads after a part of a pass, in pinned memory, while the device goes on. */
struct result {
    void *host;
    uint64_t bytes;
    struct gpu_event done;
};

/* All that the arguments of recorded launches of the encoder depend on, besides the memory of the workspace. Passes with equal
   keys differ in the words of the stage and in the parameters. No member leaves a gap. */
struct batch_key {
    const float *value, *gradient; /* of the state */
    const float *bias, *bias_gradient, *bias_part;
    const struct maskc_kernel *attention;
    uint64_t bias_form; /* bits: one for each layer; along diagonals */
    uint64_t seed;      /* of dropout: one for a run */
    double hidden_dropout, attention_dropout;
    uint64_t sequences, tokens, longest, recompute, loss_only;
};

/* The same of heads. */
struct heads_key {
    struct batch_key batch;
    double dropout;
    struct {
        uint64_t head, rows;
    } target[TARGETS_MOST]; /* memory of heads depends on these alone */
};

/* Segments of the encoder: the forward pass, 1 + k the way back through layer k, then that through the embeddings. Segments of
   heads: those of target k begin at 2 k. */
enum { SEGMENT_FORWARD, SEGMENT_LAYERS, HEAD_SEGMENTS = 2 };

struct backend_training {
    struct backend_workspace
        ops;      /* its stream is the backend's: for the operations of inference */
    void *device; /* all arrays */
    uint64_t bytes;
    uint64_t attention_bytes; /* of these */
    struct pending_sums sums;
    struct layer_tape *layer; /* [layers] */
    struct stages stages;
    struct recordings passes, heads; /* by struct batch_key and struct heads_key */
    struct result losses, logits;    /* of the words, of a target with few labels */
};

/* A pass. */
struct op_batch {
    const struct gradients_request *request;
    const struct engine *g;
    const struct encoder *c;
    struct backend_state *state;
    struct backend_training *memory;
    struct gradients_sizes sizes; /* of the padded batch */
    struct inputs inputs;
    struct stage *stage;
    const uint32_t *staged; /* the stage on the device */
    struct tape tape;
    struct graph_back back;
    float *sum;     /* [T, H]: of products, of pieces */
    float *partial; /* sums over chunks of rows */
    uint64_t partials;
    void *attention;
    uint64_t attention_bytes;
    struct words_arrays words;
    struct label_arrays labels;
    struct recorded *recorded, *recorded_heads; /* null: nothing is recorded or replayed */
    const struct train_target *words_target;    /* whose losses are not added up yet, or null */
    struct target_loss *words_loss;             /* its sum */
};

struct attention_call gpu_train_attention_call(const struct op_batch *p, uint32_t layer);
/* Sizes are counted where a->base is null. */
void gpu_train_lay_out(struct op_batch *p, struct arena *a);

int gpu_train_run(const struct op_batch *p, enum train_op op, const struct train_args *a,
                  struct error *e);
/* Sums of x's columns are added to `to`, and those of x z to with_z; where these are null they are left out. They are
   there after gpu_train_end_sums(). */
struct column_sums {
    uint32_t rows, columns;
    const void *x, *z;
    bool wide, wide_z; /* f32 whatever the dtype */
    float *to, *with_z;
};
int gpu_train_columns(const struct op_batch *p, const struct column_sums *s, struct error *e);
/* Adds the sums of dy, gradients of the dtype, to the biases of its parameters. */
int gpu_train_bias(const struct op_batch *p, const struct op_parameters *o, uint32_t out,
                   const void *dy, struct error *e);
int gpu_train_end_sums(const struct op_batch *p, struct error *e);
/* Back through the norm n, in place, with the gradients of its gain and shift. */
struct norm_back {
    const struct norm *norm;
    const struct norm_tape *tape;
    uint32_t rows, layer;
    enum parameter_id gain, shift;
    bool wide; /* the tape is f32 */
};
int gpu_train_norm_back(const struct op_batch *p, const struct norm_back *n, float *d,
                        struct error *e);
/* The same beside what args does with d after it: the dropout of its rows. */
int gpu_train_norm_back_then(const struct op_batch *p, const struct norm_back *n,
                             struct train_args *args, struct error *e);
/* The fields of args about the dropout of a site, at rows of the batch. */
void gpu_train_drop(const struct op_batch *p, uint32_t site, struct train_args *a);
/* y = x W^T, or added; without bias. */
int gpu_train_product(const struct op_batch *p, const struct gpu_product *product,
                      struct error *e);

/* Submits the work of a target of words, whose losses gpu_train_end_words() adds up. */
int gpu_train_words(struct op_batch *p, uint32_t target, struct batch_loss *loss,
                    struct error *e);
/* Waits for the losses of the last target of words, if there was one. */
int gpu_train_end_words(struct op_batch *p, struct error *e);
/* Submits the forward pass of a target with few labels; the end waits for its logits, takes the loss and submits the way back.
   One target at a time. */
int gpu_train_labels(struct op_batch *p, uint32_t target, struct error *e);
int gpu_train_end_labels(struct op_batch *p, uint32_t target, struct batch_loss *loss,
                         struct error *e);
int gpu_train_embeddings(const struct op_batch *p, float *d, struct error *e);
/* Words that the stage has at most for a batch of these sizes. */
uint64_t gpu_train_stage_most(const struct gradients_sizes *s);
/* Lists what the pass reads in p->stage. */
void gpu_train_list(struct op_batch *p);
/* Does so in the next stage, and sends it there; the backend's stream waits for that. The stage has room
   for any batch of its size: what is allocated is a function of sizes. */
int gpu_train_stage(struct op_batch *p, struct error *e);
void gpu_train_stages_finish(const struct backend_state *s, struct stages *stages);

/* ---- results.c ---- */

/* Copies to r->host after the work that was submitted, and does not wait. */
int gpu_train_read(const struct op_batch *p, struct result *r, const void *from, uint64_t bytes,
                   struct error *e);
/* Waits until r->host is written. */
int gpu_train_reach(const struct op_batch *p, const struct result *r, struct error *e);
void gpu_train_result_finish(const struct backend_state *s, struct result *r);

/* ---- padded.c ---- */

/* The sizes that a batch is padded to: rows, sequences and the longest one; rows of targets. */
struct gradients_sizes gpu_train_padded(const struct engine *g,
                                        const struct gradients_sizes *s);
/* ret: [sequences + 1] of the padded batch. */
void gpu_train_padded_offsets(const struct gradients_sizes *padded, const struct train_batch *b,
                              int32_t *ret);

/* Rows of a target, those that are added at its end included. */
uint32_t gpu_train_target_rows(const struct train_target *t);

/* ---- recorded.c ---- */

/* Finds the recordings of passes like this one, whose memory is there. */
void gpu_train_find_recorded(struct op_batch *p);
/* Part `index` of the encoder's pass, or of the heads: its launches depend only on the key. Sums of columns must not wait before or
   after it. */
struct train_segment {
    bool of_heads;
    uint32_t index;
    int (*run)(void *op_batch, uint32_t index, struct error *e);
};
/* Runs the segment if there was no such pass before, else replays its recording, which is made if there is none. */
int gpu_train_segment(struct op_batch *p, const struct train_segment *s, struct error *e);
/* Memory of the workspace moves: recordings have its old addresses. */
void gpu_train_forget(struct backend_training *m);

extern const struct ops gpu_train_ops;

/* ---- functions of the backend's table (model/backend/training.h) ---- */
int gpu_training_check(const struct model_config *c, const struct backend *b, struct error *e);
int gpu_gradient_norm(const struct train_state *s, uint32_t threads, double *ret,
                      struct error *e);
int gpu_update(const struct train_state *s, const struct update *u, uint32_t threads,
               struct error *e);
int gpu_refill(struct backend_state *s, void *kept, enum element type, const float *value,
               uint64_t count, struct error *e);
int gpu_repack(struct backend_state *s, const struct linear *l,
               const struct weight_view *weight, const float *bias, struct error *e);
int gpu_repack_end(struct backend_state *s, bool failed, struct error *e);
/* Bytes of the device that a step of the optimiser works in. */
uint64_t gpu_update_bytes(const struct engine *g);
int gpu_array_is_finite(struct backend_state *s, const float *from, uint64_t count, bool *ret,
                        struct error *e);
struct backend_training *gpu_training_new(const struct engine *g);
void gpu_training_destroy(struct backend_training *m);
int gpu_train(const struct gradients_request *r, struct backend_training *m,
              struct batch_loss *loss, struct error *e);
char *gpu_training_identity(const struct engine *g);
int gpu_training_memory(const struct engine *g, const struct gradients_sizes *s,
                        struct gradients_memory *ret, struct error *e);
void gpu_training_use(const struct backend_state *s, struct training_use *ret);
void gpu_training_attention(const struct backend_training *m, struct gradients_array *ret);
