// SPDX-License-Identifier: Apache-2.0
// A mock of the part of torch's stable interface that the operator uses, and the operator itself.
#include "runtime/python/maskc/torch_op.cpp"
#include "tests/python/fake_torch.h"

#include <cstring>

struct AtenTensorOpaque {
    fake_tensor t;
};

struct fake_torch fake_torch;

namespace {
std::vector<void *> memory;
std::string last_error;

AtenTensorHandle handle_of(const fake_tensor &t)
{
    fake_torch.handles++;
    return new AtenTensorOpaque{t};
}

fake_tensor *tensor_at(StableIValue v)
{
    return &reinterpret_cast<AtenTensorHandle>(v)->t;
}

int64_t bytes_of(const fake_tensor &t)
{
    int64_t most = 1;
    for (int64_t k = 0; k < t.dim; k++)
        most += (t.sizes[k] - 1) * t.strides[k];
    return most * 8;
}
} // namespace

// ---- torch ----

#define SHIM extern "C" __attribute__((visibility("default")))
#define GETTER(name, type, member)                        \
    SHIM AOTITorchError name(AtenTensorHandle h, type *r) \
    {                                                     \
        *r = h->t.member;                                 \
        return 0;                                         \
    }
#define NUMBER(name, value)   \
    SHIM int32_t name()       \
    {                         \
        return value;         \
    }
GETTER(aoti_torch_get_dim, int64_t, dim)
GETTER(aoti_torch_get_sizes, int64_t *, sizes)
GETTER(aoti_torch_get_strides, int64_t *, strides)
GETTER(aoti_torch_get_dtype, int32_t, dtype)
GETTER(aoti_torch_get_device_type, int32_t, device)
GETTER(aoti_torch_get_device_index, int32_t, index)
GETTER(aoti_torch_get_data_ptr, void *, data)
NUMBER(aoti_torch_device_type_cpu, FAKE_CPU)
NUMBER(aoti_torch_device_type_cuda, FAKE_CUDA)
NUMBER(aoti_torch_dtype_uint8, 0)
NUMBER(aoti_torch_dtype_int32, FAKE_INT32)
NUMBER(aoti_torch_dtype_int64, 4)
NUMBER(aoti_torch_dtype_float16, 5)
NUMBER(aoti_torch_dtype_float32, FAKE_FLOAT32)
NUMBER(aoti_torch_dtype_bfloat16, 15)

SHIM uint64_t aoti_torch_abi_version()
{
    return 0x020a000000000000ull;
}

SHIM AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle from, AtenTensorHandle *ret)
{
    *ret = handle_of(from->t);
    return 0;
}

SHIM AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle h)
{
    fake_torch.handles--;
    delete h;
    return 0;
}

SHIM AOTITorchError aoti_torch_empty_strided(int64_t dim, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device,
                                             int32_t index, AtenTensorHandle *ret)
{
    fake_tensor t = {nullptr, dtype, device, index, dim, {}, {}};
    std::memcpy(t.sizes, sizes, (size_t)dim * sizeof *sizes);
    std::memcpy(t.strides, strides, (size_t)dim * sizeof *strides);
    t.data = std::aligned_alloc(64, (size_t)(bytes_of(t) + 63) / 64 * 64);
    memory.push_back(t.data);
    fake_torch.other += fake_torch.made++ && (device != fake_torch.device || index != fake_torch.index);
    fake_torch.device = device;
    fake_torch.index = index;
    *ret = handle_of(t);
    return 0;
}

// aten::copy_(self, src, non_blocking), aten::zero_(self): the stack's first value is the result.
SHIM AOTITorchError torch_call_dispatcher(const char *name, const char *, StableIValue *stack, uint64_t)
{
    if (!std::strcmp(name, "aten::copy_")) {
        fake_torch.copied++;
        *static_cast<float *>(tensor_at(stack[0])->data) = *static_cast<float *>(tensor_at(stack[1])->data);
        aoti_torch_delete_tensor_object(reinterpret_cast<AtenTensorHandle>(stack[1]));
    }
    return 0;
}

SHIM AOTITorchError torch_get_num_threads(uint32_t *ret)
{
    *ret = 1;
    return 0;
}

SHIM AOTITorchError torch_parallel_for(int64_t begin, int64_t end, int64_t, ParallelFunc task, void *context)
{
    task(begin, end, context);
    return 0;
}

SHIM void aoti_torch_warn(const char *, const char *, uint32_t, const char *) {}

SHIM AOTITorchError aoti_torch_library_init_def(const char *, const char *, uint32_t, TorchLibraryHandle *ret)
{
    *ret = nullptr;
    return 0;
}

SHIM AOTITorchError aoti_torch_library_init_impl(const char *, const char *key, const char *, uint32_t, TorchLibraryHandle *ret)
{
    *ret = std::strcmp(key, "CUDA") ? nullptr : reinterpret_cast<TorchLibraryHandle>(&fake_torch);
    return 0;
}

SHIM AOTITorchError aoti_torch_library_def(TorchLibraryHandle, const char *)
{
    return 0;
}

SHIM AOTITorchError torch_library_impl(TorchLibraryHandle library, const char *, void (*)(StableIValue *, uint64_t, uint64_t), uint64_t)
{
    fake_torch.libraries_of_cuda += library != nullptr;
    return 0;
}

SHIM AOTITorchError aoti_torch_delete_library_object(TorchLibraryHandle)
{
    return 0;
}

// ---- the operator ----

void fake_torch_reset(void)
{
    for (void *p : memory)
        std::free(p);
    memory.clear();
    fake_torch.made = fake_torch.copied = fake_torch.other = 0;
}

namespace {
template <class Function> const char *text_of(Function call_operator)
{
    try {
        call_operator();
        return nullptr;
    } catch (const std::exception &e) {
        last_error = e.what();
        return last_error.c_str();
    }
}
} // namespace

const char *fake_forward(int64_t kernel, const fake_tensor *q, const fake_tensor *k, const fake_tensor *v, const fake_tensor *lengths)
{
    return text_of([&] {
        Optional some = lengths ? Optional(Tensor(handle_of(*lengths))) : Optional(), none;
        forward(Tensor(handle_of(*q)), Tensor(handle_of(*k)), Tensor(handle_of(*v)), kernel, 0, 0, some, none, none, 0, none, none);
    });
}

const char *fake_backward(int64_t kernel, const fake_tensor *q)
{
    return text_of([&] {
        const Tensor t(handle_of(*q));
        fake_tensor sums = *q;
        sums.dim = 3;
        sums.strides[2] = 1; // [B, H, N], contiguous
        sums.strides[1] = q->sizes[2];
        sums.strides[0] = q->sizes[1] * q->sizes[2];
        Optional none;
        backward(t, t, t, t, t, Tensor(handle_of(sums)), kernel, 0, 0, none, none, none, 0, none, none, false);
    });
}
