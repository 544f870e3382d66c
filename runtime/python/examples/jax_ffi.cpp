// SPDX-License-Identifier: Apache-2.0
// maskc_run behind JAX's foreign function interface (jax.ffi), on the CPU: XLA's buffers are read and written in place.
// Built by jax_attention.py. Tensors are contiguous [B, N, H, D], lse [B, H, N], lengths int32 [B].
#include "runtime/maskc.h"
#include "xla/ffi/api/ffi.h"
#include <cstdlib>
#include <memory>

namespace ffi = xla::ffi;
using Buffer = ffi::AnyBuffer;
using Result = ffi::Result<ffi::AnyBuffer>;

static maskc_launch launch_of(maskc_pass pass, const Buffer &q, const Buffer &lengths, double scale)
{
    maskc_launch l = {};
    l.struct_size = sizeof l;
    l.pass = pass;
    l.batch = (uint32_t)q.dimensions()[0];
    l.length = (uint32_t)q.dimensions()[1];
    l.scale = (float)scale;
    l.flags = MASKC_SCALE_GIVEN;
    l.lengths = static_cast<const int32_t *>(lengths.untyped_data());
    return l;
}

static ffi::Error run(int64_t kernel, maskc_launch &l, const Buffer &q)
{
    const auto *k = reinterpret_cast<const maskc_kernel *>(kernel);
    maskc_info info = {};
    info.struct_size = sizeof info;
    maskc_kernel_info(k, &info);
    if (q.dimensions().size() != 4 || q.dimensions()[2] != info.heads || q.dimensions()[3] != info.head_dim)
        return ffi::Error::InvalidArgument("q: [B, N, H, D] with the kernel's H and D is expected");
    l.workspace_bytes = maskc_workspace_bytes(k, &l);
    std::unique_ptr<void, decltype(&std::free)> space(std::aligned_alloc(64, (l.workspace_bytes + 63) / 64 * 64), std::free);
    l.workspace = space.get();
    maskc_error error;
    return maskc_run(k, &l, &error) ? ffi::Error::InvalidArgument(error.text) : ffi::Error::Success();
}

static ffi::Error forward(Buffer q, Buffer k, Buffer v, Buffer lengths, Result out, Result lse, int64_t kernel, double scale)
{
    maskc_launch l = launch_of(MASKC_FORWARD, q, lengths, scale);
    l.query = {q.untyped_data(), 0, 0, 0}, l.key = {k.untyped_data(), 0, 0, 0}, l.value = {v.untyped_data(), 0, 0, 0};
    l.out = {out->untyped_data(), 0, 0, 0};
    l.lse = static_cast<float *>(lse->untyped_data());
    return run(kernel, l, q);
}

static ffi::Error backward(Buffer grad, Buffer q, Buffer k, Buffer v, Buffer lengths, Buffer out, Buffer lse, Result dq, Result dk,
                           Result dv, int64_t kernel, double scale)
{
    maskc_launch l = launch_of(MASKC_BACKWARD, q, lengths, scale);
    l.query = {q.untyped_data(), 0, 0, 0}, l.key = {k.untyped_data(), 0, 0, 0}, l.value = {v.untyped_data(), 0, 0, 0};
    l.out = {out.untyped_data(), 0, 0, 0}, l.grad_out = {grad.untyped_data(), 0, 0, 0};
    l.lse = static_cast<float *>(lse.untyped_data());
    l.grad_query = {dq->untyped_data(), 0, 0, 0}, l.grad_key = {dk->untyped_data(), 0, 0, 0};
    l.grad_value = {dv->untyped_data(), 0, 0, 0};
    return run(kernel, l, q);
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(maskc_jax_forward, forward, ffi::Ffi::Bind().Arg<Buffer>().Arg<Buffer>().Arg<Buffer>().Arg<Buffer>()
    .Ret<Buffer>().Ret<Buffer>().Attr<int64_t>("kernel").Attr<double>("scale"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(maskc_jax_backward, backward, ffi::Ffi::Bind().Arg<Buffer>().Arg<Buffer>().Arg<Buffer>().Arg<Buffer>()
    .Arg<Buffer>().Arg<Buffer>().Arg<Buffer>().Ret<Buffer>().Ret<Buffer>().Ret<Buffer>().Attr<int64_t>("kernel").Attr<double>("scale"));
