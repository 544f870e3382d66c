/* SPDX-License-Identifier: Apache-2.0 */
/* Is a DATA folder that was cut, changed, mixed or made for something else refused, by name and with one line? */
#include "masks/base/memory.h"
#include "model/base/order.h"
#include "tests/data/data_files.h"
#include "tests/data/shard_sign.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>

struct bytes {
    uint8_t *at;
    size_t size;
};

static struct bytes read_bytes(const char *name)
{
    char path[256];
    struct file f;
    struct error e = {0};
    data_path(path, sizeof path, name);
    if (file_open(path, &f, &e) < 0)
        fail_msg("%s", e.text);
    struct bytes b = {memory_copy(f.bytes, f.size), f.size};
    file_close(&f);
    return b;
}

static void make(const char *name)
{
    struct tokenizer *t = data_tokenizer();
    struct data_recipe r = data_recipe(t, name);
    data_make(&r);
    tokenizer_destroy(t);
}

static void must_refuse(const uint8_t *bytes, size_t size, enum shard_kind kind,
                        const char *expected)
{
    struct data_shard s;
    struct error e = {0};
    uint8_t *copy = memory_copy(bytes, size); /* so that a sanitizer sees what lies behind it */
    assert_int_equal(shard_read(copy, size, "FILE", kind, &s, &e), -1);
    assert_int_equal(e.kind, ERROR_INPUT);
    if (!strstr(e.text, expected) || strncmp(e.text, "FILE: ", 6) || strchr(e.text, '\n'))
        fail_msg("'%s', '%s' is expected in it", e.text, expected);
    free(copy);
}

static void cut_and_changed_files_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"cut/train-00000.tokens", "cut/train.samples"};
    make("cut");
    for (int k = 0; k < 2; k++) {
        enum shard_kind kind = k ? SHARD_SAMPLES : SHARD_TOKENS;
        struct bytes b = read_bytes(names[k]);
        assert_true(b.size > 1000);
        for (size_t size = 0; size < b.size; size++)
            must_refuse(b.at, size, kind, "");
        for (size_t at = 0; at < b.size; at++) {
            b.at[at] ^= 1 << at % 8;
            must_refuse(b.at, b.size, kind, "");
            b.at[at] ^= 1 << at % 8;
        }
        must_refuse(b.at, b.size, k ? SHARD_TOKENS : SHARD_SAMPLES, "another kind");
        free(b.at);
    }
}

#define IN_HEADER(field) \
    offsetof(struct shard_header, field), sizeof(((struct shard_header *)NULL)->field)

static const struct {
    size_t at, size;
    uint64_t value;
    const char *expected;
} forgeries[] = {
    {IN_HEADER(magic), 0, "not a file of maskbert prep"},
    {IN_HEADER(version), SHARD_VERSION + 1, "version 2, 1 is expected"},
    {IN_HEADER(vocabulary), 0, "the header"},
    {IN_HEADER(vocabulary), 70000, "the header"},          /* then tokens have four bytes */
    {IN_HEADER(vocabulary), 114, "beyond the vocabulary"}, /* the last token has id 114 */
    {IN_HEADER(vocabulary), 50, "beyond the vocabulary"},
    {IN_HEADER(begin), 1000, "the header"},
    {IN_HEADER(mask), UINT32_MAX, "the header"},
    {IN_HEADER(token_bytes), 0, "the header"},
    {IN_HEADER(token_bytes), 4, "the header"},
    {IN_HEADER(part), 2, "the header"},
    {IN_HEADER(pairing), 7, "the header"},
    {IN_HEADER(length), 0, "the header"},
    {IN_HEADER(length), UINT32_MAX, "the header"},
    {IN_HEADER(documents), UINT64_MAX, "not what its header says"},
    {IN_HEADER(documents), 1ull << 62, "not what its header says"},
    {IN_HEADER(documents), 1, "not what its header says"},
    {IN_HEADER(sentences), UINT64_MAX, "not what its header says"},
    {IN_HEADER(sentences), 1ull << 61, "not what its header says"},
    {IN_HEADER(tokens), 1ull << 63, "not what its header says"},
    {IN_HEADER(tokens), 0, "not what its header says"},
    {sizeof(struct shard_header), 4, 1, "do not follow"},
    {sizeof(struct shard_header) + 4, 4, UINT32_MAX, "do not follow"},
    {sizeof(struct shard_header) + 4, 4, 0, "do not follow"},
};

static void forged_tokens_are_refused(void **state)
{
    (void)state;
    make("forged");
    struct bytes b = read_bytes("forged/train-00000.tokens");
    for (size_t k = 0; k < sizeof forgeries / sizeof *forgeries; k++) {
        uint8_t *copy = memory_copy(b.at, b.size);
        memcpy(copy + forgeries[k].at, &forgeries[k].value, forgeries[k].size);
        shard_sign(copy, b.size);
        must_refuse(copy, b.size, SHARD_TOKENS, forgeries[k].expected);
        free(copy);
    }
    free(b.at);
}

