/* SPDX-License-Identifier: Apache-2.0 */
/* Address at which rank 0 listens: tcp://HOST:PORT, or a file that contains it. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>
#include <stdint.h>

enum { TCP_OTHERS = 8 };

struct tcp_address {
    char host[256], port[16];
    uint64_t key; /* a random number of the launch, in the file; 0 without a file */
    /* Numeric addresses of the host, in the file: other machines may have no other name for it. */
    char other[TCP_OTHERS][64];
    uint32_t others;
};

/* True if `where` has the form of an address, not of a file. */
bool tcp_address_is_given(const char *where);
/* Checks the form; *e states the expected one. */
int tcp_address_check(const char *where, struct error *e);
/* On rank 0: listens, and writes the file if `where` is one. An existing file must be empty or of an earlier launch. A loopback
   address is listened at alone unless ranks are on several machines, which `spreads` tells. */
int tcp_address_listen(const char *where, bool spreads, struct tcp_address *ret,
                       int *ret_socket, struct error *e);
/* Removes the file, unless it has another launch's address. */
void tcp_address_forget(const char *where, const struct tcp_address *own);
/* On the other ranks: false while there is no file. */
bool tcp_address_read(const char *where, struct tcp_address *ret);
/* A socket. -1 with *e set. Each turn, from 0, tries the next one of host and others. */
int tcp_address_connect(const struct tcp_address *a, uint32_t turn, struct error *e);
