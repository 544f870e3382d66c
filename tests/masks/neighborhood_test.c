/* SPDX-License-Identifier: Apache-2.0 */
/* Is `neighborhood` its definition on random grids, are `documents` blocks of their lengths, does the analysis state
   both again from their entries, and are wrong arguments refused? */
#include "masks/analysis/analysis.h"
#include "tests/masks/help.h"
#include <stdlib.h>
#include <string.h>

enum { SHAPES = 200, MOST_SIZE = 120 };

struct shape {
    int axes, size[3], kernel[3], dilation[3], causal[3], cells;
};

/* Does the query at `query` see the key at `key`, along one axis? The cells that share the query's residue are
   listed; the window is moved until it lies inside the list. */
static bool axis_sees(int size, int kernel, int dilation, int causal, int query, int key)
{
    int list[MOST_SIZE], count = 0, at = 0;
    for (int x = 0; x < size; x++)
        if (x % dilation == query % dilation) {
            at = x == query ? count : at;
            list[count++] = x;
        }
    int first = causal ? at - kernel + 1 : at - kernel / 2, last = first + kernel - 1;
    if (!causal && first < 0)
        last -= first, first = 0;
    if (!causal && last >= count)
        first -= last - count + 1, last = count - 1;
    for (int k = first < 0 ? 0 : first; k <= last; k++)
        if (list[k] == key)
            return true;
    return false;
}

static bool sees(const struct shape *s, int query, int key)
{
    for (int a = s->axes - 1; a >= 0; a--) {
        int size = s->size[a];
        if (!axis_sees(size, s->kernel[a], s->dilation[a], s->causal[a], query % size,
                       key % size))
            return false;
        query /= size;
        key /= size;
    }
    return true;
}

static struct shape random_shape(uint64_t *state)
{
    struct shape s = {.axes = 1 + (int)(next_random(state) % 3), .cells = 1};
    bool dilated = next_random(state) % 2, causal = next_random(state) % 2;
    for (int a = 0; a < s.axes; a++) {
        static const int most[] = {MOST_SIZE, 14, 6};
        s.size[a] = 1 + (int)(next_random(state) % (uint64_t)most[s.axes - 1]);
        s.dilation[a] = dilated ? 1 + (int)(next_random(state) % (uint64_t)s.size[a]) : 1;
        if (next_random(state) % 2)
            s.dilation[a] = s.dilation[a] < 3 ? s.dilation[a] : 2;
        s.kernel[a] = 1 + (int)(next_random(state) % (uint64_t)(s.size[a] / s.dilation[a]));
        s.causal[a] = causal && next_random(state) % 2;
        s.cells *= s.size[a];
    }
    return s;
}

static void write_shape(const struct shape *s, struct text *out)
{
    const struct {
        const char *begins, *ends;
        const int *number;
    } parts[] = {{"neighborhood(", ",", s->size},
                 {"", ", dilation=[", s->kernel},
                 {"", "], causal=[", s->dilation},
                 {"", "])", s->causal}};
    for (int k = 0; k < 4; k++) {
        text_add(out, "%s", parts[k].begins);
        for (int a = 0; a < s->axes; a++)
            text_add(out, "%s%d", a ? "," : "", parts[k].number[a]);
        text_add(out, "%s", parts[k].ends);
    }
}

static void random_grids_are_their_definition(void **unused)
{
    (void)unused;
    uint64_t state = 3;
    for (int round = 0; round < SHAPES; round++) {
        struct shape s = random_shape(&state);
        struct text text = {0};
        write_shape(&s, &text);
        struct mask *m = load_text(text_get(&text), (uint32_t)s.cells);
        for (int i = 0; i < s.cells; i++)
            for (int j = 0; j < s.cells; j++)
                if (pattern_test(m->pattern[0], (uint32_t)i, (uint32_t)j) != sees(&s, i, j))
                    fail_msg("%s: entry %d, %d is wrong", text_get(&text), i, j);
        mask_destroy(m);
        text_finish(&text);
    }
}

/* The pattern of the statement that the analysis finds; the text is left in *said. */
static void check_stated(const char *text, uint32_t n, char **said)
{
    struct mask *m = load_text(text, n);
    struct analysis *a = analysis_run(m->pattern[0]);
    *said = analysis_expression(a);
    if (!*said)
        fail_msg("%s is not stated", text);
    struct mask *again = load_text(*said, n);
    assert_true(mask_equal(m, again));
    analysis_destroy(a);
    mask_destroy(again);
    mask_destroy(m);
}

