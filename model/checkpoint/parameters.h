/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a BERT model, as HuggingFace names them without the prefix "bert.". One table gives name,
   shape, part and first value of each. Linear weights are [out, in], row-major. */
#pragma once
#include "model/checkpoint/config.h"
#include <stdint.h>

enum first_value { VALUE_NORMAL, VALUE_NORMAL_PAD, VALUE_ZERO, VALUE_ONE };

enum { PARAMETER_NAME_BYTES = 96 };

struct parameter {
    char name[PARAMETER_NAME_BYTES];
    uint32_t rank;
    uint64_t shape[2], count; /* count: elements */
    uint32_t part;            /* one PART_ bit */
    enum first_value first;   /* NORMAL_PAD: normal, but row pad_token_id is 0 */
    bool by_word; /* its first dimension is the vocabulary, and files may have more rows */
};

/* All parameters of the parts, in a fixed order; caller frees. The MLM decoder is one of them only if it is
   not tied. */
struct parameter *parameters_list(const struct model_config *c, uint32_t parts,
                                  uint32_t *ret_count);

/* The parameter's name for a name in a file: without "bert.", gamma and beta as weight and bias, dense_act as
   dense. False for buffers that are no parameter (position_ids). */
bool parameter_name(const char *file_name, char ret[PARAMETER_NAME_BYTES]);

/* The parameter's name in a file that transformers loads: with "bert." where the architecture has a head. */
void parameter_file_name(const struct parameter *p, const struct model_config *c,
                         char ret[PARAMETER_NAME_BYTES]);
