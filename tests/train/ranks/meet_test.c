/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that meet by TCP. Do they pass over the file of an earlier launch, connections of others, and a rank's connection that
   failed? Is a file with other contents left as it is, and the reason told where they do not meet? */
#include "masks/base/hash.h"
#include "model/comm/tcp/address.h"
#include "model/comm/tcp/tcp.h"
#include "tests/support/test.h"
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/meet-test-XXXXXX", place[64];
static const char group[] = "meet_test";

static const struct comm *meet_at(const char *where, uint32_t rank, uint32_t size,
                                  double seconds, struct error *e)
{
    const struct tcp_meeting m = {rank, size, where, group, seconds, false};
    return comm_tcp(&m, e);
}

/* Two ranks sum a number. */
static bool meet(uint32_t rank)
{
    struct error e = {0};
    uint64_t one = 1;
    const struct comm *c = meet_at(place, rank, 2, 20, &e);
    if (!c || c->sum_u64(c, &one, 1, &e) < 0)
        fprintf(stderr, "rank %u: %s\n", rank, e.text);
    if (c)
        c->close(c);
    return c && one == 2;
}

static pid_t start(uint32_t rank)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(!meet(rank));
    return child;
}

static void must_have_met(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void must_fail(uint32_t rank, uint32_t size, const char *where, const char *says)
{
    struct error e = {0};
    assert_null(meet_at(where, rank, size, 0.3, &e));
    if (!strstr(e.text, says))
        fail_msg("'%s', not '%s'", e.text, says);
}

static void a_missing_rank_is_named(void **unused)
{
    (void)unused;
    must_fail(0, 3, place, "rank 1 did not come to ");
    assert_int_equal(access(place, F_OK), -1);
    must_fail(2, 3, place, "rank 2: rank 0 did not answer at ");
    must_fail(0, 2, "tcp://nowhere", "tcp://HOST:PORT is expected");
    must_fail(0, 2, "/nowhere/file", "No such file");
}

static void a_signal_is_told(void **unused)
{
    static const int signals[] = {SIGTERM, SIGHUP};
    (void)unused;
    for (size_t k = 0; k < sizeof signals / sizeof *signals; k++) {
        struct sigaction before;
        sigset_t ends, mask;
        int which;
        sigemptyset(&ends);
        sigaddset(&ends, signals[k]);
        sigaction(signals[k], &(struct sigaction){.sa_handler = SIG_DFL}, &before);
        sigprocmask(SIG_BLOCK, &ends, &mask);
        raise(signals[k]);
        must_fail(0, 2, place, "stopped by a signal while ranks met");
        must_fail(1, 2, place, "stopped by a signal while ranks met");
        sigwait(&ends, &which);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        sigaction(signals[k], &before, NULL);
    }
}

/* ---- files ---- */

static void write_place(const char *text)
{
    FILE *f = fopen(place, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void other_files_stay(void **unused)
{
    char text[64] = "";
    (void)unused;
    write_place("{\"layers\": 12}\n");
    must_fail(0, 2, place, "a file with other contents is there");
    FILE *f = fopen(place, "r");
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    assert_string_equal(text, "{\"layers\": 12}\n");
    must_fail(0, 2, folder, "Is a directory");
    write_place(""); /* as mktemp makes it */
    must_fail(0, 2, place, "rank 1 did not come");
    assert_int_equal(access(place, F_OK), -1);
}

static int listen_here(struct tcp_address *ret)
{
    struct error e = {0};
    int s = -1;
    if (tcp_address_listen(place, ret, &s, &e) < 0)
        fail_msg("%s", e.text);
    return s;
}

static void a_newer_file_stays(void **unused)
{
    struct tcp_address older, newer;
    (void)unused;
    const int s[] = {listen_here(&older), listen_here(&newer)};
    tcp_address_forget(place, &older);
    assert_int_equal(access(place, F_OK), 0);
    tcp_address_forget(place, &newer);
    assert_int_equal(access(place, F_OK), -1);
    close(s[0]);
    close(s[1]);
}

static int accept_one(int listener)
{
    int s;
    while ((s = accept(listener, NULL, NULL)) < 0)
        usleep(1000);
    return s;
}

/* Rank 1 comes to an earlier launch, whose rank 0 ends and leaves its file. */
static void an_old_file_does_no_harm(void **unused)
{
    struct tcp_address older;
    (void)unused;
    const int listener = listen_here(&older);
    const pid_t child = start(1);
    const int s[] = {accept_one(listener), accept_one(listener)};
    close(listener);
    close(s[0]);
    close(s[1]);
    assert_true(meet(0));
    must_have_met(child);
    assert_int_equal(access(place, F_OK), -1);
}

/* ---- connections ---- */

/* Sends the greeting of rank 1 of 2 for a channel; struct hello in model/comm/tcp/meet.c. */
static void say_hello(int socket, const struct tcp_address *a, uint64_t channel)
{
    const uint64_t hello[] = {
        UINT64_C(0x316b6e6172626d31), a->key, XXH3_64bits(group, strlen(group)), 1, 2, channel};
    assert_int_equal(send(socket, hello, sizeof hello, 0), sizeof hello);
}

/* Two that say nothing, one that says half of it, and one of rank 1, which gave up and comes again. */
static void other_connections_do_no_harm(void **unused)
{
    struct tcp_address a;
    int stray[3];
    (void)unused;
    const pid_t child = start(0);
    while (!tcp_address_read(place, &a))
        usleep(1000);
    for (size_t k = 0; k < sizeof stray / sizeof *stray; k++)
        assert_true((stray[k] = tcp_address_connect(&a)) >= 0);
    assert_int_equal(send(stray[2], "1mbranks", 8, 0), 8);
    const int gave_up = tcp_address_connect(&a);
    say_hello(gave_up, &a, 1);
    usleep(100000); /* rank 0 takes it */
    close(gave_up);
    alarm(10); /* they would hold up rank 0 for 5 s each */
    assert_true(meet(1));
    alarm(0);
    must_have_met(child);
    for (size_t k = 0; k < sizeof stray / sizeof *stray; k++)
        close(stray[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_rank_is_named),
        cmocka_unit_test(a_signal_is_told),
        cmocka_unit_test(other_files_stay),
        cmocka_unit_test(a_newer_file_stays),
        cmocka_unit_test(an_old_file_does_no_harm),
        cmocka_unit_test(other_connections_do_no_harm),
    };
    if (!mkdtemp(folder))
        return 1;
    snprintf(place, sizeof place, "%s/ranks", folder);
    const int failed = cmocka_run_group_tests_name("ranks that meet", tests, NULL, NULL);
    unlink(place);
    rmdir(folder);
    return failed;
}