static void random_grids_are_stated_again(void **unused)
{
    (void)unused;
    uint64_t state = 3;
    int words = 0;
    for (int round = 0; round < SHAPES; round++) {
        struct shape s = random_shape(&state);
        struct text text = {0};
        char *said;
        write_shape(&s, &text);
        check_stated(text_get(&text), (uint32_t)s.cells, &said);
        words += !strncmp(said, "neighborhood(", 13);
        free(said);
        text_finish(&text);
    }
    assert_true(words >= SHAPES / 2);
}

static void documents_are_blocks_of_their_lengths(void **unused)
{
    (void)unused;
    uint64_t state = 5;
    for (int round = 0; round < 50; round++) {
        int owner[1000], n = 0, count = 1 + (int)(next_random(&state) % 20);
        struct text text = {0};
        for (int k = 0; k < count; k++) {
            int length = 1 + (int)(next_random(&state) % 50);
            text_add(&text, "%s%d", k ? "," : "documents(", length);
            while (length--)
                owner[n++] = k;
        }
        text_add(&text, ")");
        struct mask *m = load_text(text_get(&text), (uint32_t)n);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                assert_int_equal(pattern_test(m->pattern[0], (uint32_t)i, (uint32_t)j),
                                 owner[i] == owner[j]);
        assert_int_equal(m->pattern[0]->n_runs, n);
        char *said;
        check_stated(text_get(&text), (uint32_t)n, &said);
        free(said);
        mask_destroy(m);
        text_finish(&text);
    }
}

static void long_grids_stay_structured(void **unused)
{
    (void)unused;
    char *said;
    check_stated("neighborhood(64, 256, 7, 7)", 64 * 256, &said);
    assert_string_equal(said, "neighborhood(64,256,7,7)");
    free(said);
    struct mask *m = load_text("neighborhood(1024, 256, 7, 7)", 1 << 18);
    assert_int_equal(m->pattern[0]->n_runs, 7 << 18);
    assert_int_equal(m->pattern[0]->active, 49 << 18);
    mask_destroy(m);
}

static void wrong_arguments_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *line;
    } wrong[] = {
        {"neighborhood(4, 4, 3)",
         "MASK:1:1: neighborhood: 3 numbers, (n, k), (h, w, kh, kw) or (d, h, w, kd, kh, kw) "
         "is expected"},
        {"neighborhood(1, 1, 1, 16, 1, 1, 1, 1)",
         "MASK:1:1: neighborhood: 8 numbers, (n, k), (h, w, kh, kw) or (d, h, w, kd, kh, kw) "
         "is expected"},
        {"neighborhood()",
         "MASK:1:1: neighborhood: argument 'sizes' is missing, a whole number is expected"},
        {"neighborhood(4, 5, 3, 3)",
         "MASK:1:1: neighborhood: a grid of 20 cells, the mask's length 16 is expected"},
        {"neighborhood(4, 4, 3, 5)",
         "MASK:1:1: neighborhood: a window of 5 cells with dilation 1, at most 4 cells "
         "in all are expected"},
        {"neighborhood(4, 4, 3, 2, dilation=[1,3])",
         "MASK:1:1: neighborhood: a window of 2 cells with dilation 3, at most 4 cells in all "
         "are expected"},
        {"neighborhood(4, 4, 3, 3, dilation=[1])",
         "MASK:1:35: neighborhood: dilation has 1 numbers, one for each of 2 axes is expected"},
        {"neighborhood(4, 4, 3, 3, dilation=[1,0])",
         "MASK:1:35: neighborhood: dilation 0 is out of range, 1..16 is expected"},
        {"neighborhood(4, 4, 3, 3, causal=[1,2])",
         "MASK:1:33: neighborhood: causal 2 is out of range, 0..1 is expected"},
        {"neighborhood(4, 4, 0, 3)",
         "MASK:1:20: neighborhood: 0 is out of range, 1..16 is expected at length 16"},
        {"neighborhood(2..3, 1)", "MASK:1:14: neighborhood: a whole number is expected here"},
        {"documents(4, 4)",
         "MASK:1:1: documents: the lengths sum to 8, the mask's length 16 is expected"},
        {"documents(16, 0)",
         "MASK:1:15: documents: 0 is out of range, 1..16 is expected at length 16"},
        {"documents(length=16)", "MASK:1:18: documents has no parameter 'length'"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        refuse((struct mask_request){.name = wrong[k].text, .n = 16}, wrong[k].line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_grids_are_their_definition),
        cmocka_unit_test(random_grids_are_stated_again),
        cmocka_unit_test(documents_are_blocks_of_their_lengths),
        cmocka_unit_test(long_grids_stay_structured),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
