// SPDX-License-Identifier: Apache-2.0
// maskc_run behind JAX's foreign function interface (jax.ffi), on the CPU: XLA's buffers are read and written in place.
// Built by jax_attention.py. Tensors are contiguous [B, N, H, D], lse [B, H, N], lengths int32 [B].
#include "runtime/maskc.h"
#include "xla/ffi/api/ffi.h"
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
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

static bool has(const Buffer &t, ffi::DataType type, std::initializer_list<int64_t> shape)
{
    return t.element_type() == type && std::equal(t.dimensions().begin(), t.dimensions().end(), shape.begin(), shape.end());
}

// Refuses buffers whose types or shapes are not the kernel's: XLA hands over bare memory. others: as q.
static ffi::Error check(const maskc_kernel *k, const Buffer &q, std::initializer_list<Buffer> keys, const Buffer &lengths,
                        std::initializer_list<Buffer> others, const Buffer &lse)
{
    static const ffi::DataType types[] = {ffi::F32, ffi::BF16, ffi::F16};
    maskc_info i = {};
    i.struct_size = sizeof i;
    maskc_kernel_info(k, &i);
    if (i.soft || i.layers != 1 || i.kv_length != i.length)
        return ffi::Error::InvalidArgument("kernel: one of one layer, without a soft mask, with as many keys as queries is expected");
    const auto type = types[i.dtype];
    if (q.dimensions().size() != 4 || q.dimensions()[1] > i.length)
        return ffi::Error::InvalidArgument("q: [B, N, H, D] with N of at most the kernel's length is expected");
    const int64_t b = q.dimensions()[0], n = q.dimensions()[1];
    if (b > INT32_MAX || !has(q, type, {b, n, i.heads, i.head_dim}))
        return ffi::Error::InvalidArgument("q: [B, N, H, D] with the kernel's dtype, H and D is expected");
    for (const Buffer &t : keys)
        if (!has(t, type, {b, n, i.kv_heads, i.head_dim}))
            return ffi::Error::InvalidArgument("k, v: q's dtype, B, N and D and the kernel's key heads are expected");
    for (const Buffer &t : others)
        if (!has(t, type, {b, n, i.heads, i.head_dim}))
            return ffi::Error::InvalidArgument("out and its gradient: q's dtype and shape are expected");
    if (!has(lengths, ffi::S32, {b}))
        return ffi::Error::InvalidArgument("lengths: int32 [B] is expected");
    if (!has(lse, ffi::F32, {b, i.heads, n}))
        return ffi::Error::InvalidArgument("lse: float32 [B, H, N] is expected");
    return ffi::Error::Success();
}

static ffi::Error run(const maskc_kernel *k, maskc_launch &l)
{
    if (!l.batch || !l.length)
        return ffi::Error::Success();
    l.workspace_bytes = maskc_workspace_bytes(k, &l);
    const size_t size = l.workspace_bytes < SIZE_MAX / 2 ? (l.workspace_bytes + 63) / 64 * 64 : 0;
    std::unique_ptr<void, decltype(&std::free)> space(size ? std::aligned_alloc(64, size) : nullptr, std::free);
    if (l.workspace_bytes && !space)
        return ffi::Error(ffi::ErrorCode::kResourceExhausted, "no memory for the workspace");
    l.workspace = space.get();
    maskc_error error;
    return maskc_run(k, &l, &error) ? ffi::Error::InvalidArgument(error.text) : ffi::Error::Success();
}

static ffi::Error forward(Buffer q, Buffer k, Buffer v, Buffer lengths, Result out, Result lse, int64_t kernel, double scale)
{
    const auto *handle = reinterpret_cast<const maskc_kernel *>(kernel);
    if (auto wrong = check(handle, q, {k, v}, lengths, {*out}, *lse); wrong.failure())
        return wrong;
    maskc_launch l = launch_of(MASKC_FORWARD, q, lengths, scale);
    l.query = {q.untyped_data(), 0, 0, 0}, l.key = {k.untyped_data(), 0, 0, 0}, l.value = {v.untyped_data(), 0, 0, 0};
    l.out = {out->untyped_data(), 0, 0, 0};
    l.lse = static_cast<float *>(lse->untyped_data());
    return run(handle, l);
}

static ffi::Error backward(Buffer grad, Buffer q, Buffer k, Buffer v, Buffer lengths, Buffer out, Buffer lse, Result dq, Result dk,
                           Result dv, int64_t kernel, double scale)
{
    const auto *handle = reinterpret_cast<const maskc_kernel *>(kernel);
    if (auto wrong = check(handle, q, {k, v, *dk, *dv}, lengths, {grad, out, *dq}, lse); wrong.failure())
        return wrong;
    maskc_launch l = launch_of(MASKC_BACKWARD, q, lengths, scale);
    l.query = {q.untyped_data(), 0, 0, 0}, l.key = {k.untyped_data(), 0, 0, 0}, l.value = {v.untyped_data(), 0, 0, 0};
    l.out = {out.untyped_data(), 0, 0, 0}, l.grad_out = {grad.untyped_data(), 0, 0, 0};
    l.lse = static_cast<float *>(lse.untyped_data());
    l.grad_query = {dq->untyped_data(), 0, 0, 0}, l.grad_key = {dk->untyped_data(), 0, 0, 0};
    l.grad_value = {dv->untyped_data(), 0, 0, 0};
    return run(handle, l);
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(maskc_jax_forward, forward, ffi::Ffi::Bind().Arg<Buffer>().Arg<Buffer>().Arg<Buffer>().Arg<Buffer>()
    .Ret<Buffer>().Ret<Buffer>().Attr<int64_t>("kernel").Attr<double>("scale"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(maskc_jax_backward, backward, ffi::Ffi::Bind().Arg<Buffer>().Arg<Buffer>().Arg<Buffer>().Arg<Buffer>()
    .Arg<Buffer>().Arg<Buffer>().Arg<Buffer>().Ret<Buffer>().Ret<Buffer>().Ret<Buffer>().Attr<int64_t>("kernel").Attr<double>("scale"));
