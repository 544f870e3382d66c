/* SPDX-License-Identifier: Apache-2.0 */
/* See known.h. */
#include "tests/support/known/known.h"
#include "masks/base/file.h"
#include "masks/base/text.h"
#include "tests/support/test.h"
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

static void list_path(const struct known *k, char *ret, size_t capacity)
{
    snprintf(ret, capacity, "%s/%s.txt", getenv("MASKC_KNOWN"), k->name);
}

void known_start(struct known *k, const char *name, struct cache_key common, bool update)
{
    char path[1024], line[256];
    *k = (struct known){.name = name, .common = common, .update = update};
    if (update || !getenv("MASKC_KNOWN") || getenv("MASKC_ALL_CASES"))
        return;
    list_path(k, path, sizeof path);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (line[0] == '#')
            continue;
        assert_true(k->n_listed < KNOWN_MOST);
        struct cache_key *key = &k->listed[k->n_listed++];
        assert_int_equal(2, sscanf(line, "%16" SCNx64 "%16" SCNx64, &key->high, &key->low));
    }
    if (f)
        fclose(f);
}

static bool is_listed(const struct known *k, struct cache_key key)
{
    for (uint32_t i = 0; i < k->n_listed; i++)
        if (k->listed[i].high == key.high && k->listed[i].low == key.low)
            return true;
    return false;
}

bool known_skips(struct known *k, struct cache_key key)
{
    key = known_key_join(k->common, key);
    assert_true(!k->update || k->n_asked < KNOWN_MOST);
    if (k->update)
        k->asked[k->n_asked] = key;
    const bool skips = k->n_asked++ % KNOWN_EVERY != 0 && is_listed(k, key);
    k->n_skipped += skips;
    return skips;
}

static int write_list(const struct known *k)
{
    char path[1024];
    struct text t = {0};
    struct error e = {0};
    text_add(&t, "# Keys of cases that ran right (tests/support/known/known.h). Written by "
                 "tools/update-known.\n");
    for (uint32_t i = 0; i < k->n_asked; i++)
        text_add(&t, "%016" PRIx64 "%016" PRIx64 "\n", k->asked[i].high, k->asked[i].low);
    list_path(k, path, sizeof path);
    const int r = file_write(path, text_get(&t), strlen(text_get(&t)), &e);
    text_finish(&t);
    if (r)
        print_error("%s\n", e.text);
    return r ? 1 : 0;
}

int known_finish(struct known *k, int failed)
{
    print_message("%u of %u cases are those of known/%s.txt and did not run\n", k->n_skipped,
                  k->n_asked, k->name);
    if (!k->update || failed)
        return failed;
    if (getenv("MASKC_KNOWN"))
        return write_list(k);
    print_error("MASKC_KNOWN names no folder\n");
    return 1;
}

/* ---- keys ---- */

static void add_files(struct text *t, const char *pattern)
{
    char whole[1024];
    glob_t found;
    snprintf(whole, sizeof whole, "%s/%s", getenv("MASKC_SOURCE"), pattern);
    assert_int_equal(glob(whole, 0, NULL, &found), 0);
    for (size_t k = 0; k < found.gl_pathc; k++) {
        struct file f;
        struct error e = {0};
        assert_false(file_open(found.gl_pathv[k], &f, &e));
        text_add(t, "%.*s", (int)f.size, (const char *)f.bytes);
        file_close(&f);
    }
    globfree(&found);
}

struct cache_key known_key_of_files(const char *const *patterns)
{
    struct text t = {0};
    assert_non_null(getenv("MASKC_SOURCE"));
    for (; *patterns; patterns++)
        add_files(&t, *patterns);
    const struct cache_key key = cache_key(t.bytes, t.length);
    text_finish(&t);
    return key;
}

struct cache_key known_key_join(struct cache_key a, struct cache_key b)
{
    const struct cache_key both[] = {a, b};
    return cache_key(both, sizeof both);
}
