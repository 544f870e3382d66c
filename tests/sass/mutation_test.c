/* SPDX-License-Identifier: Apache-2.0 */
/* Does the machine notice wrong code? One thing at a time is changed in nvdisasm's text of a kernel: a barrier or a wait
   for copies is taken away, a scoreboard is not waited for, a guard is turned around, a register is another. Only
   instructions that run are changed, drawn by a seed. Each must end in a fault or a wrong result: `mutation_test FOLDER
   [--seed S] [--count N] [--list]`. */
#include "masks/base/memory.h"
#include "tests/sass/mutate.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/sass_setup.h"
#include "tests/support/test.h"
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A mask is not in the code, so the same machine code runs all masks of a line, of which each needs other parts. */
enum { MASKS = 4 };
static const struct {
    uint32_t n;
    struct kernel_request request;
    const char *mask[MASKS];
} cases[] = {
    {150,
     {.dtype = ABI_BF16, .head_dim = 32, .backward = true},
     {"window(40)|global(0)", "window(1)|rows(3)", "random(0.05, seed=4)|rows(5)|columns(9)",
      "dense"}},
    {64,
     {.dtype = ABI_BF16, .head_dim = 32, .backward = true},
     {"longformer(20,2)", "random(0.1, seed=4)|diagonal(0)", "causal", "dense"}},
    {70,
     {.dtype = ABI_F32, .head_dim = 16, .backward = true},
     {"rows(5,40)|columns(7)|distance(2,9)", "window(1)|rows(3,4)",
      "random(0.1, seed=4)|rows(5)", "dense"}},
};

/* Number of mutants of each kind in every 50. */
static const struct {
    enum mutation kind;
    const char *name;
    uint32_t share;
} kinds[] = {{MUTATE_BARRIER, "barrier", 8},
             {MUTATE_COPY_WAIT, "wait for copies", 4},
             {MUTATE_SCOREBOARD, "scoreboard", 8},
             {MUTATE_GUARD, "guard", 12},
             {MUTATE_REGISTER, "register", 18}};

static uint64_t seed = 1;
static uint32_t wanted = 50;
static bool listing;
static struct cache *cache;
static char folder[2][64]; /* nvdisasm's texts, and the same with one of them changed */
static char counts_path[80];

/* ---- the unchanged kernel ---- */

struct subject {
    uint32_t number;             /* of cases */
    char file[4][200], *text[4]; /* of each cubin */
    uint32_t files;
    struct listing code[8]; /* of each entry, with how often its instructions ran */
    uint32_t entries;
    uint64_t most; /* instructions of a launch */
    uint64_t hash; /* of its results */
};

static struct maskc_kernel *texts
    [COUNT(cases)]
    [MASKS]; /* from source, on the emulated device: what the machine code's results must equal */

/* Results of f32 are sums in another order, those of bf16 with some roundings the other way. */
static double most_distance(enum abi_dtype dtype)
{
    return dtype == ABI_F32 ? 1e-6 : 4e-4;
}

/* A mask, sequences of several lengths, forward and backward, against the text and against float64: 0 where all is right,
   else *what says what is wrong. */
static int check_mask(uint32_t number, uint32_t m, uint64_t *hash, char *what, size_t capacity)
{
    const struct sass_case c = {
        {cases[number].mask[m]}, cases[number].n, cases[number].request};
    const int32_t lengths[] = {31, 0, (int32_t)c.n};
    struct error e = {0};
    struct maskc_kernel *k = setup_try(&c, "sm_80", cache, &e);
    if (!texts[number][m])
        texts[number][m] = setup_try_on("emulated", &c, "sm_80", cache, &e);
    snprintf(what, capacity, "%.300s", k && texts[number][m] ? "" : e.text);
    if (what[0])
        return -1;
    struct problem p = fixture_problem(k);
    p.batch = 3;
    p.lengths = lengths;
    const double distance = setup_distance(k, texts[number][m], &p, hash, &e);
    kernel_unload(k);
    if (distance <= most_distance(c.request.dtype))
        return 0;
    snprintf(what, capacity, "%s: off by %g from its text %.300s", c.mask[0], distance, e.text);
    return -1;
}

