/* SPDX-License-Identifier: Apache-2.0 */
/* DuoAttention (Xiao et al. 2024): a gate value for each layer and key-value head in full_attention_heads.tsv. Heads with
   large values attend to all earlier keys, the others to the first tokens (the sink) and the most recent ones. */
#pragma once
#include "masks/base/error.h"
#include "masks/mask.h"
#include "masks/request.h"
#include <stddef.h>

struct duo {
    uint32_t layers, heads;
    double *value;         /* [layers, heads], owned */
    uint32_t sink, recent; /* of heads with small values */
};

/* The text of full_attention_heads.tsv: a line for each layer, numbers between tabs. `sink` and `recent` stay 0. */
int duo_parse(const char *text, size_t size, const char *name, struct duo *ret,
              struct error *e);
/* "sink_size" and "recent_size" of config.json. */
int duo_parse_config(const char *json, size_t size, const char *name, struct duo *ret,
                     struct error *e);
void duo_finish(struct duo *g); /* a zeroed one is fine */

/* The mask of r->n tokens. Full heads: those whose value, clipped to 0..1, is at least r->threshold (0.5 by default); with
   r->has_keep the largest r->keep percent, as many as numpy.quantile() leaves, of equal ones the later ones. r->heads, a
   multiple of g->heads: query heads, each group of neighbours has the mask of its key-value head. */
struct mask *duo_mask(const struct duo *g, const struct mask_request *r, struct error *e);

/* The file r->name, and config.json in its folder. */
struct mask *duo_read(const struct mask_request *r, struct error *e);
