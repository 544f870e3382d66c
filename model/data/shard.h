/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a DATA folder, little-endian, mapped when they are read:

     PART-00000.tokens, ..   documents and their sentences as token ids
     PART.samples            what a sample is made of: ranges of those tokens

   PART is train or held-out. Each begins with a struct shard_header; in .tokens then stand
     u32 document[documents + 1]   the first sentence of each document
     u32 sentence[sentences + 1]   the first token of each sentence
     u16 or u32 token[tokens]      u16 where the vocabulary has less than 65536 tokens
   and in .samples
     struct sample_record sample[samples]
     u8 follows[(vocabulary + 7) / 8]   bit t: token t follows in a word (tokenizer_follows())
   with zeros up to the next multiple of 8 behind each array. Reading checks all of it: versions, sizes, both sums,
   ascending offsets, ids below the vocabulary, records inside the tokens. */
#pragma once
#include "masks/base/file.h"
#include <stdbool.h>

enum { SHARD_VERSION = 1, SHARD_MAX_TOKENS = INT32_MAX, DATA_MAX_LENGTH = 1 << 20 };
enum shard_kind { SHARD_TOKENS = 1, SHARD_SAMPLES = 2 };
enum data_part { DATA_TRAIN, DATA_HELD_OUT, DATA_PARTS };
enum data_pairing { PAIRING_NEXT, PAIRING_FULL }; /* next-sentence pairs; full sentences */

struct shard_sum {
    uint64_t low, high; /* XXH3-128 */
};

struct shard_header {
    char magic[8];
    uint32_t version, kind;
    struct shard_sum header_sum; /* of the header with zeros here */
    struct shard_sum body_sum;   /* of all bytes behind it */
    struct shard_sum vocabulary_sum;
    struct shard_sum tokens_sum; /* in .samples: of the body_sum of each .tokens */
    uint32_t vocabulary, token_bytes;
    uint32_t begin, end, mask, pad; /* [CLS] [SEP] [MASK] [PAD] */
    uint32_t part;
    uint32_t shard; /* which of the .tokens; in .samples how many there are */
    uint32_t length, pairing, dupe, reserved;
    double short_share, held_out;
    double entropy; /* in .samples: of the part's tokens, in nats */
    uint64_t seed;
    uint64_t documents, sentences, tokens, samples; /* in .samples: of the whole part */
};

/* Up to two runs of tokens of a part, counted through its shards: [CLS] a [SEP] or [CLS] a [SEP] b [SEP]. */
struct sample_record {
    uint64_t a, b;
    uint32_t a_count;
    uint32_t b_count : 31, random : 1; /* b is of another document */
};

struct data_shard {
    struct file file;
    struct shard_header header;
    const uint32_t *document, *sentence;
    const void *token;
    const struct sample_record *sample;
    const uint8_t *follows;
};

extern const char *const data_part_names[DATA_PARTS];

/* "FOLDER/PART-00003.tokens" and "FOLDER/PART.samples"; the caller frees. */
char *shard_path(const char *folder, enum data_part part, uint32_t index);
char *samples_path(const char *folder, enum data_part part);

/* Fails with one line that begins with the path. */
int shard_open(const char *path, enum shard_kind kind, struct data_shard *ret, struct error *e);
/* The same of bytes that are there already, 8-byte aligned; they must outlive *ret. */
int shard_read(const uint8_t *bytes, size_t size, const char *path, enum shard_kind kind,
               struct data_shard *ret, struct error *e);
void shard_close(struct data_shard *s); /* a zeroed one is fine */

/* A file that is written from its first array to its last. */
struct shard_writer;
struct shard_writer *shard_writer_new(const char *path);
/* Appends an array or a part of it; pad: zeros up to a multiple of 8 bytes. Failures are told by shard_writer_end. */
void shard_writer_add(struct shard_writer *w, const void *bytes, uint64_t size);
void shard_writer_pad(struct shard_writer *w);
/* Writes the header, its sums filled in; it must count what was added. Destroys the writer. */
int shard_writer_end(struct shard_writer *w, struct shard_header *h, struct error *e);
void shard_writer_destroy(
    struct shard_writer *w); /* the file is not whole then; null is fine */

/* A whole .tokens file: offsets and tokens as the header counts them, tokens narrowed to token_bytes. */
int shard_write(const char *path, struct shard_header *h, const uint32_t *document,
                const uint32_t *sentence, const uint32_t *token, struct error *e);

struct tokenizer;
struct shard_sum shard_vocabulary_sum(const struct tokenizer *t);

static inline bool shard_sum_equal(struct shard_sum a, struct shard_sum b)
{
    return a.low == b.low && a.high == b.high;
}

static inline uint32_t shard_token(const struct data_shard *s, uint64_t k)
{
    return s->header.token_bytes == 2 ? ((const uint16_t *)s->token)[k]
                                      : ((const uint32_t *)s->token)[k];
}