/* The same of all masks of a case; *ret_hash is of all results. */
static int check_run(uint32_t number, uint64_t *ret_hash, char *what, size_t capacity)
{
    int bad = 0;
    *ret_hash = 0;
    for (uint32_t m = 0; m < MASKS && !bad; m++)
        bad = check_mask(number, m, ret_hash, what, capacity);
    return bad;
}

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    char *text = memory_new((size_t)size + 1, 1);
    rewind(f);
    assert_int_equal(fread(text, 1, (size_t)size, f), size);
    fclose(f);
    return text;
}

static void write_text(const char *directory, const char *file, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", directory, file);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void read_texts(struct subject *s)
{
    DIR *d = opendir(folder[0]);
    assert_non_null(d);
    for (struct dirent *x; (x = readdir(d));) {
        char path[400];
        if (!strstr(x->d_name, ".sass"))
            continue;
        assert_true(s->files < COUNT(s->file));
        snprintf(s->file[s->files], sizeof s->file[0], "%.190s", x->d_name);
        snprintf(path, sizeof path, "%s/%s", folder[0], x->d_name);
        s->text[s->files++] = read_text(path);
        unlink(path);
    }
    closedir(d);
}

/* The entry's lines, looked up once. */
static struct listing *code_of(struct subject *s, const char *entry)
{
    for (uint32_t k = 0; k < s->entries; k++)
        if (!strcmp(s->code[k].entry, entry))
            return &s->code[k];
    assert_true(s->entries < COUNT(s->code));
    struct listing *l = &s->code[s->entries++];
    for (uint32_t f = 0; f < s->files; f++)
        if (listing_find(l, s->text[f], entry)) {
            l->file = f;
            return l;
        }
    fail_msg("no text of %s", entry);
    return NULL;
}

/* One line of the driver's report. */
static void take_counts(struct subject *s, const json_t *launch)
{
    const char *entry = json_string_value(json_object_get(launch, "entry"));
    const json_t *counts = json_object_get(launch, "counts"),
                 *needed = json_object_get(launch, "needed");
    const uint64_t issued = (uint64_t)json_integer_value(json_object_get(launch, "issued"));
    s->most = issued > s->most ? issued : s->most;
    struct listing *l = code_of(s, entry);
    assert_int_equal(l->count, json_array_size(counts));
    for (uint32_t k = 0; k < l->count; k++) {
        l->line[k].ran |= json_integer_value(json_array_get(counts, k)) > 0;
        l->line[k].needed |= json_integer_value(json_array_get(needed, k)) > 0;
    }
}

static void prepare(struct subject *s, uint32_t number)
{
    char what[400], line_of[64];
    *s = (struct subject){.number = number};
    setenv("MASKC_SASS_CACHE", folder[0], 1);
    setenv("MASKC_SASS_COUNTS", counts_path, 1);
    unsetenv("MASKC_SASS_LIMIT");
    if (check_run(number, &s->hash, what, sizeof what))
        fail_msg("unchanged: %s", what);
    unsetenv("MASKC_SASS_COUNTS");
    read_texts(s);
    FILE *f = fopen(counts_path, "r");
    assert_non_null(f);
    for (json_t *launch; (launch = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL));
         json_decref(launch))
        take_counts(s, launch);
    fclose(f);
    unlink(counts_path);
    snprintf(line_of, sizeof line_of, "%llu", (unsigned long long)(4 * s->most + 100000));
    setenv("MASKC_SASS_LIMIT", line_of, 1);
}

static void finish(struct subject *s)
{
    for (uint32_t k = 0; k < s->entries; k++)
        listing_finish(&s->code[k]);
    for (uint32_t f = 0; f < s->files; f++)
        free(s->text[f]);
}

/* ---- mutants ---- */

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % below);
}

/* A line of the subject that such a change can be made to; false: it has none. */
static bool draw_line(const struct subject *s, enum mutation kind, uint32_t *entry,
                      uint32_t *line)
{
    uint32_t possible = 0;
    for (int pass = 0; pass < 2; pass++) {
        const uint32_t chosen = pass ? draw(possible) : 0;
        possible = 0;
        for (uint32_t k = 0; k < s->entries; k++)
            for (uint32_t l = 0; l < s->code[k].count; l++) {
                if (!s->code[k].line[l].ran || !mutate_can(&s->code[k].line[l], kind))
                    continue;
                if (pass && possible == chosen) {
                    *entry = k;
                    *line = l;
                    return true;
                }
                possible++;
            }
        if (!possible)
            return false;
    }
    return false;
}

