/* SPDX-License-Identifier: Apache-2.0 */
/* A mock libnccl.so.2: ranks are processes of this machine, which exchange host memory by a shared file. As of a
   communicator that does not block, calls return at once, and operations go on whenever their state is asked for. */
#pragma once

struct fake_nccl {
    int calls, fail_at; /* the call of that number, from 1, fails; 0: none */
    char only[40];      /* if not empty, only calls of this name are counted */
    char failed[40];    /* the name of the call that failed */
    int state_fails;    /* ncclCommGetAsyncError succeeds there, with an error as the state */
    int hangs;          /* operations of this rank never go on */
    int communicators, groups, misuses;
    void (*moves)(const char *call, const void *at,
                  void *stream); /* called by operations; or null */
};
