/* SPDX-License-Identifier: Apache-2.0 */
/* See sample_known.h. */
#include "tests/sass/sample_known.h"
#include "masks/base/file.h"
#include "masks/base/text.h"
#include "runtime/compile/compile.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/test.h"
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- the file ---- */

void sample_known_read(struct sample_known *k, const char *path)
{
    char line[256];
    FILE *f = path ? fopen(path, "r") : NULL;
    while (f && fgets(line, sizeof line, f)) {
        struct cache_key *key = &k->before[k->n_before];
        if (line[0] == '#')
            continue;
        assert_true(k->n_before++ < COUNT(k->before));
        assert_int_equal(2, sscanf(line, "%16" SCNx64 "%16" SCNx64, &key->high, &key->low));
    }
    if (f)
        fclose(f);
}

bool sample_known_has(const struct sample_known *k, struct cache_key key)
{
    for (uint32_t i = 0; i < k->n_before; i++)
        if (k->before[i].high == key.high && k->before[i].low == key.low)
            return true;
    return false;
}

void sample_known_add(struct sample_known *k, struct cache_key key)
{
    assert_true(k->n_right < COUNT(k->right));
    k->right[k->n_right++] = key;
}

int sample_known_write(const struct sample_known *k, const char *path, struct error *e)
{
    struct text t = {0};
    text_add(
        &t,
        "# Cases that ran right, by their keys (sample_known.h), in the order of the sample.\n"
        "# Written by sample_test FOLDER TARGET --update.\n");
    for (uint32_t i = 0; i < k->n_right; i++)
        text_add(&t, "%016" PRIx64 "%016" PRIx64 "\n", k->right[i].high, k->right[i].low);
    const int r = file_write(path, text_get(&t), strlen(text_get(&t)), e);
    text_finish(&t);
    return r;
}

/* ---- keys ---- */

/* Adds the files of a folder of the sources that end in .c or .h. */
static void add_folder(struct text *t, const char *folder)
{
    char pattern[1024];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/%s/*.[ch]", getenv("MASKC_SOURCE"), folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t k = 0; k < found.gl_pathc; k++) {
        struct file f;
        struct error e = {0};
        assert_false(file_open(found.gl_pathv[k], &f, &e));
        text_add(t, "%.*s", (int)f.size, (const char *)f.bytes);
        file_close(&f);
    }
    globfree(&found);
}

/* Of the compiler, the machine, who launches and the judge. */
static struct cache_key key_of_machine(void)
{
    struct text t = {0};
    struct error e = {0};
    text_add(&t, "nvrtc %s\n", nvrtc_version(&e));
    static const char *const folders[] = {"tests/sass", "tests/support", "tools/reference",
                                          "runtime/launch", "runtime/device"};
    for (size_t k = 0; k < COUNT(folders); k++)
        add_folder(&t, folders[k]);
    const struct cache_key key = cache_key(t.bytes, t.length);
    text_finish(&t);
    return key;
}

struct cache_key sample_key(const struct sass_case *c, const char *target,
                            void (*see)(const struct artifact *a))
{
    struct kernel_case text = {.mask = c->mask[0], .target = target};
    struct mask *m = setup_mask(c, &text.request);
    text.own = m;
    struct error e = {0};
    struct artifact *a = NULL;
    uint64_t size;
    uint8_t *bytes = fixture_file(&text, NULL, NULL, &size);
    const struct cache_key keys[] = {key_of_machine(), cache_key(bytes, size)};
    if (artifact_read(bytes, size, c->mask[0], &a, &e))
        fail_msg("%s", e.text);
    see(a);
    artifact_destroy(a);
    free(bytes);
    mask_destroy(m);
    return cache_key(keys, sizeof keys);
}
