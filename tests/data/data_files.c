/* SPDX-License-Identifier: Apache-2.0 */
/* See data_files.h. */
#include "tests/data/data_files.h"
#include "masks/base/file.h"
#include "masks/base/text.h"
#include "model/base/order.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STREAM_TEST = 77 };

char data_folder[] = "/tmp/maskbert-data-XXXXXX";

int data_begin(void **state)
{
    (void)state;
    return mkdtemp(data_folder) ? 0 : -1;
}

int data_end(void **state)
{
    (void)state;
    char line[100];
    snprintf(line, sizeof line, "rm -r %s", data_folder);
    return system(line);
}

void data_path(char *ret, size_t size, const char *name)
{
    snprintf(ret, size, "%s/%s", data_folder, name);
}

void data_write(const char *name, const void *bytes, size_t size)
{
    char path[256];
    struct error e = {0};
    data_path(path, sizeof path, name);
    if (file_write(path, bytes, size, &e) < 0)
        fail_msg("%s", e.text);
}

struct tokenizer *data_tokenizer(void)
{
    struct text v = {0};
    struct error e = {0};
    text_add(&v, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    for (int k = 0; k < 100; k++)
        text_add(&v, "%c%c\n", 'a' + k / 10, 'a' + k % 10);
    for (int k = 0; k < 10; k++)
        text_add(&v, "##k%c\n", 'a' + k);
    struct tokenizer *t = tokenizer_new(text_get(&v), v.length, false, TOKENIZER_HF, &e);
    if (!t)
        fail_msg("%s", e.text);
    text_finish(&v);
    return t;
}

static void add_sentence(struct text *t, struct draws *d)
{
    uint32_t words = 1 + draws_below(d, 12);
    for (uint32_t k = 0; k < words; k++) {
        text_add(t, "%s%c%c", k ? " " : "", 'a' + (int)draws_below(d, 10),
                 'a' + (int)draws_below(d, 10));
        for (uint32_t more = draws_below(d, 4); more < 2; more++)
            text_add(t, "k%c", 'a' + (int)draws_below(d, 10));
    }
    text_add(t, "\n");
}

void data_write_text(const char *name, uint32_t documents, uint32_t seed)
{
    struct text t = {0};
    struct draws d = draws_begin(seed, (enum random_stream)STREAM_TEST, 0, 0);
    for (uint32_t k = 0; k < documents; k++) {
        uint32_t sentences = 1 + draws_below(&d, 15);
        for (uint32_t j = 0; j < sentences; j++)
            add_sentence(&t, &d);
        text_add(&t, "\n");
    }
    data_write(name, text_get(&t), t.length);
    text_finish(&t);
}

struct data_recipe data_recipe(const struct tokenizer *t, const char *name)
{
    return (struct data_recipe){.options = {.tokenizer = t,
                                            .length = 32,
                                            .dupe = 3,
                                            .threads = 2,
                                            .short_share = 0.1,
                                            .held_out = 0.2,
                                            .seed = 7,
                                            .shard_tokens = 500},
                                .name = name,
                                .documents = 60};
}

struct prepare_stats data_make(struct data_recipe *r)
{
    char text[256], folder[256];
    const char *path[] = {text};
    struct prepare_stats stats;
    struct error e = {0};
    data_path(text, sizeof text, "text.txt");
    data_path(folder, sizeof folder, r->name);
    data_write_text("text.txt", r->documents, 3);
    r->options.path = path;
    r->options.n_paths = 1;
    r->options.folder = folder;
    if (data_prepare(&r->options, &stats, &e) < 0)
        fail_msg("%s", e.text);
    return stats;
}

void data_near(double seen, double draws, double p)
{
    double sigma = sqrt(draws * p * (1 - p));
    if (!(fabs(seen - draws * p) <= 4 * sigma))
        fail_msg("%g of %g draws, %g +- %g are expected", seen, draws, draws * p, sigma);
}
