/* SPDX-License-Identifier: Apache-2.0 */
/* torch's current CUDA stream, without a link to torch's CUDA library: the operator loads beside a torch without CUDA too. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* aoti_torch_get_current_cuda_stream of torch's stable interface: 0, or an error. */
typedef int32_t torch_stream_function(int32_t device, void **ret);

/* Null if this process has no torch with CUDA. */
torch_stream_function *torch_stream_find(void);

#ifdef __cplusplus
}
#endif
