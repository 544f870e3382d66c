/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that meet by TCP. Do they pass over the file of an earlier launch, connections of others, and a rank's connection that
   failed? Is a file with other contents left as it is, and the reason told where they do not meet? Do they meet where rank 0's name
   means nothing, and is a folder opened anew before its file is looked for? */
#include "masks/base/hash.h"
#include "model/comm/tcp/address.h"
#include "model/comm/tcp/tcp.h"
#include "tests/support/test.h"
#include <inttypes.h>
#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
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
    char text[256];
    (void)unused;
    must_fail(0, 3, place, "rank 1 did not come to ");
    assert_int_equal(access(place, F_OK), -1);
    snprintf(text, sizeof text,
             "rank 2: rank 0 did not answer at %s within 0.3 s; no address is there", place);
    must_fail(2, 3, place, text);
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
    if (tcp_address_listen(place, false, ret, &s, &e) < 0)
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

/* The name in rank 0's file becomes one that nothing resolves. */
static void a_name_that_means_nothing_does_no_harm(void **unused)
{
    struct tcp_address a;
    char text[512];
    (void)unused;
    write_place("maskbert-ranks 1 a..b 1 0\n");
    must_fail(1, 2, place, "within 0.3 s; a..b: ");
    unlink(place);
    const pid_t child = start(0);
    while (!tcp_address_read(place, &a))
        usleep(1000);
    snprintf(text, sizeof text, "maskbert-ranks 1 a..b %s %" PRIx64 " 127.0.0.1\n", a.port,
             a.key);
    write_place(text);
    assert_true(meet(1));
    must_have_met(child);
}

/* The other ranks read what rank 0 wrote: its host name, and the numeric addresses of its networks. */
static void addresses_are_in_the_file(void **unused)
{
    struct tcp_address a, b;
    (void)unused;
    const int s = listen_here(&a);
    assert_true(tcp_address_read(place, &b));
    assert_string_equal(a.port, b.port);
    assert_true(a.key == b.key && a.others == b.others && a.others <= TCP_OTHERS);
    for (uint32_t k = 0; k < a.others; k++) {
        struct error e = {0};
        const int to = tcp_address_connect(&b, 1 + k, &e);
        assert_string_equal(a.other[k], b.other[k]);
        assert_true(strncmp(a.other[k], "127.", 4) != 0 && strcmp(a.other[k], "::1") != 0);
        if (to < 0)
            fail_msg("%s", e.text);
        close(to);
    }
    tcp_address_forget(place, &a);
    close(s);
}

static void the_folder_is_opened_first(void **unused)
{
    struct tcp_address a;
    union {
        struct inotify_event event;
        char bytes[4096];
    } got;
    (void)unused;
    const int f = inotify_init1(IN_NONBLOCK);
    assert_true(inotify_add_watch(f, folder, IN_OPEN | IN_ONLYDIR) >= 0);
    assert_false(tcp_address_read(place, &a));
    assert_true(read(f, &got, sizeof got) > 0 && got.event.mask & IN_ISDIR);
    close(f);
}

/* ---- connections ---- */

static bool listens_nearby(const char *where, bool spreads)
{
    struct tcp_address a;
    struct sockaddr_storage at;
    socklen_t size = sizeof at;
    struct error e = {0};
    char name[64];
    int s = -1;
    if (tcp_address_listen(where, spreads, &a, &s, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(getsockname(s, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(
        getnameinfo((struct sockaddr *)&at, size, name, sizeof name, NULL, 0, NI_NUMERICHOST),
        0);
    close(s);
    return strcmp(name, "::") != 0 && strcmp(name, "0.0.0.0") != 0;
}

static void several_machines_reach_a_rank_0_of_localhost(void **unused)
{
    struct tcp_address a;
    char where[64];
    (void)unused;
    close(listen_here(&a));
    tcp_address_forget(place, &a);
    snprintf(where, sizeof where, "tcp://localhost:%s", a.port);
    assert_true(listens_nearby(where, false));
    assert_false(listens_nearby(where, true));
}

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
    struct error e;
    int stray[3];
    (void)unused;
    const pid_t child = start(0);
    while (!tcp_address_read(place, &a))
        usleep(1000);
    for (size_t k = 0; k < sizeof stray / sizeof *stray; k++)
        assert_true((stray[k] = tcp_address_connect(&a, 0, &e)) >= 0);
    assert_int_equal(send(stray[2], "1mbranks", 8, 0), 8);
    const int gave_up = tcp_address_connect(&a, 0, &e);
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
        cmocka_unit_test(a_name_that_means_nothing_does_no_harm),
        cmocka_unit_test(addresses_are_in_the_file),
        cmocka_unit_test(the_folder_is_opened_first),
        cmocka_unit_test(several_machines_reach_a_rank_0_of_localhost),
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