static void forged_samples_are_refused(void **state)
{
    (void)state;
    struct bytes b = read_bytes("forged/train.samples");
    struct shard_header h;
    memcpy(&h, b.at, sizeof h);
    const struct sample_record wrong[] = {
        {h.tokens, 0, 1, 1, 0},
        {0, h.tokens, 1, 1, 0},
        {UINT64_MAX, 0, 2, 1, 0},
        {0, UINT64_MAX, 1, 2, 0},
        {0, 0, 0, 1, 0},
        {0, 0, h.length, 0, 0},
        {0, 0, h.length - 2, 1, 0},
        {0, 0, UINT32_MAX, INT32_MAX, 0},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        uint8_t *copy = memory_copy(b.at, b.size);
        memcpy(copy + sizeof h + (h.samples - 1) * sizeof *wrong, &wrong[k], sizeof *wrong);
        shard_sign(copy, b.size);
        must_refuse(copy, b.size, SHARD_SAMPLES, "samples beyond the tokens");
        free(copy);
    }
    uint64_t many = 1ull << 60;
    memcpy(b.at + offsetof(struct shard_header, samples), &many, sizeof many);
    shard_sign(b.at, b.size);
    must_refuse(b.at, b.size, SHARD_SAMPLES, "not what its header says");
    free(b.at);
}

static void must_not_open(const char *name, enum data_part part, const struct tokenizer *t,
                          const char *expected)
{
    char folder[256];
    struct error e = {0};
    data_path(folder, sizeof folder, name);
    struct samples *s = samples_open(folder, part, t, &e);
    assert_null(s);
    assert_int_equal(e.kind, ERROR_INPUT);
    if (strncmp(e.text, folder, strlen(folder)) || !strstr(e.text, expected) ||
        strchr(e.text, '\n'))
        fail_msg("'%s', '%s' is expected in it", e.text, expected);
}

static void shell(const char *line)
{
    char whole[600];
    snprintf(whole, sizeof whole, "cd %s && %s", data_folder, line);
    assert_int_equal(system(whole), 0);
}

/* A range that ends in the next shard lies inside the tokens, but in no document. */
static void forge_across_shards(void)
{
    struct bytes b = read_bytes("across/train.samples"),
                 first = read_bytes("across/train-00000.tokens");
    struct shard_header h;
    memcpy(&h, first.at, sizeof h);
    const struct sample_record wrong = {h.tokens - 1, 0, 2, 1, 0};
    memcpy(b.at + sizeof h, &wrong, sizeof wrong);
    shard_sign(b.at, b.size);
    data_write("across/train.samples", b.at, b.size);
    free(b.at);
    free(first.at);
}

static void folders_of_something_else_are_refused(void **state)
{
    (void)state;
    struct tokenizer *t = data_tokenizer();
    struct data_recipe r = data_recipe(t, "other");
    r.options.seed = 8;
    data_make(&r);
    make("good");
    shell("cp -r good mixed && cp other/train-00001.tokens mixed && cp -r good swapped && "
          "cp swapped/train-00001.tokens swapped/train-00000.tokens && cp -r good short && rm "
          "short/train-00001.tokens && cp -r other samples && cp good/train.samples samples && "
          "cp -r good parts && cp parts/held-out.samples parts/train.samples && cp -r good "
          "none && rm none/held-out* && "
          "mkdir empty && cp -r good across");
    forge_across_shards();
    must_not_open("mixed", DATA_TRAIN, t, "of another prep");
    must_not_open("swapped", DATA_TRAIN, t, "of another prep");
    must_not_open("short", DATA_TRAIN, t, "train-00001.tokens: No such file");
    must_not_open("samples", DATA_TRAIN, t, "of another prep");
    must_not_open("parts", DATA_TRAIN, t, "of another part");
    must_not_open("across", DATA_TRAIN, t, "beyond a shard");
    must_not_open("none", DATA_HELD_OUT, t, "holds no documents for evaluation");
    must_not_open("empty", DATA_TRAIN, t, "train.samples: No such file");
    must_not_open("nowhere", DATA_HELD_OUT, t, "No such file");
    struct error e = {0};
    struct tokenizer *another =
        tokenizer_new("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n", 33, false, TOKENIZER_HF, &e);
    assert_non_null(another);
    must_not_open("good", DATA_TRAIN, another, "another vocabulary");
    tokenizer_destroy(another);
    tokenizer_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_and_changed_files_are_refused),
        cmocka_unit_test(forged_tokens_are_refused),
        cmocka_unit_test(forged_samples_are_refused),
        cmocka_unit_test(folders_of_something_else_are_refused),
    };
    return cmocka_run_group_tests_name("shard", tests, data_begin, data_end);
}
