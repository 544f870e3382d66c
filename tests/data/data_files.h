/* SPDX-License-Identifier: Apache-2.0 */
/* Text, a vocabulary and DATA folders for the tests of model/data, in a folder of their own. What cannot be made fails
   the test. */
#pragma once
#include "model/data/prepare.h"
#include "model/data/samples.h"

/* A temporary folder, as a group's setup and teardown. */
int data_begin(void **state);
int data_end(void **state);
extern char data_folder[];

void data_path(char *ret, size_t size, const char *name); /* in the folder */
void data_write(const char *name, const void *bytes, size_t size);

/* Words aa, ab, .. jj and the pieces ##ka .. ##kj. */
struct tokenizer *data_tokenizer(void);

/* A text of random documents, sentences and words, the same for the same seed. */
void data_write_text(const char *name, uint32_t documents, uint32_t seed);

/* Data made from text.txt, a text of 60 documents that data_make() writes. Options may be changed before it. */
struct data_recipe {
    struct prepare_options options;
    const char *name; /* of the folder */
    uint32_t documents;
};
struct data_recipe data_recipe(const struct tokenizer *t, const char *name);
struct prepare_stats data_make(struct data_recipe *r);

/* Fails unless `seen` of `draws` with probability p is within four sigma of what is expected. */
void data_near(double seen, double draws, double p);
