/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert prune as a person runs it: are its masks masks that the model takes, within the time that was asked for,
   does the table say what the files are, and is bad input one line that leaves nothing behind? usage: prune_test
   MASKBERT. prune_oracle.py has the numbers. */
#include "tests/cli/shell.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sixteen lines of 5 to 24 tokens. */
#define LINES                                                                                  \
    "awk 'BEGIN { for (i = 1; i <= 16; i++) { s = \"\"; for (j = 0; j < 3 + i * 7 % 20; j++) " \
    "s = s (j * i % 3 ? \" ab\" : \" b\"); print s } }' | "

static void run(const char *prefix, const char *line)
{
    struct outcome o = shell_must(prefix, line);
    outcome_finish(&o);
}

static const json_t *row_at(const json_t *report, size_t k)
{
    return json_array_get(json_object_get(report, "masks"), k);
}

static const char *text_of(const json_t *row, const char *name)
{
    return json_string_value(json_object_get(row, name));
}

static double number_of(const json_t *row, const char *name)
{
    const json_t *v = json_object_get(row, name);
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static size_t rows_of(const json_t *report)
{
    return json_array_size(json_object_get(report, "masks"));
}

static void make_model(void)
{
    run("printf 'ab ab ab ba\\n\\nab cab\\n' | ", "vocab --size 13 -o vocab.txt");
    run(NULL, "init --size 2x16x4 --vocab vocab.txt --positions 32 --seed 5 --std .5 -o made");
}

/* Pruning gives a mask that the model accepts; all entries hold all attention. */
static void percentages_are_kept(void **state)
{
    (void)state;
    json_t *report =
        shell_json_of("seq 1 9 | sed 's/.*/ab b ba b/' | ",
                      "prune made --keep 100,10 --drop-diagonal --random -o pruned --json");
    assert_int_equal(rows_of(report), 6);
    assert_true(fabs(number_of(row_at(report, 0), "mass") - 1) < 1e-6);
    const double keep = number_of(row_at(report, 3), "mass");
    assert_true(keep > 0.99 && keep <= 1 + 1e-6); /* six tokens of 32: 36 of 1024 entries */
    assert_true(number_of(row_at(report, 5), "mass") < 0.5);
    assert_string_equal(text_of(row_at(report, 4), "file"), "no-diagonal-10.npy");
    assert_true(fabs(number_of(row_at(report, 0), "cosine") - 1) < 1e-5);
    assert_true(number_of(row_at(report, 0), "neighbours") == 1);
    assert_true(number_of(row_at(report, 5), "cosine") <
                number_of(row_at(report, 3), "cosine"));
    json_decref(report);
    run("printf 'ab b\\n' | ", "embed made -o pruned.npy --mask pruned/keep-10.npy");
}

/* Fewer than four lines: all of them are measured, and nothing is said of other lines. */
static void few_lines_hold_none_out(void **state)
{
    (void)state;
    json_t *report = shell_json_of("printf 'ab b\\nb\\nab\\n' | ",
                                   "prune made --keep 50 -o few -n 8 --json");
    assert_int_equal(json_integer_value(json_object_get(report, "measured")), 3);
    assert_int_equal(json_integer_value(json_object_get(report, "held_out")), 0);
    assert_true(json_is_null(json_object_get(row_at(report, 0), "cosine")));
    assert_true(json_is_null(json_object_get(row_at(report, 0), "neighbours")));
    assert_true(number_of(row_at(report, 0), "predicted_s") > 0);
    assert_true(number_of(row_at(report, 0), "measured_s") > 0);
    json_decref(report);
}

static void check_shares(const json_t *report, double share, size_t first)
{
    static const char *const kinds[] = {"snap", "magnitude", "tiles", "window", "distances"};
    const double dense = number_of(json_object_get(report, "dense"), "predicted_s");
    for (size_t k = 0; k < 5; k++) {
        const json_t *row = row_at(report, first + k);
        assert_string_equal(text_of(row, "kind"), kinds[k]);
        assert_int_equal(!text_of(row, "won"), k > 0);
        assert_true(number_of(row, "share") == share);
        if (!text_of(row, "file"))
            continue; /* none is within the time */
        assert_true(number_of(row, "predicted_s") <= share * dense * (1 + 1e-6));
        assert_true(number_of(row, "retained") <=
                    number_of(row_at(report, first), "retained") + 1e-6);
    }
    assert_non_null(text_of(row_at(report, first), "file"));
}

/* Each is within its share, none keeps more than snap's, and the model cut to n takes them. */
static void shares_are_kept(void **state)
{
    (void)state;
    json_t *report =
        shell_json_of(LINES, "prune made --importance output --snap .7,.9 -n 24 --save p.npy "
                             "--layer 1 --head 3 -o snapped --json");
    assert_string_equal(text_of(report, "importance"), "output");
    assert_int_equal(rows_of(report), 10);
    check_shares(report, .7, 0);
    check_shares(report, .9, 5);
    assert_true(number_of(row_at(report, 0), "retained") <=
                number_of(row_at(report, 5), "retained") + 1e-6);
    json_decref(report);
    run(NULL, "convert made -o short --positions 24 --mask snapped/snap-70.npy");
    run("printf 'ab b\\n' | ", "embed short -o short.npy");
    assert_int_equal(system("test \"$(head -c 6 p.npy | tail -c 5)\" = NUMPY"), 0);
}

/* A device's masks, and what is said of them, are the CPU's. */
static void devices_agree(void **state)
{
    (void)state;
    static const char *const names[] = {"density", "retained", "cosine", "neighbours"};
    json_t *cpu =
        shell_json_of(LINES, "prune made --importance output --keep 30 -n 24 -o c --json");
    json_t *other = shell_json_of(LINES, "prune made --importance output --keep 30 -n 24 -o d "
                                         "--device emulated --json");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        assert_true(fabs(number_of(row_at(cpu, 0), names[k]) -
                         number_of(row_at(other, 0), names[k])) < 1e-4);
    assert_int_equal(system("diff -r c d"), 0);
    json_decref(cpu);
    json_decref(other);
}

/* The same input, the same masks. */
static void runs_are_alike(void **state)
{
    (void)state;
    run(LINES, "prune made --snap .7 -n 24 --save one.npy -o one");
    run(LINES, "prune made --snap .7 -n 24 --save two.npy -o two");
    assert_int_equal(system("cmp -s one.npy two.npy && diff -r one two"), 0);
}

/* Bad input: exit code 2, and "maskbert: ERROR" on stderr. */
#define SHARES                                                                         \
    ": at most 32 shares of dense's time above 0 to 1, with commas between them, are " \
    "expected\n"
#define DIGITS "numbers that differ in their first six digits are expected\n"
static const struct shell_failure failures[] = {
    {"prune made -o new",
     "prune: --keep P[,P..], --snap SHARE[,SHARE..] or --save P.npy is expected\n"},
    {"prune made --keep 10", "prune: -o DIR is expected\n"},
    {"prune made --snap .5 --save new.npy", "prune: -o DIR is expected\n"},
    {"prune made --keep 0 -o new",
     "--keep 0: at most 32 percentages above 0 to 100, with commas between them, are "
     "expected\n"},
    {"prune made --snap .5,1.5 -o new", "--snap .5,1.5" SHARES},
    {"prune made --snap 0 -o new", "--snap 0" SHARES},
    {"prune made --snap nan -o new", "--snap nan" SHARES},
    {"prune made --snap half -o new", "--snap half" SHARES},
    {"prune made --snap .5, -o new", "--snap .5," SHARES},
    {"prune made --keep 33.333333,50,33.333335 -o new",
     "--keep: 33.333333 and 33.333335 would both be keep-33.3333.npy; " DIGITS},
    {"prune made --snap .5000001,.5 -o new",
     "--snap: 0.5000001 and 0.5 would both be snap-50.npy; " DIGITS},
    {"prune made --importance mass --save new.npy",
     "--importance mass: attention or output is expected\n"},
    {"prune made --save new.txt", "--save new.txt: FILE.npy is expected\n"},
    {"prune made --save new.npy --plot new.png",
     "--plot new.png: masks to draw are expected (--keep or --snap)\n"},
    {"prune made --snap .5 -o new --random", "--random: --keep P[,P..] is expected with it\n"},
    {"prune made --save new.npy -n 33", "-n 33: the model has 32 positions\n"},
    {"prune made --keep 10 -o new --head 4", "--head 4: 0..3 is expected\n"},
    {"prune made --snap .5 -o new --save new.npy --input /dev/null",
     "prune: lines of text are expected\n"},
};

static void failures_say_one_line(void **state)
{
    (void)state;
    shell_refuses("maskbert", LINES, failures, sizeof failures / sizeof *failures);
}

/* A share that no mask is within: rows without a mask, one line that names it and exit code 1. The rest is as without it. */
static void too_little_time_is_false(void **state)
{
    (void)state;
    struct outcome o =
        shell_run(LINES, "prune made --keep 10 --snap .9,.0001,.0002 -o less --save less.npy "
                         "-n 24 --json");
    assert_int_equal(o.code, 1);
    const char *line = "maskbert: --snap 0.0001,0.0002: no mask is within that time";
    const char *said = strstr(o.err, line);
    assert_true(said && strchr(said, '\n') == o.err + strlen(o.err) - 1); /* the last line */
    json_t *report = json_loads(o.out, 0, NULL);
    assert_int_equal(rows_of(report), 16);
    check_shares(report, .9, 1);
    for (size_t k = 6; k < 16; k++) {
        assert_true(json_is_null(json_object_get(row_at(report, k), "file")));
        assert_true(json_is_null(json_object_get(row_at(report, k), "density")));
        assert_null(text_of(row_at(report, k), "won"));
    }
    json_decref(report);
    outcome_finish(&o);
    assert_int_equal(system("test -e less/keep-10.npy && test -e less/snap-90.npy && "
                            "test ! -e less/snap-0.01.npy && test -e less.npy"),
                     0);
}

/* Nothing but such a share: what was measured is saved, and no folder is made. */
static void measured_is_kept(void **state)
{
    (void)state;
    struct outcome o =
        shell_run(LINES, "prune made --snap .0001 -o void --save void.npy -n 24");
    assert_int_equal(o.code, 1);
    outcome_finish(&o);
    assert_int_equal(system("test ! -e void && test -e void.npy"), 0);
}

int main(int count, char **argument)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentages_are_kept),
        cmocka_unit_test(few_lines_hold_none_out),
        cmocka_unit_test(shares_are_kept),
        cmocka_unit_test(runs_are_alike),
        cmocka_unit_test(devices_agree),
        cmocka_unit_test(failures_say_one_line),
        cmocka_unit_test(too_little_time_is_false),
        cmocka_unit_test(measured_is_kept),
    };
    if (count != 2)
        return 2;
    shell_start(argument[1]);
    shell_compile_fast();
    make_model();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shell_stop();
    return failed;
}
