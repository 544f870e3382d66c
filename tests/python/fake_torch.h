/* SPDX-License-Identifier: Apache-2.0 */
/* The operator of torch on a mock of torch: tensors of any device lie in the host's memory. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* torch's numbers. */
enum { FAKE_CPU = 0, FAKE_CUDA = 1, FAKE_INT32 = 3, FAKE_FLOAT32 = 6 };

struct fake_tensor {
    void *data;
    int32_t dtype, device, index;
    int64_t dim, sizes[4], strides[4];
};

/* Calls of the operator to torch since fake_torch_reset(). */
struct fake_torch {
    int made, copied;      /* new tensors; calls of aten::copy_ */
    int handles;           /* held now */
    int32_t device, index; /* of the last new tensor */
    int32_t other;         /* new tensors of another device than the first one's */
    int libraries_of_cuda; /* operators registered for the dispatch key CUDA */
};
extern struct fake_torch fake_torch;
void fake_torch_reset(void); /* frees the data of new tensors */

int maskc_torch_add(int64_t id,
                    struct maskc_kernel *kernel); /* 0: the operator owns the kernel */
void maskc_torch_forget(int64_t id);

/* torch.ops.maskc.forward(q, k, v, kernel, lengths=) and its backward pass; lengths may be null. Null, or the error's
   text, which lives until the next call. */
const char *fake_forward(int64_t kernel, const struct fake_tensor *q,
                         const struct fake_tensor *k, const struct fake_tensor *v,
                         const struct fake_tensor *lengths);
const char *fake_backward(int64_t kernel, const struct fake_tensor *q);

#ifdef __cplusplus
}
#endif
