/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of NCCL that we use, and the types and constants of nccl.h behind them, the same since NCCL 2.14: the build
   needs no NCCL. Results are ncclResult_t. */
#pragma once
#include <stddef.h>

struct nccl_comm; /* ncclComm_t points to one */

struct nccl_id {
    char bytes[128];
};

/* ncclConfig_t as 2.14 has it. Later versions take the defaults of fields that `size` leaves out. */
struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking; /* 0: calls return NCCL_IN_PROGRESS in place of waiting for other ranks */
};

enum {
    NCCL_SUCCESS = 0,
    NCCL_IN_PROGRESS = 7,
    NCCL_FLOAT32 = 7, /* a type */
    NCCL_SUM = 0,
    NCCL_CONFIG_VERSION = 21400,
};
#define NCCL_CONFIG_MAGIC 0xcafebeefu

/* clang-format off */
#define NCCL_SYMBOLS(S)                                                                        \
    S(ncclGetUniqueId, int, (struct nccl_id *id))                                              \
    S(ncclCommInitRankConfig, int, (struct nccl_comm **comm, int ranks, struct nccl_id id,     \
                                    int rank, struct nccl_config *config))                     \
    S(ncclCommFinalize, int, (struct nccl_comm *comm))                                         \
    S(ncclCommDestroy, int, (struct nccl_comm *comm))                                          \
    S(ncclCommAbort, int, (struct nccl_comm *comm))                                            \
    S(ncclCommGetAsyncError, int, (struct nccl_comm *comm, int *ret))                          \
    S(ncclGetErrorString, const char *, (int result))                                          \
    S(ncclGroupStart, int, (void))                                                             \
    S(ncclGroupEnd, int, (void))                                                               \
    S(ncclSend, int, (const void *from, size_t count, int type, int peer,                      \
                      struct nccl_comm *comm, void *stream))                                   \
    S(ncclRecv, int, (void *to, size_t count, int type, int peer, struct nccl_comm *comm,      \
                      void *stream))                                                           \
    S(ncclBroadcast, int, (const void *from, void *to, size_t count, int type, int root,       \
                           struct nccl_comm *comm, void *stream))                              \
    S(ncclAllReduce, int, (const void *from, void *to, size_t count, int type, int op,         \
                           struct nccl_comm *comm, void *stream))
/* clang-format on */
