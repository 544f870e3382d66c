/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of classes, with scikit-learn's conventions. gold[k] and found[k] are class indices. All are NaN
   if there is nothing to score (count 0). */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* The share of equal pairs. */
double score_accuracy(const uint32_t *gold, const uint32_t *found, size_t count);

/* 2 TP / (2 TP + FP + FN) of one class; 0 where neither gold nor found has it. */
double score_f1(const uint32_t *gold, const uint32_t *found, size_t count, uint32_t positive);

/* Matthews correlation of any number of classes (Gorodkin's R_K); 0 where gold or found is constant.
   Indices are below `classes`. */
double score_matthews(const uint32_t *gold, const uint32_t *found, size_t count,
                      uint32_t classes);
