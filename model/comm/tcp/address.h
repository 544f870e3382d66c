/* SPDX-License-Identifier: Apache-2.0 */
/* Where rank 0 listens: tcp://HOST:PORT, or a file with the address. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>
#include <stdint.h>

struct tcp_address {
    char host[256], port[16];
    uint64_t key; /* a random number in the file, of one launch; 0 without a file */
};

/* True if `where` has the form of an address, and not of a file. */
bool tcp_address_is_given(const char *where);
/* The form is checked; *e: what is expected. */
int tcp_address_check(const char *where, struct error *e);
/* On rank 0: listens, and writes the file if `where` is one. It may be there if it is empty, or of an earlier launch. */
int tcp_address_listen(const char *where, struct tcp_address *ret, int *ret_socket,
                       struct error *e);
/* Removes the file, unless it has another launch's address. */
void tcp_address_forget(const char *where, const struct tcp_address *own);
/* On the others: false while there is no file. */
bool tcp_address_read(const char *where, struct tcp_address *ret);
int tcp_address_connect(const struct tcp_address *a); /* a socket, or -1 */
