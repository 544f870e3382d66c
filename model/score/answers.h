/* SPDX-License-Identifier: Apache-2.0 */
/* Exact match and F1 of answers as SQuAD's official scripts compute them (evaluate-v1.1.py, evaluate-v2.0.py), from 0 to 1.
   Texts are UTF-8. */
#pragma once
#include <stdint.h>

enum answer_rules {
    ANSWERS_V1, /* no common word: F1 is 0, also of two empty texts. At least one gold answer */
    ANSWERS_V2, /* gold answers that normalise to nothing do not count; where none is left the gold answer is ""; F1 with
                   an empty text is 1 if both are empty and else 0 */
};

struct answer_score {
    double exact, f1; /* the best over the gold answers, each by itself */
};

/* The text in lower case (Python's str.lower), without ASCII punctuation, then without the words a, an, the (at Python's
   \b), words joined by one space (at Python's str.split). Caller frees. */
char *answer_normalize(const char *text);

struct answer_score answer_score(const char *found, const char *const *gold, uint32_t count,
                                 enum answer_rules rules);
