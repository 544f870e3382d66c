# SPDX-License-Identifier: Apache-2.0
"""attention() on torch tensors: the operators maskc::forward and maskc::backward, and what makes them differentiable."""
import ctypes

import torch

from . import _library as library, hooks
from ._library import Error
from .kernel import ALIVE

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
COUNTS = (torch.int32, torch.int64)
MOST_SEED = 2 ** 63 - 1
MOST_COUNT = 2 ** 31 - 1


def load():
    """The operators, on the libmaskc that is loaded already."""
    path = library.op_library_path()
    if not path:
        raise Error(3, "maskc was built without torch: install a wheel, or build where torch 2.10 or later is installed")
    try:
        torch.ops.load_library(str(path))
    except OSError as e:
        raise Error(3, f"the operator cannot be loaded beside torch {torch.__version__} (2.10 or later is needed): {e}") from None
    lib = ctypes.CDLL(str(path))
    lib.maskc_torch_add.restype, lib.maskc_torch_add.argtypes = ctypes.c_int64, [ctypes.c_void_p]
    lib.maskc_torch_forget.restype, lib.maskc_torch_forget.argtypes = None, [ctypes.c_int64]
    return lib


LIB = load()
forget = LIB.maskc_torch_forget
forward_op, backward_op = torch.ops.maskc.forward.default, torch.ops.maskc.backward.default


def number(kernel):
    """The operators' name for a kernel. Kernels that are made after this module get it at once."""
    if kernel._op < 0:
        kernel._op = LIB.maskc_torch_add(kernel._handle)
        kernel._forget, kernel.torch_dtype = forget, DTYPES[kernel.dtype]
    return kernel._op


for made_before in list(ALIVE):  # a traced attention() must find the number there
    number(made_before)


# ---- what torch.compile and meta tensors see ----

def empty_like_rows(q):
    """As the operator makes its outputs: in memory [B, N, H, D]."""
    if q.dim() == 3:
        return torch.empty(q.shape, dtype=q.dtype, device=q.device)
    b, h, n, d = q.shape
    return torch.empty((b, n, h, d), dtype=q.dtype, device=q.device).transpose(1, 2)


@torch.library.register_fake("maskc::forward")
def fake_forward(q, k, v, kernel, layer, scale, lengths, starts, offsets, dropout_p, seed, bias):
    rank = 4 if offsets is None else 3
    if q.dim() != rank or k.dim() != rank or k.shape != v.shape:
        raise Error(2, f"q, k, v: shapes {list(q.shape)}, {list(k.shape)}, {list(v.shape)}; all "
                       f"{'[B, H, N, D]' if rank == 4 else '[T, H, D]'} are expected")
    for name, t in zip(("k", "v", "lengths", "starts", "offsets", "bias"), (k, v, lengths, starts, offsets, bias)):
        if t is not None and t.device != q.device:
            raise Error(2, f"{name}: on {t.device}, but q is on {q.device}")
    shape = q.shape[:3] if rank == 4 else (q.shape[1], q.shape[0])
    return empty_like_rows(q), torch.empty(shape, dtype=torch.float32, device=q.device)


@torch.library.register_fake("maskc::backward")
def fake_backward(grad_out, q, k, v, out, lse, kernel, layer, scale, lengths, starts, offsets, dropout_p, seed, bias, bias_grad):
    x = bias.shape if bias is not None and bias_grad else (0, 0, 0)
    return (*(empty_like_rows(t) for t in (q, k, v)), torch.empty(x, dtype=torch.float32, device=q.device))


def refuse_vmap(info, in_dims, *arguments, **named):
    raise Error(2, "vmap is not supported by maskc.attention: give it the batch as its first dimension")


torch.library.register_vmap("maskc::forward", refuse_vmap)
torch.library.register_vmap("maskc::backward", refuse_vmap)


# ---- gradients ----

BELOW_AUTOGRAD = torch._C._AutoDispatchBelowAutograd


def call_below(op, *arguments):
    """The operator where autograd has had its say, or has none: past its key, which takes 5 us to find that out."""
    if torch.compiler.is_compiling():
        return op(*arguments)
    with BELOW_AUTOGRAD():
        return op._op(*arguments)


def keep(ctx, inputs, output):
    """For the backward pass."""
    q, k, v, kernel, layer, scale, lengths, starts, offsets, dropout_p, seed, bias = inputs
    out, lse = output
    ctx.save_for_backward(q, k, v, bias, out, lse, lengths, starts, offsets, seed)
    ctx.numbers = kernel, layer, scale, dropout_p
    ctx.mark_non_differentiable(lse)
    ctx.set_materialize_grads(False)


