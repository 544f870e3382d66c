/* SPDX-License-Identifier: Apache-2.0 */
#include "model/comm/tcp/address.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <libgen.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024, CONNECT_MS = 5000 };
#define SCHEME     "tcp://"
#define FILE_BEGIN "maskbert-ranks"
#define FILE_FORM  FILE_BEGIN " 1 %255s %15s %" SCNx64 "%n"

bool tcp_address_is_given(const char *where)
{
    return strncmp(where, SCHEME, strlen(SCHEME)) == 0;
}

/* HOST:PORT, [HOST]:PORT for an IPv6 address. */
static bool parse(const char *where, struct tcp_address *ret)
{
    const char *host = where + strlen(SCHEME), *colon = strrchr(host, ':');
    const bool brackets = *host == '[' && colon && colon > host + 1 && colon[-1] == ']';
    const size_t length = !colon ? 0 : (size_t)(colon - host) - (brackets ? 2 : 0);
    const long port = colon ? strtol(colon + 1, NULL, 10) : 0;
    *ret = (struct tcp_address){0};
    if (!length || length >= sizeof ret->host || port < 1 || port > 65535 ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    memcpy(ret->host, host + brackets, length);
    snprintf(ret->port, sizeof ret->port, "%ld", port);
    return true;
}

int tcp_address_check(const char *where, struct error *e)
{
    struct tcp_address ignored;
    return !tcp_address_is_given(where) || parse(where, &ignored)
               ? 0
               : error_set(e, ERROR_INPUT, "%s: tcp://HOST:PORT is expected", where);
}

/* ---- rank 0 ---- */

static bool is_loopback(const char *host)
{
    return !strcmp(host, "localhost") || !strcmp(host, "::1") || !strncmp(host, "127.", 4);
}

/* Other machines reach rank 0 by any of its addresses; -1: errno. */
static int listen_on(const struct addrinfo *a)
{
    const int s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1, off = 0;
    if (s < 0)
        return -1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6)
        setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(s, a->ai_addr, a->ai_addrlen) == 0 && listen(s, BACKLOG) == 0)
        return s;
    const int error = errno;
    close(s);
    errno = error;
    return -1;
}

/* IPv6 first: such a socket accepts IPv4, too. */
static int listen_at(const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int s = -1;
    errno = EADDRNOTAVAIL;
    if (getaddrinfo(host, port, &hints, &list) != 0)
        return -1;
    for (int turn = 0; turn < 2; turn++)
        for (const struct addrinfo *a = list; a && s < 0; a = a->ai_next)
            if ((a->ai_family == AF_INET6) == (turn == 0))
                s = listen_on(a);
    freeaddrinfo(list);
    return s;
}

static int port_of(int socket, char ret[16])
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    return getsockname(socket, (struct sockaddr *)&a, &size) < 0 ||
                   getnameinfo((struct sockaddr *)&a, size, NULL, 0, ret, 16, NI_NUMERICSERV)
               ? -1
               : 0;
}

/* Those of other machines' networks; of IPv6 not link-local ones, which need a scope of the other machine's. */
static bool is_reachable(const struct ifaddrs *a)
{
    const struct sockaddr *s = a->ifa_addr;
    if (!s || !(a->ifa_flags & IFF_UP) || (a->ifa_flags & IFF_LOOPBACK))
        return false;
    return s->sa_family == AF_INET ||
           (s->sa_family == AF_INET6 &&
            !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)s)->sin6_addr));
}

/* Without any the name is left. */
static void find_others(struct tcp_address *to)
{
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) < 0)
        return;
    for (const struct ifaddrs *a = list; a && to->others < TCP_OTHERS; a = a->ifa_next)
        if (is_reachable(a))
            to->others +=
                getnameinfo(a->ifa_addr,
                            a->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                              : sizeof(struct sockaddr_in6),
                            to->other[to->others], sizeof *to->other, NULL, 0,
                            NI_NUMERICHOST) == 0;
    freeifaddrs(list);
}

/* A file that holds something else is left as it is. */
static int check_file(const char *path, struct error *e)
{
    char begin[sizeof FILE_BEGIN - 1];
    const int f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f < 0 && errno == ENOENT)
        return 0;
    const ssize_t n = f < 0 ? -1 : read(f, begin, sizeof begin);
    const int error = errno;
    if (f >= 0)
        close(f);
    if (n < 0)
        return error_set(e, ERROR_INPUT, "--rendezvous %s: %s", path, strerror(error));
    return !n || ((size_t)n == sizeof begin && !memcmp(begin, FILE_BEGIN, sizeof begin))
               ? 0
               : error_set(e, ERROR_INPUT,
                           "--rendezvous %s: a file with other contents is there", path);
}

/* Removes what is there first; never follows a link. */
static bool write_part(const char *path, const struct tcp_address *a)
{
    unlink(path);
    const int f = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (f < 0)
        return false;
    bool written = dprintf(f, FILE_BEGIN " 1 %s %s %" PRIx64, a->host, a->port, a->key) > 0;
    for (uint32_t k = 0; k < a->others; k++)
        written = written && dprintf(f, " %s", a->other[k]) > 0;
    written = written && dprintf(f, "\n") > 0 && fsync(f) == 0;
    const int error = errno;
    const bool closed = close(f) == 0;
    errno = written ? errno : error;
    return written && closed;
}

