/* SPDX-License-Identifier: Apache-2.0 */
/* config.json: the sizes and settings of an encoder, by the table of its architecture. Settings that cannot be honoured are
   refused by name. Keys that it does not know are kept, and written again as they were. */
#pragma once
#include "masks/base/error.h"
#include "model/arch/config.h"

int config_read(const char *folder, struct model_config *ret, struct error *e);
/* From a JSON object, of which a reference is kept. */
int config_parse(json_t *json, struct model_config *ret, struct error *e);
void config_finish(struct model_config *c); /* a zeroed one is fine */

/* The parts that the class names (PART_ENCODER alone where it names none or an unknown one), and the label of a
   class: id2label's, else "LABEL_3". */
uint32_t config_parts(const struct model_config *c);
const char *config_label(const struct model_config *c, uint32_t label, char buffer[24]);

/* A class that the architecture's table lacks: the encoder is the architecture's, what the heads compute is not known. */
bool config_class_is_unknown(const struct model_config *c);
/* Refuses an unknown class. */
int config_check_class(const struct model_config *c, struct error *e);

/* True if the layer sees all tokens, false if only those of its window. */
bool config_layer_is_global(const struct model_config *c, uint32_t layer);

/* The text of a config.json for *c; caller frees. Keys of c->json that *c does not hold stay. */
char *config_write(const struct model_config *c, const char *dtype);