def refuse_second(ctx, *grads):
    raise Error(2, "second derivatives of maskc.attention are not supported")


class Backward(torch.autograd.Function):
    """The gradients where somebody asked for a graph of them: they are right, and have no derivative themselves."""

    @staticmethod
    def forward(*arguments):
        return call_below(backward_op, *arguments)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    backward = staticmethod(refuse_second)

    @staticmethod
    def vmap(info, in_dims, *arguments):
        return refuse_vmap(info, in_dims)


def gradients(ctx, grad_out, _=None):
    """Of the arguments of maskc::forward."""
    if grad_out is None:
        return (None,) * 12
    q, k, v, bias, out, lse, lengths, starts, offsets, seed = ctx.saved_tensors
    kernel, layer, scale, dropout_p = ctx.numbers
    wanted = ctx.needs_input_grad[11]
    arguments = grad_out, q, k, v, out, lse, kernel, layer, scale, lengths, starts, offsets, dropout_p, seed, bias, wanted
    dq, dk, dv, dx = Backward.apply(*arguments) if torch.is_grad_enabled() else call_below(backward_op, *arguments)
    return dq, dk, dv, None, None, None, None, None, None, None, None, dx if wanted else None


# Who calls torch.ops.maskc.forward has its gradients too, a little slower than by attention().
torch.library.register_autograd("maskc::forward", gradients, setup_context=keep)
torch.library.register_autograd("maskc::backward", refuse_second)


class Attention(torch.autograd.Function):
    """O alone: a second output would take 3 us. What register_autograd makes of the same takes 35 us more a call."""

    @staticmethod
    def forward(ctx, q, k, v, kernel, layer, scale, lengths, starts, offsets, dropout_p, seed, bias):
        out, lse = call_below(forward_op, q, k, v, kernel, layer, scale, lengths, starts, offsets, dropout_p, seed, bias)
        ctx.save_for_backward(q, k, v, bias, out, lse, lengths, starts, offsets, seed)
        ctx.numbers = kernel, layer, scale, dropout_p
        return out

    backward = staticmethod(gradients)


# Past the Python of Function.apply, which has nothing to do where no transform of torch.func is at work: 1 us.
apply_attention = super(torch.autograd.Function, Attention).apply


class AttentionAndSums(torch.autograd.Function):
    """O and LSE."""

    @staticmethod
    def forward(ctx, *arguments):
        output = call_below(forward_op, *arguments)
        keep(ctx, arguments, output)
        return output

    backward = staticmethod(gradients)


class TransformedAttention(torch.autograd.Function):
    """O and LSE for torch.func, which wants forward and context apart; that form takes 70 us more a call."""
    @staticmethod
    def forward(*arguments):
        return call_below(forward_op, *arguments)

    setup_context = staticmethod(keep)
    backward = staticmethod(gradients)

    @staticmethod
    def vmap(info, in_dims, *arguments):
        return refuse_vmap(info, in_dims)


def differentiable(arguments, sums):
    """(O, LSE); LSE may be None where nobody wants the sums."""
    if torch.compiler.is_compiling():
        return AttentionAndSums.apply(*arguments) if sums else (Attention.apply(*arguments), None)
    if torch._C._are_functorch_transforms_active():
        return TransformedAttention.apply(*arguments)
    return AttentionAndSums.apply(*arguments) if sums else (apply_attention(*arguments), None)


# ---- arguments ----

def cast(kernel, *tensors):
    """To the kernel's dtype under autocast; else they must have it."""
    want = kernel.torch_dtype
    kind = tensors[0].device.type
    if kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind) and all(t.is_floating_point() for t in tensors):
        return [t.to(want) for t in tensors]
    wrong = next(name for name, t in zip("qkv", tensors) if t.dtype != want)
    raise Error(2, f"{wrong}: {tensors['qkv'.index(wrong)].dtype}, but the kernel was compiled for {want}")


def counts(values, name, device):
    """int32 [..] on the device; the operator judges the shape and libmaskc the numbers. What no int32 holds becomes one that
    is as wrong."""
    if not isinstance(values, torch.Tensor):
        try:
            values = torch.tensor(values, device=device)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            raise TypeError(f"{name}: {type(values).__name__}; a tensor or a list of whole numbers is expected") from None
    if values.dtype not in COUNTS:
        raise Error(2, f"{name}: {values.dtype}; int32 or int64 is expected")
    if values.dtype == torch.int64:
        values = values.clamp(-1, MOST_COUNT).to(torch.int32)
    return values.contiguous()


