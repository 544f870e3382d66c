# SPDX-License-Identifier: Apache-2.0
"""attention() on torch tensors: its arguments, checked and handed to the operators."""
import numbers

import torch
from torch.autograd import forward_ad

from . import hooks
from ._library import Error
from .arguments import check_dense, check_kernel, check_ordered
from .kernel import Kernel
from .torch_autograd import BELOW_AUTOGRAD, attend_traced, backward_op, differentiable, forward_op, raise_plain, refuse_vmap  # noqa: F401
from .torch_numbers import BY_NUMBER, number, retain

COUNTS = (torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64, torch.int64)
MOST_SEED = 2 ** 63 - 1
MOST_COUNT = 2 ** 31 - 1


# ---- what torch.compile and meta tensors see ----

def empty_like_rows(q):
    """Returns an empty output like the operator's: in memory [B, N, H, D]."""
    if q.dim() == 3:
        return torch.empty(q.shape, dtype=q.dtype, device=q.device)
    b, h, n, d = q.shape
    return torch.empty((b, n, h, d), dtype=q.dtype, device=q.device).transpose(1, 2)


def check_compiled(kernel, q, rank):
    """Refuses heads, head dimension and length that the kernel was not compiled for. The kernel may be unknown in this process."""
    heads, length = (q.shape[1], q.shape[2]) if rank == 4 else (q.shape[1], 0)
    if kernel is not None and (heads != kernel.heads or q.shape[-1] != kernel.head_dim or (isinstance(length, int) and length > kernel.length)):
        raise Error(2, f"q: shape {list(q.shape)}; the kernel was compiled for {kernel.heads} heads of {kernel.head_dim}, length {kernel.length}")


@torch.library.register_fake("maskc::forward")
def fake_forward(q, k, v, kernel, layer, scale, lengths, starts, offsets, dropout_p, seed, bias):
    rank = 4 if offsets is None else 3
    if q.dim() != rank or k.dim() != rank or k.shape != v.shape:
        raise Error(2, f"q, k, v: shapes {list(q.shape)}, {list(k.shape)}, {list(v.shape)}; all "
                       f"{'[B, H, N, D]' if rank == 4 else '[T, H, D]'} are expected")
    check_compiled(BY_NUMBER.get(kernel), q, rank)
    for name, t in zip(("k", "v", "lengths", "starts", "offsets", "bias"), (k, v, lengths, starts, offsets, bias)):
        if t is not None and t.device != q.device:
            raise Error(2, f"{name}: on {t.device}, but q is on {q.device}")
    shape = q.shape[:3] if rank == 4 else (q.shape[1], q.shape[0])
    return empty_like_rows(q), torch.empty(shape, dtype=torch.float32, device=q.device)


@torch.library.register_fake("maskc::backward")
def fake_backward(grad_out, q, k, v, out, lse, kernel, layer, scale, lengths, starts, offsets, dropout_p, seed, bias, bias_grad):
    x = bias.shape if bias is not None and bias_grad else (0, 0, 0)
    return (*(empty_like_rows(t) for t in (q, k, v)), torch.empty(x, dtype=torch.float32, device=q.device))


torch.library.register_vmap("maskc::forward", refuse_vmap)
torch.library.register_vmap("maskc::backward", refuse_vmap)


# ---- arguments ----

def cast(kernel, *tensors):
    """To the kernel's dtype under autocast; else they must have it."""
    want = kernel.torch_dtype
    kind = tensors[0].device.type
    if kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind) and all(t.is_floating_point() for t in tensors):
        return [t.to(want) for t in tensors]
    wrong = next(name for name, t in zip("qkv", tensors) if t.dtype != want)
    raise Error(2, f"{wrong}: {tensors['qkv'.index(wrong)].dtype}, but the kernel was compiled for {want}")


def cast_bias(bias):
    """To float32 under autocast; else it must be."""
    kind = bias.device.type
    if kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind) and bias.is_floating_point():
        return bias.float()
    raise Error(2, f"bias: {bias.dtype}; torch.float32 is expected")


def counts(values, name, device):
    """int32 [..] on the device; the operator judges the shape and libmaskc the numbers. What no int32 holds becomes one that
    is as wrong."""
    if not isinstance(values, torch.Tensor):
        try:
            values = torch.tensor(values, device=device)
            values = values if values.numel() else values.to(torch.int32)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            raise TypeError(f"{name}: {type(values).__name__}; a tensor or a list of whole numbers is expected") from None
    if values.layout is not torch.strided or values.is_nested:
        check_dense(name, values)
    if values.dtype not in COUNTS or values.dim() != 1:
        raise Error(2, f"{name}: {values.dtype} {list(values.shape)}; integers [{'B + 1' if name == 'offsets' else 'B'}] are expected")
    if values.dtype != torch.int32:
        values = values.to(torch.int64).clamp(-1, MOST_COUNT).to(torch.int32)  # uint64 beyond int64 becomes negative
    return values.contiguous()


