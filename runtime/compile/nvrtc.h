/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC as it is found on this machine: its functions, and its version. */
#pragma once
#include <stddef.h>

struct nvrtc_program;

/* nvrtcResult is an int; 0 is success. */
#define NVRTC_SYMBOLS(S)                                                              \
    S(int, nvrtcVersion, (int *, int *))                                              \
    S(const char *, nvrtcGetErrorString, (int))                                       \
    S(int, nvrtcCreateProgram,                                                        \
      (struct nvrtc_program **, const char *, const char *, int, const char *const *, \
       const char *const *))                                                          \
    S(int, nvrtcDestroyProgram, (struct nvrtc_program **))                            \
    S(int, nvrtcCompileProgram, (struct nvrtc_program *, int, const char *const *))   \
    S(int, nvrtcGetProgramLogSize, (struct nvrtc_program *, size_t *))                \
    S(int, nvrtcGetProgramLog, (struct nvrtc_program *, char *))                      \
    S(int, nvrtcGetCUBINSize, (struct nvrtc_program *, size_t *))                     \
    S(int, nvrtcGetCUBIN, (struct nvrtc_program *, char *))                           \
    S(int, nvrtcGetPTXSize, (struct nvrtc_program *, size_t *))                       \
    S(int, nvrtcGetPTX, (struct nvrtc_program *, char *))

struct nvrtc {
#define S(type, name, args) type(*name) args;
    NVRTC_SYMBOLS(S)
#undef S
    char version[16]; /* "13.0"; empty where there is none */
};

/* The library, looked for once in a process. */
const struct nvrtc *nvrtc_library(void);