def seed_tensor(seed):
    """An int64 scalar: the number given, or one from torch's generator."""
    if seed is None:
        return torch.randint(MOST_SEED, (), dtype=torch.int64)
    if isinstance(seed, torch.Tensor):
        if seed.dtype != torch.int64 or seed.dim() != 0:
            raise Error(2, f"seed: {seed.dtype} {list(seed.shape)}; a whole number or an int64 scalar is expected")
        return seed.cpu()
    if not hasattr(seed, "__index__") or not 0 <= seed < 2 ** 64:
        raise Error(2, f"seed: {seed!r} is not a whole number in 0 <= seed < 2^64")
    return torch.tensor(seed - 2 ** 64 if seed > MOST_SEED else seed, dtype=torch.int64)


def rows_from(starts, length, sign):
    """[B, N]: the row that each row of a sequence is taken from."""
    return (torch.arange(length, device=starts.device) + sign * starts[:, None]) % length


def shift(t, rows):
    """Rows of [B, H, N, ...] taken in that order."""
    index = rows[:, None, :, None] if t.dim() == 4 else rows[:, None]
    return t.gather(2, index.expand(t.shape))


def attend(q, k, v, kernel, layer, lengths, starts, offsets, dropout_p, seed, scale, bias, sums=False):
    """(out, lse) of arguments that are ready; lse may be None unless `sums`."""
    arguments = q, k, v, kernel._op, layer, 0.0 if scale is None else scale, lengths, starts, offsets, dropout_p, seed, bias
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad or
                                    (bias is not None and bias.requires_grad)):
        return differentiable(arguments, sums)
    return call_below(forward_op, *arguments)


def attend_from(starts, q, k, v, kernel, layer, lengths, dropout_p, seed, scale, bias, sums=False):
    """Sequences that begin at `starts`. On a GPU they are moved to the front, and their outputs back."""
    if q.dim() != 4:
        raise Error(2, f"q: shape {list(q.shape)}, [B, H, N, D] is expected")
    length = q.shape[2]
    lengths = (length - starts).clamp(0, length) if lengths is None else lengths  # wrong starts are named as such
    if q.device.type != "cuda":
        return attend(q, k, v, kernel, layer, lengths, starts, None, dropout_p, seed, scale, bias, sums)
    torch._assert_async((starts + lengths <= length).all() & (starts >= 0).all(), "starts: a sequence begins before 0 or ends beyond N")
    to, back = rows_from(starts, length, 1), rows_from(starts, length, -1)
    q, k, v = (shift(t, to) for t in (q, k, v))
    out, lse = attend(q, k, v, kernel, layer, lengths, None, None, dropout_p, seed, scale, bias, sums)
    return shift(out, back), shift(lse, back) if sums else None


def attention(q, k, v, kernel, layer=0, lengths=None, starts=None, offsets=None, dropout_p=0.0, seed=None, scale=None,
              bias=None, return_lse=False, key_lengths=None):
    """See maskc.attention."""
    if not isinstance(q, torch.Tensor):
        from .arrays import attention_numpy
        return attention_numpy(q, k, v, kernel, layer, lengths, starts, offsets, dropout_p, seed, scale, bias, return_lse, key_lengths)
    if not (isinstance(k, torch.Tensor) and isinstance(v, torch.Tensor)):
        raise TypeError(f"k, v: {type(k).__name__}, {type(v).__name__}; torch tensors are expected, as q is one")
    if bias is not None and not isinstance(bias, torch.Tensor):
        raise TypeError(f"bias: {type(bias).__name__}; a torch tensor is expected, as q is one")
    if kernel._op < 0:
        number(kernel)
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
    if dropout_p:
        seed = seed_tensor(seed)
    else:
        seed = None
    try:
        if starts is not None:
            if offsets is not None:
                raise Error(2, "starts and offsets exclude each other")
            starts = counts(starts, "starts", q.device)
            out, lse = attend_from(starts, q, k, v, kernel, layer, lengths, dropout_p, seed, scale, bias, return_lse)
        else:
            out, lse = attend(q, k, v, kernel, layer, lengths, None, offsets, dropout_p, seed, scale, bias, return_lse)
    except RuntimeError as e:
        raise_plain(e)
        raise
    return (out, lse) if return_lse else out


def raise_plain(e):
    """The operator's "maskc[CODE]: text" as an Error."""
    text = str(e)
    at = text.find("maskc[")
    if at >= 0 and text[at + 7:at + 10] == "]: ":
        raise Error(int(text[at + 6]), text[at + 10:].split("\n")[0]) from None
    if text.startswith("maskc::"):  # the dispatcher's: an argument of another kind
        raise TypeError(text.split("\n")[0].replace("maskc::forward()", "maskc.attention:")) from None


hooks.ATTENTION = attention
