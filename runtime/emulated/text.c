/* SPDX-License-Identifier: Apache-2.0 */
/* The file that the host compiler is given: the names of the machine, the kernel's own text, and how a
   thread begins. It needs nothing but memcpy and memset from outside. */
#include "device.h"
#include "kernel.cu"

#ifndef LARGEST_ARGS /* of all entries of the text; others receive the beginning of it */
#define LARGEST_ARGS ARGS_STRUCT
#endif

__attribute__((visibility("default"))) void emulation_enter(const struct emulation_face *f,
                                                            void *entry, const void *args)
{
    the_block = f;
    ((void (*)(LARGEST_ARGS))entry)(*(const LARGEST_ARGS *)args);
}
