/* SPDX-License-Identifier: Apache-2.0 */
/* Which label of a model stands for which class of a task. Names are compared without regard to ASCII case. The names that
   HuggingFace's data sets give the classes count, too (SST-2's "negative" for "0"). Labels without names, as LABEL_0, stand
   for the classes of a task by number. */
#pragma once
#include "model/data/tasks/table.h"
#include "model/tasks/tasks.h"

/* The label of each of n classes, no two the same, in ret[n]. False: *ret_missing is a class without one. */
bool labels_of_classes(const struct model_config *c, const struct data_task *t,
                       const char *const *name, uint32_t n, uint32_t *ret,
                       uint32_t *ret_missing);
/* True if all labels are called LABEL_0, LABEL_1 and so on. */
bool labels_unnamed(const struct model_config *c);
