// SPDX-License-Identifier: Apache-2.0
// maskc::forward and maskc::backward, operators of torch on libmaskc. Built on torch's stable ABI as of 2.10, so that
// one library serves all versions from there on. A launch runs on torch's own threads. Errors begin with "maskc[CODE]: ".
#include "runtime/maskc.h"
#include "runtime/python/maskc/torch_stream.h"
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace {

using torch::stable::Tensor;
using Optional = std::optional<Tensor>;

[[noreturn]] void fail(int code, const std::string &text)
{
    throw std::runtime_error("maskc[" + std::to_string(code) + "]: " + text);
}

// The text is made only where it is wanted: those of checks that hold would take half of a small call.
#define REFUSE_UNLESS(holds, text)                                                                                                           \
    do {                                                                                                                                     \
        if (!(holds))                                                                                                                        \
            fail(MASKC_BAD_INPUT, text);                                                                                                     \
    } while (0)

void call(AOTITorchError error)
{
    if (error)
        fail(MASKC_UNAVAILABLE, "torch refused a call of its stable interface");
}

// ---- kernels, by number (torch_numbers.py) ----

// Owns the kernel. A call shares it, so that the kernel outlives a launch of another thread.
struct Entry {
    maskc_kernel *kernel;
    maskc_info info;
    bool cuda;

    explicit Entry(maskc_kernel *owned) : kernel(owned), info{}
    {
        info.struct_size = sizeof info;
        maskc_kernel_info(kernel, &info);
        cuda = std::string(info.device).rfind("cuda", 0) == 0;
    }
    ~Entry() { maskc_kernel_destroy(kernel); }
    Entry(const Entry &) = delete;
    Entry &operator=(const Entry &) = delete;
};

std::mutex entries_lock;
// Never destroyed: at the process's exit the driver may have ended before.
std::unordered_map<int64_t, std::shared_ptr<const Entry>> &entries = *new std::unordered_map<int64_t, std::shared_ptr<const Entry>>;

std::shared_ptr<const Entry> entry_of(int64_t id)
{
    std::lock_guard<std::mutex> hold(entries_lock);
    const auto found = entries.find(id);
    REFUSE_UNLESS(found != entries.end(),
                  "the kernel is gone, or of another process: exported and traced programs only hold its number; keep the maskc.Kernel, and "
                  "export or trace in the process that runs the program");
    return found->second;
}

// ---- tensors ----

struct View {
    AtenTensorHandle handle;
    int64_t dim, *sizes, *strides;
    int32_t dtype, device, index;
    void *data;
};

View view_of(const Tensor &t)
{
    View v;
    v.handle = t.get();
    call(aoti_torch_get_dim(v.handle, &v.dim));
    call(aoti_torch_get_sizes(v.handle, &v.sizes));
    call(aoti_torch_get_strides(v.handle, &v.strides));
    call(aoti_torch_get_dtype(v.handle, &v.dtype));
    call(aoti_torch_get_device_type(v.handle, &v.device));
    call(aoti_torch_get_device_index(v.handle, &v.index));
    call(aoti_torch_get_data_ptr(v.handle, &v.data));
    return v;
}

std::string shape_text(const View &v)
{
    std::string text = "[";
    for (int64_t k = 0; k < v.dim; k++)
        text += (k ? ", " : "") + std::to_string(v.sizes[k]);
    return text + "]";
}

// "cpu", "cuda:1"; the number of another type of torch's.
std::string device_text(int32_t type, int32_t index)
{
    const std::string name = type == aoti_torch_device_type_cpu()    ? "cpu"
                             : type == aoti_torch_device_type_cuda() ? "cuda"
                                                                     : "device type " + std::to_string(type);
    return type == aoti_torch_device_type_cpu() || index < 0 ? name : name + ":" + std::to_string(index);
}

int32_t dtype_of(const maskc_info &i)
{
    return i.dtype == MASKC_BF16 ? aoti_torch_dtype_bfloat16()
           : i.dtype == MASKC_F16 ? aoti_torch_dtype_float16()
                                  : aoti_torch_dtype_float32();
}

int64_t bytes_of(const maskc_info &i)
{
    return i.dtype == MASKC_BF16 || i.dtype == MASKC_F16 ? 2 : 4;
}

// D contiguous; pointer and strides of a whole number of 16 bytes. Not a vector expanded to all rows: strides that are all 0 mean "contiguous".
bool readable(const View &v, int64_t bytes)
{
    if ((uintptr_t)v.data % 16 || (v.sizes[v.dim - 1] > 1 && v.strides[v.dim - 1] != 1))
        return false;
    bool moves = false;
    for (int64_t k = 0; k + 1 < v.dim; k++) {
        moves = moves || v.strides[k];
        if (v.sizes[k] > 1 && v.strides[k] * bytes % 16)
            return false;
    }
    return moves;
}

Tensor make(const int64_t *sizes, const int64_t *strides, int64_t dim, int32_t dtype, const View &like)
{
    AtenTensorHandle made;
    call(aoti_torch_empty_strided(dim, sizes, strides, dtype, like.device, like.index, &made));
    return Tensor(made);
}

Tensor make_contiguous(const int64_t *sizes, int64_t dim, int32_t dtype, const View &like)
{
    int64_t strides[4], step = 1;
    for (int64_t k = dim; k-- > 0; step *= sizes[k])
        strides[k] = step;
    return make(sizes, strides, dim, dtype, like);
}

// Shaped as q; in memory [B, N, H, D] or [T, H, D], as a model goes on with it.
Tensor make_like(const View &q)
{
    const int64_t *s = q.sizes;
    if (q.dim == 3)
        return make_contiguous(s, 3, q.dtype, q);
    const int64_t strides[4] = {s[1] * s[2] * s[3], s[3], s[1] * s[3], 1};
    return make(s, strides, 4, q.dtype, q);
}

maskc_tensor tensor_of(const View &v)
{
    if (v.dim == 3)
        return {v.data, 0, v.strides[0], v.strides[1]};
    return {v.data, v.strides[0], v.strides[2], v.strides[1]};
}

// ---- threads and memory ----

struct Tasks {
    void (*task)(void *context, uint32_t k);
    void *context;
};

void run_range(int64_t begin, int64_t end, void *argument)
{
    const Tasks *t = static_cast<const Tasks *>(argument);
    for (int64_t k = begin; k < end; k++)
        t->task(t->context, (uint32_t)k);
}

void run_on_torch(void *, uint32_t count, void (*task)(void *, uint32_t), void *context)
{
    Tasks tasks = {task, context};
    if (torch_parallel_for(0, count, 1, run_range, &tasks))
        run_range(0, count, &tasks);
}

// The calling thread keeps its largest, up to a limit: fresh memory comes from the system page by page.
struct Workspace {
    static constexpr uint64_t KEEP = 1ull << 28;
    void *data = nullptr;
    uint64_t size = 0;

    void *take(uint64_t want)
    {
        if (want <= size)
            return data;
        std::free(data);
        size = 0;
        data = std::aligned_alloc(64, (want + 63) / 64 * 64);
        if (!data)
            fail(MASKC_UNAVAILABLE, "no memory for a workspace of " + std::to_string(want) + " bytes");
        size = want;
        return data;
    }
    void give()
    {
        if (size > KEEP) {
            std::free(data);
            data = nullptr;
            size = 0;
        }
    }
    ~Workspace() { std::free(data); }
};

thread_local Workspace kept;

void *stream_of(const View &q)
{
    static std::atomic<torch_stream_function *> kept{nullptr};
    torch_stream_function *current = kept;
    void *stream = nullptr;
    if (!current)
        kept = current = torch_stream_find();
    if (!current)
        fail(MASKC_UNAVAILABLE, "q: on " + device_text(q.device, q.index) + ", but no library of torch that is loaded has CUDA streams");
    call(current(q.index, &stream));
    return stream;
}

// ---- a launch ----

struct Call {
    const std::shared_ptr<const Entry> entry;
    const Entry &e;
    maskc_launch launch;
    std::vector<Tensor> copies; // alive until the launch has ended
    View q;
    int64_t rows; // of k, padded

    explicit Call(int64_t kernel) : entry(entry_of(kernel)), e(*entry) {}
};

void check_device(const Call &c, const View &v, const char *name)
{
    REFUSE_UNLESS(v.device == c.q.device && v.index == c.q.index,
                  std::string(name) + ": on " + device_text(v.device, v.index) + ", but q is on " +
                      device_text(c.q.device, c.q.index));
}

bool has_own_keys(const Call &c)
{
    return c.e.info.kv_length != c.e.info.length;
}

// The sizes that an operand shaped as the queries, or as the keys, has: the kernel's heads of keys, and as many rows as k has.
int64_t size_of(const Call &c, bool keys, int64_t k, int64_t rank)
{
    if (keys && k == 1)
        return c.e.info.kv_heads;
    return keys && k == 2 && rank == 4 ? c.rows : c.q.sizes[k];
}

void check_main(const Call &c, const View &v, const char *name, int64_t rank, bool keys)
{
    const auto at = [name] { return std::string(name) + ": "; };
    REFUSE_UNLESS(v.dim == rank, at() + "shape " + shape_text(v) + ", " + (rank == 3 ? "[T, H, D]" : "[B, H, N, D]") + " is expected");
    for (int64_t k = 0; k < rank; k++)
        REFUSE_UNLESS(v.sizes[k] == size_of(c, keys, k, rank),
                      at() + "shape " + shape_text(v) + ", but q has " + shape_text(c.q) + " and the kernel " +
                          std::to_string(c.e.info.kv_heads) + " key heads, " + std::to_string(c.e.info.length) + " queries and " +
                          std::to_string(c.e.info.kv_length) + " keys");
    REFUSE_UNLESS(v.dtype == dtype_of(c.e.info), at() + "its dtype is not the kernel's");
    check_device(c, v, name);
}

// A kernel of the device "emulated" reads the host's memory.
void check_kernel_device(const Call &c)
{
    const View &q = c.q;
    const bool cuda = q.device == aoti_torch_device_type_cuda();
    if (cuda == c.e.cuda && (cuda ? (uint32_t)q.index == c.e.info.ordinal : q.device == aoti_torch_device_type_cpu()))
        return;
    const std::string here = device_text(q.device, q.index),
                      there = c.e.cuda ? device_text(aoti_torch_device_type_cuda(), (int32_t)c.e.info.ordinal) : c.e.info.device;
    fail(MASKC_BAD_INPUT, "q: on " + here + ", but the kernel was loaded for " + there + ": " +
                              (cuda && c.e.cuda ? "kernel.to('" + here + "') loads it there" : "compile with target='" + here + "'"));
}

void check_query(const Call &c, int64_t rank)
{
    const View &q = c.q;
    check_main(c, q, "q", rank, false);
    const int64_t heads = q.sizes[1], d = q.sizes[rank - 1];
    REFUSE_UNLESS(heads == c.e.info.heads && d == c.e.info.head_dim,
                  "q: " + std::to_string(heads) + " heads of " + std::to_string(d) + ", but the kernel was compiled for " +
                      std::to_string(c.e.info.heads) + " heads of " + std::to_string(c.e.info.head_dim));
    REFUSE_UNLESS(rank == 3 || q.sizes[2] <= c.e.info.length,
                  "q: length " + std::to_string(rank == 3 ? 0 : q.sizes[2]) + ", but the mask has " +
                      std::to_string(c.e.info.length));
    check_kernel_device(c);
}

// A tensor that is read: checked, and copied where the kernel cannot read its strides.
View operand(Call &c, const Tensor &t, const char *name, bool warn, bool keys = false)
{
    static std::atomic<bool> warned{false};
    View v = view_of(t);
    check_main(c, v, name, c.q.dim, keys);
    if (readable(v, bytes_of(c.e.info)))
        return v;
    if (warn && !warned.exchange(true))
        aoti_torch_warn(__func__, __FILE__, __LINE__,
                        "maskc: a tensor is copied, as its last dimension is not contiguous, its memory or strides are "
                        "no multiples of 16 bytes, or one vector is expanded to all rows");
    Tensor made = make_like(v);
    torch::stable::copy_(made, t);
    c.copies.push_back(made);
    return view_of(made);
}

const int32_t *counts(const Call &c, const Optional &t, const char *name, int64_t size)
{
    if (!t)
        return nullptr;
    const View v = view_of(*t);
    REFUSE_UNLESS(v.dtype == aoti_torch_dtype_int32() && v.dim == 1 && (size < 0 ? v.sizes[0] >= 1 : v.sizes[0] == size),
                  std::string(name) + ": shape " + shape_text(v) + "; int32 [" +
                      (size < 0 ? "B + 1" : std::to_string(size)) + "] is expected");
    REFUSE_UNLESS(v.sizes[0] < 2 || v.strides[0] == 1, std::string(name) + ": not contiguous");
    check_device(c, v, name);
    return static_cast<const int32_t *>(v.data);
}

uint64_t seed_of(const Optional &seed)
{
    if (!seed)
        return 0;
    const View v = view_of(*seed);
    REFUSE_UNLESS(v.dtype == aoti_torch_dtype_int64() && v.device == aoti_torch_device_type_cpu() && v.dim == 0,
                  "seed: an int64 scalar on the CPU is expected");
    return (uint64_t) * static_cast<const int64_t *>(v.data);
}

const float *bias_of(const Call &c, const Optional &bias)
{
    const maskc_info &i = c.e.info;
    REFUSE_UNLESS(bias.has_value() == (i.soft != MASKC_SOFT_NONE),
                  bias ? "bias: the kernel was compiled without one" : "bias: the kernel was compiled with one, and needs it");
    if (!bias)
        return nullptr;
    const View v = view_of(*bias);
    const int64_t n = i.length;
    REFUSE_UNLESS(v.dtype == aoti_torch_dtype_float32() && v.dim == 3 && v.sizes[0] == i.heads && v.sizes[1] == n && v.sizes[2] == n,
                  "bias: shape " + shape_text(v) + "; float32 [" + std::to_string(i.heads) + ", " + std::to_string(n) + ", " +
                      std::to_string(n) + "] is expected");
    REFUSE_UNLESS((n < 2 || (v.strides[2] == 1 && v.strides[1] == n)) && (v.sizes[0] < 2 || v.strides[0] == n * n), "bias: not contiguous");
    check_device(c, v, "bias");
    return static_cast<const float *>(v.data);
}

// offsets is checked by libmaskc itself; here only what is read of it.
uint32_t longest(const Call &c, const int32_t *offsets, int64_t batch)
{
    int64_t most = 1;
    if (c.e.cuda)
        return c.e.info.length;
    for (int64_t b = 0; b < batch; b++)
        most = std::max(most, (int64_t)offsets[b + 1] - offsets[b]);
    REFUSE_UNLESS(most <= c.e.info.length, "offsets: a sequence of " + std::to_string(most) + ", but the mask has " +
                                               std::to_string(c.e.info.length));
    return (uint32_t)most;
}

struct Common {
    int64_t layer;
    double scale, dropout;
    const Optional &lengths, &starts, &offsets, &seed, &bias;
};

// [B], or [2, B]: those of the keys below.
void take_lengths(Call &c, const Optional &t)
{
    maskc_launch &l = c.launch;
    const View v = t ? view_of(*t) : c.q;
    if (!t || v.dim != 2) {
        l.lengths = counts(c, t, "lengths", l.batch);
        return;
    }
    REFUSE_UNLESS(has_own_keys(c), "key_lengths: the kernel has as many keys as queries; lengths are those of both");
    REFUSE_UNLESS(v.dtype == aoti_torch_dtype_int32() && v.sizes[0] == 2 && v.sizes[1] == l.batch && v.strides[0] == v.sizes[1] &&
                      (v.strides[1] == 1 || v.sizes[1] == 1),
                  "lengths: shape " + shape_text(v) + "; int32 [" + std::to_string(l.batch) + "] is expected");
    check_device(c, v, "lengths");
    l.lengths = static_cast<const int32_t *>(v.data);
    l.key_lengths = l.lengths + l.batch;
}

// How many rows k has; others than q only where the kernel was compiled so.
int64_t rows_of_keys(const Call &c, const Tensor &k)
{
    const View v = view_of(k);
    if (!has_own_keys(c) || v.dim != 4 || v.sizes[2] < 1 || v.sizes[2] > c.e.info.kv_length)
        return c.q.dim == 4 && !has_own_keys(c) ? c.q.sizes[2] : (int64_t)c.e.info.kv_length;
    return v.sizes[2];
}

void begin(Call &c, const Common &o, const Tensor &q, const Tensor &k)
{
    maskc_launch &l = c.launch;
    c.q = view_of(q);
    l = maskc_launch{};
    l.struct_size = sizeof l;
    REFUSE_UNLESS(!(o.lengths && o.offsets), "lengths and offsets exclude each other");
    REFUSE_UNLESS(!(o.starts && o.offsets), "starts and offsets exclude each other");
    check_query(c, o.offsets ? 3 : 4);
    c.rows = rows_of_keys(c, k);
    REFUSE_UNLESS(o.layer >= 0 && o.layer < c.e.info.layers,
                  "layer: " + std::to_string(o.layer) + " is out of range, the mask has " + std::to_string(c.e.info.layers));
    REFUSE_UNLESS(o.dropout >= 0 && o.dropout < 1, "dropout_p: not in 0 <= p < 1");
    REFUSE_UNLESS(std::isfinite((float)o.scale), "scale: not finite");
    l.layer = (uint32_t)o.layer;
    l.scale = (float)o.scale;
    l.flags = MASKC_SCALE_GIVEN;
    l.dropout = (float)o.dropout;
    l.seed = seed_of(o.seed);
    l.offsets = counts(c, o.offsets, "offsets", -1);
    REFUSE_UNLESS(!o.offsets || view_of(*o.offsets).sizes[0] > 1 || c.q.sizes[0] == 0,
                  "offsets: of no sequence, but q has " + std::to_string(c.q.sizes[0]) + " rows");
    l.batch = (uint32_t)(o.offsets ? view_of(*o.offsets).sizes[0] - 1 : c.q.sizes[0]);
    take_lengths(c, o.lengths);
    l.starts = counts(c, o.starts, "starts", l.batch);
    l.length = o.offsets ? longest(c, l.offsets, l.batch) : (uint32_t)c.q.sizes[2];
    l.key_length = has_own_keys(c) ? (uint32_t)c.rows : 0;
    l.tokens = o.offsets ? (uint64_t)c.q.sizes[0] : 0;
    l.soft = bias_of(c, o.bias);
}

// f32 [B, H, N] or [H, T], contiguous: hooks on saved tensors may change it.
bool is_lse(const Call &c, const View &v)
{
    const int64_t packed[2] = {c.q.sizes[1], c.q.sizes[0]}, *sizes = c.q.dim == 3 ? packed : c.q.sizes;
    bool ret = v.dtype == aoti_torch_dtype_float32() && v.dim == c.q.dim - 1;
    int64_t step = 1;
    for (int64_t k = c.q.dim - 1; ret && k-- > 0; step *= sizes[k])
        ret = v.sizes[k] == sizes[k] && (sizes[k] < 2 || step == 0 || v.strides[k] == step);
    return ret;
}

bool is_empty(const Call &c)
{
    return c.launch.batch == 0 || c.q.sizes[0] == 0 || (c.q.dim == 4 && c.q.sizes[2] == 0);
}

void run(Call &c, maskc_pass pass)
{
    maskc_launch &l = c.launch;
    maskc_error error;
    uint32_t threads = 1;
    l.pass = pass;
    if (c.e.cuda)
        l.stream = stream_of(c.q);
    else
        call(torch_get_num_threads(&threads));
    l.threads = threads;
    l.parallel = c.e.cuda ? nullptr : run_on_torch;
    l.workspace_bytes = maskc_workspace_bytes(c.e.kernel, &l);
    if (l.workspace_bytes > (uint64_t)1 << 48)
        l.workspace_bytes = 0; // maskc_run says what is wrong
    if (c.e.cuda) {
        const int64_t size = (int64_t)l.workspace_bytes;
        c.copies.push_back(make_contiguous(&size, 1, aoti_torch_dtype_uint8(), c.q));
        l.workspace = view_of(c.copies.back()).data;
    } else if (l.workspace_bytes) {
        l.workspace = kept.take(l.workspace_bytes);
    }
    const int code = maskc_run(c.e.kernel, &l, &error);
    kept.give();
    if (code)
        fail(code, error.text);
}

std::tuple<Tensor, Tensor> forward(const Tensor &q, const Tensor &k, const Tensor &v, int64_t kernel, int64_t layer,
                                   double scale, const Optional &lengths, const Optional &starts, const Optional &offsets, double dropout_p,
                                   const Optional &seed, const Optional &bias)
{
    Call c(kernel);
    begin(c, {layer, scale, dropout_p, lengths, starts, offsets, seed, bias}, q, k);
    c.launch.query = tensor_of(operand(c, q, "q", true));
    c.launch.key = tensor_of(operand(c, k, "k", true, true));
    c.launch.value = tensor_of(operand(c, v, "v", true, true));
    Tensor out = make_like(c.q);
    const int64_t packed[2] = {c.q.sizes[1], c.q.sizes[0]};
    Tensor lse = make_contiguous(offsets ? packed : c.q.sizes, offsets ? 2 : 3, aoti_torch_dtype_float32(), c.q);
    c.launch.out = tensor_of(view_of(out));
    c.launch.lse = static_cast<float *>(view_of(lse).data);
    if (!is_empty(c))
        run(c, MASKC_FORWARD);
    return {out, lse};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward(const Tensor &grad_out, const Tensor &q, const Tensor &k, const Tensor &v,
                                                    const Tensor &out, const Tensor &lse, int64_t kernel, int64_t layer,
                                                    double scale, const Optional &lengths, const Optional &starts, const Optional &offsets,
                                                    double dropout_p, const Optional &seed, const Optional &bias, bool bias_grad)
{
    Call c(kernel);
    begin(c, {layer, scale, dropout_p, lengths, starts, offsets, seed, bias}, q, k);
    c.launch.query = tensor_of(operand(c, q, "q", false));
    const View key = operand(c, k, "k", false, true);
    c.launch.key = tensor_of(key);
    c.launch.value = tensor_of(operand(c, v, "v", false, true));
    c.launch.out = tensor_of(operand(c, out, "out", false));
    c.launch.grad_out = tensor_of(operand(c, grad_out, "grad_out", false));
    const View sums = view_of(lse);
    REFUSE_UNLESS(is_lse(c, sums), "lse: not what forward gave");
    c.launch.lse = static_cast<float *>(sums.data);
    Tensor grads[3] = {make_like(c.q), make_like(key), make_like(key)};
    c.launch.grad_query = tensor_of(view_of(grads[0]));
    c.launch.grad_key = tensor_of(view_of(grads[1]));
    c.launch.grad_value = tensor_of(view_of(grads[2]));
    const int64_t none[3] = {0, 0, 0};
    Tensor grad_bias = make_contiguous(bias && bias_grad ? view_of(*bias).sizes : none, 3, aoti_torch_dtype_float32(), c.q);
    if (bias && bias_grad)
        c.launch.grad_soft = static_cast<float *>(view_of(grad_bias).data);
    if (!is_empty(c)) {
        run(c, MASKC_BACKWARD);
    } else {
        for (Tensor &t : grads) // keys without queries
            torch::stable::zero_(t);
        torch::stable::zero_(grad_bias);
    }
    return {grads[0], grads[1], grads[2], grad_bias};
}

} // namespace

// For ctypes: takes a kernel and its number; -1, and the kernel stays the caller's, where the number is taken.
extern "C" __attribute__((visibility("default"))) int maskc_torch_add(int64_t id, maskc_kernel *kernel)
{
    std::lock_guard<std::mutex> hold(entries_lock);
    if (entries.count(id))
        return -1;
    entries[id] = std::make_shared<const Entry>(kernel);
    return 0;
}

extern "C" __attribute__((visibility("default"))) void maskc_torch_forget(int64_t id)
{
    std::shared_ptr<const Entry> last; // destroyed after the lock is released
    std::lock_guard<std::mutex> hold(entries_lock);
    const auto found = entries.find(id);
    if (found == entries.end())
        return;
    last = found->second;
    entries.erase(found);
}

STABLE_TORCH_LIBRARY(maskc, m)
{
    m.def("forward(Tensor q, Tensor k, Tensor v, int kernel, int layer, float scale, Tensor? lengths, Tensor? starts, Tensor? offsets, "
          "float dropout_p, Tensor? seed, Tensor? bias) -> (Tensor, Tensor)");
    m.def("backward(Tensor grad_out, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, int kernel, int layer, float scale, "
          "Tensor? lengths, Tensor? starts, Tensor? offsets, float dropout_p, Tensor? seed, Tensor? bias, bool bias_grad) "
          "-> (Tensor, Tensor, Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(maskc, CPU, m)
{
    m.impl("forward", TORCH_BOX(&forward));
    m.impl("backward", TORCH_BOX(&backward));
}

STABLE_TORCH_LIBRARY_IMPL(maskc, CUDA, m)
{
    m.impl("forward", TORCH_BOX(&forward));
    m.impl("backward", TORCH_BOX(&backward));
}
