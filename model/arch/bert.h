/* SPDX-License-Identifier: Apache-2.0 */
/* BERT (Devlin et al. 2019) as transformers has it: model_type "bert". */
#pragma once
#include "model/arch/arch.h"

extern const struct arch arch_bert;