enum outcome { NOTICED, MISSED, SAME };

/* SAME: a guard or a register that no bit of any result depends on here, such as a step of a division that is seldom
   needed. Barriers and waits change no result when they happen not to matter, so each must be a fault. */
static enum outcome run_mutant(const struct subject *s, uint32_t kind, uint32_t entry,
                               uint32_t line)
{
    const struct listing *l = &s->code[entry];
    char what[400], name[300];
    char *changed = mutate(s->text[l->file], &l->line[line], kinds[kind].kind, draw(1000), name,
                           sizeof name);
    for (uint32_t f = 0; f < s->files; f++)
        write_text(folder[1], s->file[f], f == l->file ? changed : s->text[f]);
    free(changed);
    setenv("MASKC_SASS_CACHE", folder[1], 1);
    uint64_t hash;
    const bool noticed = check_run(s->number, &hash, what, sizeof what) != 0;
    const bool may_not_matter =
        kinds[kind].kind == MUTATE_GUARD || kinds[kind].kind == MUTATE_REGISTER;
    const enum outcome outcome = noticed                             ? NOTICED
                                 : may_not_matter && hash == s->hash ? SAME
                                                                     : MISSED;
    for (uint32_t f = 0; f < s->files; f++) {
        char path[300];
        snprintf(path, sizeof path, "%s/%s", folder[1], s->file[f]);
        unlink(path);
    }
    static const char *const words[] = {"red  ", "GREEN", "same "};
    if (listing || outcome == MISSED)
        print_message("%s %s, %s: %s %s\n", words[outcome], kinds[kind].name, l->entry, name,
                      what);
    return outcome;
}

static void test_mutants(void **state)
{
    struct subject s[COUNT(cases)];
    uint32_t missed = 0, made = 0, same = 0;
    (void)state;
    for (uint32_t k = 0; k < COUNT(cases); k++)
        prepare(&s[k], k);
    for (uint32_t kind = 0; kind < COUNT(kinds); kind++)
        for (uint32_t k = 0, of = kinds[kind].share * wanted / 50; k < of;) {
            uint32_t entry, line;
            const struct subject *one = &s[draw(COUNT(cases))];
            if (!draw_line(one, kinds[kind].kind, &entry, &line))
                continue;
            const enum outcome o = run_mutant(one, kind, entry, line);
            same += o == SAME;
            missed += o == MISSED;
            made += o != SAME;
            k += o != SAME;
        }
    print_message(
        "%u of %u changes to machine code were noticed; %u more changed no bit of any result\n",
        made - missed, made, same);
    for (uint32_t k = 0; k < COUNT(cases); k++)
        finish(&s[k]);
    for (uint32_t k = 0; k < COUNT(cases); k++)
        for (uint32_t m = 0; m < MASKS; m++)
            kernel_unload(texts[k][m]);
    assert_int_equal(missed, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mutants)};
    const char *missing =
        argc > 1 ? setup_machine(argv, argv[1], "sm_80") : "no FOLDER is given";
    if (missing) {
        print_message("skipped: %s\n", missing);
        return 77;
    }
    for (int k = 2; k < argc; k++) {
        if (!strcmp(argv[k], "--list"))
            listing = true;
        else if (k + 1 < argc && !strcmp(argv[k], "--seed"))
            seed = strtoull(argv[++k], NULL, 10);
        else if (k + 1 < argc && !strcmp(argv[k], "--count"))
            wanted = (uint32_t)atoi(argv[++k]);
    }
    cache = subject_start();
    for (int k = 0; k < 2; k++) {
        strcpy(folder[k], "/tmp/maskc-sass-XXXXXX");
        if (!mkdtemp(folder[k]))
            return 1;
    }
    snprintf(counts_path, sizeof counts_path, "%s/counts", folder[1]);
    const int r = cmocka_run_group_tests_name("mutants", tests, NULL, NULL);
    rmdir(folder[0]);
    rmdir(folder[1]);
    subject_finish(cache);
    return r;
}
