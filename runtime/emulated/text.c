/* SPDX-License-Identifier: Apache-2.0 */
/* The file that the host compiler is given: the names of the machine, the kernel's own text, and how a
   thread begins. It needs nothing but memcpy and memset from outside. */
#include "device.h"
#include "kernel.cu"

__attribute__((visibility("default"))) void emulation_enter(const struct emulation_face *f,
                                                            void *entry, const void *args)
{
    the_block = f;
    ((void (*)(ARGS))entry)(*(ARGS *)args);
}
