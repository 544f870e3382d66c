/* SPDX-License-Identifier: Apache-2.0 */
/* Address at which rank 0 listens: tcp://HOST:PORT, or a file that contains it. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>
#include <stdint.h>

struct tcp_address {
    char host[256], port[16];
    uint64_t key; /* a random number of the launch, in the file; 0 without a file */
};

/* True if `where` has the form of an address, not of a file. */
bool tcp_address_is_given(const char *where);
/* Checks the form; *e states the expected one. */
int tcp_address_check(const char *where, struct error *e);
/* On rank 0: listens, and writes the file if `where` is one. An existing file must be empty or of an earlier launch. */
int tcp_address_listen(const char *where, struct tcp_address *ret, int *ret_socket,
                       struct error *e);
/* Removes the file, unless it has another launch's address. */
void tcp_address_forget(const char *where, const struct tcp_address *own);
/* On the other ranks: false while there is no file. */
bool tcp_address_read(const char *where, struct tcp_address *ret);
int tcp_address_connect(const struct tcp_address *a); /* a socket, or -1 */
