/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvrtc.so that compiles nothing: every program becomes one line of PTX, for a fake driver that runs
   nothing either. The real one does not start beside such a driver. Written against nvrtc.h's
   prototypes. */
#include "runtime/compile/nvrtc.h"
#include <elf.h>
#include <string.h>

#ifndef FAKE_MAJOR /* of CUDA */
#define FAKE_MAJOR 13
#endif
#define FAKE(type, name, ...)                                      \
    __attribute__((visibility("default"))) type name(__VA_ARGS__); \
    type name(__VA_ARGS__)

/* Each image names every entry, since libmaskc looks for the name before it asks the driver. */
static const char ptx[] =
    "// attention_forward attention_dq attention_dkv attention_dx attention_dx_sum "
    "attention_key_heads attention_resident_forward attention_resident_backward";

/* A cubin without kernels: an ELF header and an empty section. The emulated device runs the source beside it. */
static const struct cubin {
    Elf64_Ehdr head;
    Elf64_Shdr section;
} cubin[] = {{.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
                       .e_shoff = sizeof(Elf64_Ehdr),
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = 1}}};

FAKE(int, nvrtcVersion, int *major, int *minor)
{
    *major = FAKE_MAJOR;
    *minor = 0;
    return 0;
}

FAKE(const char *, nvrtcGetErrorString, int result)
{
    return result ? "an error" : "no error";
}

FAKE(int, nvrtcCreateProgram, struct nvrtc_program **ret, const char *text, const char *name,
     int count, const char *const *headers, const char *const *names)
{
    (void)name;
    (void)count;
    (void)headers;
    (void)names;
    *ret = (struct nvrtc_program *)(size_t)1;
    return !text;
}

FAKE(int, nvrtcDestroyProgram, struct nvrtc_program **program)
{
    *program = NULL;
    return 0;
}

FAKE(int, nvrtcCompileProgram, struct nvrtc_program *program, int count,
     const char *const *options)
{
    return !program || !count || !options;
}

/* A log, a cubin or a PTX. */
#define BYTES(what, bytes)                                                      \
    FAKE(int, nvrtcGet##what##Size, struct nvrtc_program *program, size_t *ret) \
    {                                                                           \
        *ret = sizeof bytes;                                                    \
        return !program;                                                        \
    }                                                                           \
    FAKE(int, nvrtcGet##what, struct nvrtc_program *program, char *ret)         \
    {                                                                           \
        memcpy(ret, bytes, sizeof bytes);                                       \
        return !program;                                                        \
    }

BYTES(ProgramLog, "")
BYTES(CUBIN, cubin)
BYTES(PTX, ptx)
