/* SPDX-License-Identifier: Apache-2.0 */
/* A paragraph to sentences, by rules for English.

   A sentence may end at '.', '!' or '?' (a run of them, closing quotes and brackets behind it included) before a
   blank, and it does where what follows can begin one: an upper-case letter, a digit, a character beyond ASCII, or
   an opening quote or bracket before one of these. A full stop does not end it after
     - an abbreviation of the table in sentences.c (Mr., e.g.), or before a digit one like No., Fig., pp.;
     - one capital letter (J. Smith), unless it is the word I;
     - a number that begins the sentence (1. Introduction).
   Ideographic full stops, exclamation and question marks end a sentence wherever they stand. */
#pragma once
#include <stddef.h>

/* Hands on each sentence without the blanks around it, in order; none is empty. */
void sentences_split(const char *text, size_t size,
                     void (*sink)(void *context, const char *sentence, size_t size),
                     void *context);
