/* SPDX-License-Identifier: Apache-2.0 */
/* Training on the CPU: functions of its row in the table, and the memory for gradients. */
#pragma once
#include "model/backend/cpu/train/backward.h"
#include "model/backend/training.h"

struct backend_training {
    struct backend_workspace panels; /* their workspaces, and attention's */
    struct buffer tape, attention, heads, places;
    struct layer_tape *layer; /* [layers] */
};

/* Lay out all arrays for a batch of these sizes. */
void train_lay_out_tape(const struct engine *g, const struct gradients_sizes *s,
                        struct arena *a, struct layer_tape *layer, struct tape *tape);
void train_lay_out_lse(const struct engine *g, const struct gradients_sizes *s, struct arena *a,
                       struct layer_tape *layer);
void train_lay_out_backward(const struct engine *g, const struct gradients_sizes *s,
                            struct arena *a, struct backward *b);
void train_lay_out_heads(const struct engine *g, const struct gradients_sizes *s,
                         struct arena *a, struct backward *b);

/* ---- of the table (model/backend/training.h) ---- */
struct backend_training *cpu_training_new(const struct engine *g);
void cpu_training_destroy(struct backend_training *m);
int cpu_train(const struct gradients_request *r, struct backend_training *m,
              struct batch_loss *loss, struct error *e);
char *cpu_training_identity(const struct engine *g);
int cpu_training_memory(const struct engine *g, const struct gradients_sizes *s,
                        struct gradients_memory *ret, struct error *e);
void cpu_training_attention(const struct backend_training *m, struct gradients_array *ret);
int cpu_gradient_norm(const struct train_state *s, uint32_t threads, double *ret,
                      struct error *e);
int cpu_gradient_squares(const struct train_state *s, uint32_t threads, double *ret,
                         struct error *e);
int cpu_update(const struct train_state *s, const struct update *u, uint32_t threads,
               struct error *e);
