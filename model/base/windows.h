/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a question and a text that may be too long into windows: [CLS] question [SEP], part of the text's tokens, [SEP].
   Neighbouring windows overlap. Training and inference cut alike. Windows and questions (without special tokens) are as
   long as in BERT's run_squad.py; its doc_stride is how far a window moves, here 128 tokens overlap, as in transformers' run_qa.py. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { WINDOW_TOKENS = 384, WINDOW_OVERLAP = 128, WINDOW_QUESTION = 64, WINDOW_LEAST = 8 };

struct windows {
    uint32_t question; /* tokens before the text's; the last is [SEP] */
    uint32_t fits;     /* tokens of the text in a window */
    uint32_t overlap, text, first;
    bool done;
};

/* most: tokens of a window, WINDOW_LEAST or more. overlap: tokens that two windows share, at most half of those that fit;
   0: WINDOW_OVERLAP. question: tokens before the text's, `special` of them [CLS], [SEP] and the like; it is cut to
   WINDOW_QUESTION tokens beside those, or to half a window with them. text: its tokens. */
struct windows windows_begin(uint32_t most, uint32_t overlap, uint32_t question,
                             uint32_t special, uint32_t text);
/* The next window has the text's tokens *first .. *first + *count. False: there was no other. A text without tokens has
   one window. */
bool windows_next(struct windows *w, uint32_t *first, uint32_t *count);
