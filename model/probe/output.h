/* SPDX-License-Identifier: Apache-2.0 */
/* Effect of an entry (query i, key j) of a head on the layer's output. Without it, and with the rest of its row scaled
   up to sum to 1 again, the head's o_i = sum_j A_ij v_j becomes o_i - A_ij / (1 - A_ij) (v_j - o_i). To the first order
   the residual stream, x_i before attention is added to it, then moves, relative to its size, by

       P_ij = A_ij |W (v_j - o_i)| / |x_i|       W: the head's columns of the output projection, [hidden, head_dim].

   |W u|^2 = u^T G u with G = W^T W, and G = R^T R with R [head_dim, head_dim] (Cholesky): so |W u| = |R u|, and n vectors
   R v_j are made once. Differences are taken before they are squared: where a query looks at one key alone v_j is near
   o_i, and the expanded v^T G v + o^T G o - 2 o^T G v would keep no digit. */
#pragma once
#include "model/probe/probe.h"

/* R of every layer and head. */
struct output_factors {
    uint32_t layers, heads, head_dim;
    float *factor; /* [layers, heads, head_dim, head_dim], upper triangles */
};

struct output_factors output_factors_new(const struct engine *g);
void output_factors_finish(struct output_factors *f); /* a zeroed one is fine */

/* probability [n, n], from probe_run, becomes the P above. A row whose x_i is zero becomes zero. */
void probe_output(const struct engine *g, const struct output_factors *f, const struct probe *p,
                  float *probability);