def check_seed(seed):
    if isinstance(seed, torch.Tensor):
        if seed.dtype != torch.int64 or seed.dim() != 0:
            raise Error(2, f"seed: {seed.dtype} {list(seed.shape)}; a whole number or an int64 scalar is expected")
        check_dense("seed", seed)
    elif not hasattr(seed, "__index__") or not 0 <= seed < 2 ** 64:
        raise Error(2, f"seed: {seed!r} is not a whole number in 0 <= seed < 2^64")


def seed_tensor(seed):
    """An int64 scalar: the number given, or one from torch's generator."""
    if seed is None:
        if not torch.compiler.is_compiling() and hooks.is_capturing():
            raise Error(2, "dropout_p: while a CUDA graph is captured a seed is expected, as every replay drops the same entries")
        return torch.randint(MOST_SEED, (), dtype=torch.int64, device="cpu")
    check_seed(seed)
    if isinstance(seed, torch.Tensor):
        return seed.cpu()
    if not isinstance(seed, (int, torch.SymInt)):
        seed = seed.__index__()
    return torch.tensor(seed - 2 ** 64 if seed > MOST_SEED else seed, dtype=torch.int64, device="cpu")


def real(name, value):
    """A number; a tensor's gradient would be lost."""
    if isinstance(value, (float, int)):  # found faster
        return value
    if isinstance(value, torch.Tensor) or not isinstance(value, (numbers.Real, torch.SymFloat, torch.SymInt)):
        raise TypeError(f"{name}: {type(value).__name__}; a number is expected")
    return value


def check_dense_all(q, k, v, bias):
    for name, t in (("q", q), ("k", k), ("v", v), ("bias", bias)):
        if t is not None:
            check_dense(name, t, meta=True)


def rows_from(starts, length, sign):
    """[B, N]: the row that each row of a sequence is taken from."""
    return (torch.arange(length, device=starts.device) + sign * starts[:, None]) % length


def shift(t, rows):
    """Rows of [B, H, N, ...] taken in that order."""
    index = rows[:, None, :, None] if t.dim() == 4 else rows[:, None]
    return t.gather(2, index.expand(t.shape))


def attend(q, k, v, kernel, layer, lengths, starts, offsets, dropout_p, seed, scale, bias, sums=False):
    """(out, lse) of arguments that are ready; lse may be None unless `sums`."""
    arguments = q, k, v, kernel._op, layer, scale, lengths, starts, offsets, dropout_p, seed, bias
    if torch.compiler.is_compiling():
        return attend_traced(kernel._name, arguments, sums)
    if q.is_cuda and hooks.is_capturing():
        retain(kernel._op)
    if forward_ad._current_level >= 0 or (torch.is_grad_enabled() and (
            q.requires_grad or k.requires_grad or v.requires_grad or (bias is not None and bias.requires_grad))):
        return differentiable((*arguments, kernel), sums)  # which refuses tangents of forward mode
    with BELOW_AUTOGRAD():  # past its key, which takes 5 us to find out that there is nothing to do
        return forward_op._op(*arguments)


def attend_from(starts, q, k, v, kernel, layer, lengths, dropout_p, seed, scale, bias, sums=False):
    """Sequences that begin at `starts`."""
    if q.dim() != 4:
        raise Error(2, f"q: shape {list(q.shape)}, [B, H, N, D] is expected")
    length = q.shape[2]
    lengths = (length - starts).clamp(0, length) if lengths is None else lengths  # wrong starts are named as such
    if q.device.type != "cuda":
        return attend(q, k, v, kernel, layer, lengths, starts, None, dropout_p, seed, scale, bias, sums)
    return attend_moved(starts, q, k, v, kernel, layer, lengths, dropout_p, seed, scale, bias, sums)


def check_moved(starts, lengths, q, k, v):
    """Refuses arguments that the operator itself would refuse, before rows are moved."""
    for name, t, shape in (("k", k, k.shape[:2] + q.shape[2:3]), ("v", v, k.shape[:2] + q.shape[2:3]), ("starts", starts, q.shape[:1]),
                           ("lengths", lengths, q.shape[:1])):
        if t.device != q.device:
            raise Error(2, f"{name}: on {t.device}, but q is on {q.device}")
        if t.shape[:len(shape)] != shape or t.dim() != (4 if name in "kv" else 1):
            raise Error(2, f"{name}: shape {list(t.shape)}; with starts {list(shape)} is expected" + (" before D" if name in "kv" else ""))


