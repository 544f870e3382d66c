/* SPDX-License-Identifier: Apache-2.0 */
/* Attention under a compiled mask: one straightforward family for every CUDA target, arithmetic
   in float throughout. The plan's tables say what to visit; this text only knows how. It is
   compiled for a GPU (NVRTC, nvcc) and, by the emulation, for a CPU. This file has the forward pass. */
#include "cuda/simt/softmax.h"
#include "cuda/simt/sparsegen.h"

ENTRY(attention_forward)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < job_count(&a, &a.forward); at += BLOCKS) {
        struct job j = job_at(&a, &a.forward, at);
        if (TRANSFORM == ABI_SPARSEGEN)
            forward_sparsegen(&a, &j);
        else
            forward_softmax(&a, &j);
    }
}