/* Whole or absent; readable by its owner, as the key is what admits a rank. */
static int write_file(const char *path, const struct tcp_address *a, struct error *e)
{
    struct text part = {0};
    if (check_file(path, e) < 0)
        return -1;
    text_add(&part, "%s.%ld.part", path, (long)getpid());
    int r = write_part(text_get(&part), a) && rename(text_get(&part), path) == 0
                ? 0
                : error_set(e, ERROR_UNAVAILABLE, "--rendezvous %s: %s", path, strerror(errno));
    if (r < 0)
        unlink(text_get(&part));
    text_finish(&part);
    return r;
}

static int publish(const char *where, int socket, struct tcp_address *a, struct error *e)
{
    if (gethostname(a->host, sizeof a->host - 1) < 0 || port_of(socket, a->port) < 0 ||
        getrandom(&a->key, sizeof a->key, 0) != (ssize_t)sizeof a->key)
        return error_set(e, ERROR_UNAVAILABLE, "--rendezvous %s: %s", where, strerror(errno));
    find_others(a);
    return write_file(where, a, e);
}

int tcp_address_listen(const char *where, bool spreads, struct tcp_address *ret,
                       int *ret_socket, struct error *e)
{
    const bool given = tcp_address_is_given(where);
    *ret = (struct tcp_address){.port = "0"};
    if (given && !parse(where, ret))
        return tcp_address_check(where, e);
    const bool is_near = given && is_loopback(ret->host) && !spreads;
    *ret_socket = listen_at(is_near ? ret->host : NULL, ret->port);
    if (*ret_socket < 0)
        return error_set(e, ERROR_UNAVAILABLE,
                         "rank 0 cannot listen at %s: %s; --rendezvous names another place",
                         where, strerror(errno));
    if (given || publish(where, *ret_socket, ret, e) == 0)
        return 0;
    close(*ret_socket);
    return -1;
}

void tcp_address_forget(const char *where, const struct tcp_address *own)
{
    struct tcp_address there;
    if (!tcp_address_is_given(where) && tcp_address_read(where, &there) &&
        there.key == own->key)
        unlink(where);
}

/* ---- the others ---- */

/* NFS remembers that a file was missing until the folder is opened again. */
static void look_again(const char *where)
{
    char *copy = memory_text(where);
    const int f = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f >= 0)
        close(f);
    free(copy);
}

static bool read_line(FILE *f, struct tcp_address *ret)
{
    char line[1024];
    int size = 0;
    *ret = (struct tcp_address){0};
    if (!fgets(line, sizeof line, f) ||
        sscanf(line, FILE_FORM, ret->host, ret->port, &ret->key, &size) != 3)
        return false;
    for (int at = size; ret->others < TCP_OTHERS; at += size) {
        if (sscanf(line + at, " %63s%n", ret->other[ret->others], &size) != 1)
            break;
        ret->others++;
    }
    return true;
}

bool tcp_address_read(const char *where, struct tcp_address *ret)
{
    char own[256] = "";
    if (tcp_address_is_given(where))
        return parse(where, ret);
    look_again(where);
    FILE *f = fopen(where, "re");
    if (!f)
        return false;
    const bool read = read_line(f, ret);
    fclose(f);
    gethostname(own, sizeof own - 1);
    if (!strcmp(own, ret->host))
        snprintf(ret->host, sizeof ret->host, "localhost"); /* a name that resolves */
    return read;
}

/* 0, or errno. */
static int finish_connect(int socket)
{
    struct pollfd p = {socket, POLLOUT, 0};
    int error = 0;
    socklen_t size = sizeof error;
    const int n = poll(&p, 1, CONNECT_MS);
    if (n <= 0)
        return n ? errno : ETIMEDOUT;
    return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

/* -1: errno. */
static int connect_to(const struct addrinfo *a)
{
    const int s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0)
        return -1;
    int error = connect(s, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS)
        error = finish_connect(s);
    if (!error && fcntl(s, F_SETFL, 0) == 0)
        return s;
    close(s);
    errno = error ? error : EIO;
    return -1;
}

int tcp_address_connect(const struct tcp_address *a, uint32_t turn, struct error *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const uint32_t k = turn % (1 + a->others);
    const char *host = k ? a->other[k - 1] : a->host;
    struct addrinfo *list = NULL;
    int s = -1;
    const int failed = getaddrinfo(host, a->port, &hints, &list);
    if (failed)
        return error_set(e, ERROR_UNAVAILABLE, "%s: %s", host, gai_strerror(failed));
    for (const struct addrinfo *x = list; x && s < 0; x = x->ai_next)
        s = connect_to(x);
    if (s < 0)
        error_set(e, ERROR_UNAVAILABLE, "%s, port %s: %s", host, a->port, strerror(errno));
    freeaddrinfo(list);
    return s;
}