def attend_moved(starts, q, k, v, kernel, layer, lengths, dropout_p, seed, scale, bias, sums):
    """The same by moving sequences to the front, and their outputs back."""
    check_moved(starts, lengths, q, k, v)
    length = q.shape[2]
    torch._assert_async((starts + lengths <= length).all() & (starts >= 0).all(), "starts: a sequence begins before 0 or ends beyond N")
    to, back = rows_from(starts, length, 1), rows_from(starts, length, -1)
    q, k, v = (shift(t, to) for t in (q, k, v))
    out, lse = attend(q, k, v, kernel, layer, lengths, None, None, dropout_p, seed, scale, bias, sums)
    return shift(out, back), shift(lse, back) if sums else None


def attend_ordered(q, k, v, kernel, bias, **others):
    """attention() of a kernel in another order: of tensors brought to that order, and the outputs back."""
    check_dense_all(q, k, v, bias)
    for name, t in zip("qkv", (q, k, v)):
        if t.dim() != 4:
            raise Error(2, f"{name}: shape {list(t.shape)}, [B, H, N, D] is expected")
        check_ordered(kernel, t.shape[2], *(others[name] for name in ("lengths", "starts", "offsets", "key_lengths")))
    to, back = kernel._order
    if to.device != q.device:
        raise Error(2, f"q: on {q.device}, but the kernel was loaded for {kernel.device}")
    if bias is not None:
        if bias.dim() != 3 or bias.shape[1:] != (kernel.length, kernel.length):
            raise Error(2, f"bias: shape {list(bias.shape)}; [{kernel.heads}, {kernel.length}, {kernel.length}] is expected")
        bias = bias.index_select(1, to).index_select(2, to)
    q, k, v = (t.transpose(1, 2).index_select(1, to).transpose(1, 2) for t in (q, k, v))
    made = attention(q, k, v, kernel, bias=bias, ordered=True, **others)
    out, lse = made if others["return_lse"] else (made, None)
    out = out.transpose(1, 2).index_select(1, back).transpose(1, 2)
    return out if lse is None else (out, lse.index_select(2, back))


def attention(q, k, v, kernel, layer=0, lengths=None, starts=None, offsets=None, dropout_p=0.0, seed=None, scale=None,
              bias=None, return_lse=False, key_lengths=None, ordered=False):
    """See maskc.attention. ordered: q, k, v and bias are in the kernel's order."""
    if not isinstance(q, torch.Tensor):
        from .arrays import attention_numpy
        return attention_numpy(q, k, v, kernel, layer, lengths, starts, offsets, dropout_p, seed, scale, bias, return_lse, key_lengths)
    if not (isinstance(k, torch.Tensor) and isinstance(v, torch.Tensor)):
        raise TypeError(f"k, v: {type(k).__name__}, {type(v).__name__}; torch tensors are expected, as q is one")
    if bias is not None and not isinstance(bias, torch.Tensor):
        raise TypeError(f"bias: {type(bias).__name__}; a torch tensor is expected, as q is one")
    if not isinstance(kernel, Kernel):
        check_kernel(kernel)
    if kernel._op < 0:
        number(kernel)
    if kernel.ordered and not ordered:
        return attend_ordered(q, k, v, kernel, bias, layer=layer, lengths=lengths, starts=starts, offsets=offsets, dropout_p=dropout_p,
                              seed=seed, scale=scale, return_lse=return_lse, key_lengths=key_lengths)
    scale = kernel.default_scale if scale is None else real("scale", scale)
    want = kernel.torch_dtype
    if q.dtype != want or k.dtype != want or v.dtype != want:
        q, k, v = cast(kernel, q, k, v)
    if lengths is not None:
        lengths = counts(lengths, "lengths", q.device)
    if key_lengths is not None:  # the operator has them below the queries'
        key_lengths = counts(key_lengths, "key_lengths", q.device)
        full = torch.full_like(key_lengths, q.shape[-2]) if lengths is None else lengths
        if full.shape != key_lengths.shape:
            raise Error(2, f"key_lengths: shape {list(key_lengths.shape)}, but lengths has {list(full.shape)}")
        lengths = torch.stack((full, key_lengths))
    if offsets is not None:
        offsets = counts(offsets, "offsets", q.device)
    if bias is not None and bias.dtype != torch.float32:
        bias = cast_bias(bias)
    if real("dropout_p", dropout_p):
        seed = seed_tensor(seed)
    elif seed is not None:
        check_seed(seed)
        seed = None
    try:
        if bias is not None:
            bias = bias.contiguous()
        if starts is not None:
            if offsets is not None:
                raise Error(2, "starts and offsets exclude each other")
            starts = counts(starts, "starts", q.device)
            out, lse = attend_from(starts, q, k, v, kernel, layer, lengths, dropout_p, seed, scale, bias, return_lse)
        else:
            out, lse = attend(q, k, v, kernel, layer, lengths, None, offsets, dropout_p, seed, scale, bias, return_lse)
    except (RuntimeError, TypeError) as e:
        check_dense_all(q, k, v, bias)
        raise_plain(e)
        raise
    return (out, lse) if return_lse else out


hooks.ATTENTION = attention
