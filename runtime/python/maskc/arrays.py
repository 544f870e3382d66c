# SPDX-License-Identifier: Apache-2.0
"""attention() on numpy arrays, forward: libmaskc on the arrays' own memory."""
import numbers
import threading

from . import _library as library
from ._library import Error
from .arguments import check_kernel, check_ordered
from .kernel import Kernel

DTYPE = {"f32": "float32", "f16": "float16"}
KEPT = threading.local()


def workspace(size):
    """An address aligned to 64 of that many bytes. The calling thread keeps its largest: so much memory would come
    fresh from the system each time, page by page."""
    import numpy
    if not hasattr(KEPT, "space") or KEPT.space.size < size + 64:
        KEPT.space = numpy.empty(size + 64, numpy.uint8)
    return (KEPT.space.ctypes.data + 63) // 64 * 64


def usable(array, name, kernel):
    """The array, copied where the kernel cannot read its strides. Strides that are all 0 would mean "contiguous"."""
    import numpy
    want = DTYPE.get(kernel.dtype)
    if want is None:
        raise Error(2, f"numpy has no {kernel.dtype}: compile for float32 or float16, or use torch")
    if array.dtype != want:
        raise Error(2, f"{name}: {array.dtype}, but the kernel was compiled for {want}")
    size = array.itemsize
    if (array.strides[-1] != size and array.shape[-1] > 1) or array.ctypes.data % 16 or any(s % 16 for s in array.strides[:-1]) or not any(array.strides[:-1]):
        return numpy.ascontiguousarray(array)
    return array


def tensor_of(array, packed):
    strides = [s // array.itemsize for s in array.strides]
    if packed:
        return library.Tensor(array.ctypes.data, 0, strides[0], strides[1])
    return library.Tensor(array.ctypes.data, strides[0], strides[2], strides[1])


def key_shape(q, k, kernel):
    """The shape that k and v must have beside a q: the kernel's own heads, and rows where they are not q's."""
    rows = q[-2]
    if kernel.kv_length != kernel.length:
        rows = k[-2] if 0 < k[-2] <= kernel.kv_length else kernel.kv_length
    return (q[0], kernel.kv_heads, q[2]) if len(q) == 3 else (q[0], kernel.kv_heads, rows, q[3])


def check_shapes(q, k, v, kernel, packed):
    import numpy
    rank, shape = (3, "[T, H, D]") if packed else (4, "[B, H, N, D]")
    for name, a in (("q", q), ("k", k), ("v", v)):
        if not isinstance(a, numpy.ndarray):
            raise TypeError(f"{name}: {type(a).__name__}; an array of numpy, or a tensor of torch as q, k and v, is expected")
    for name, a in (("q", q), ("k", k), ("v", v)):
        if a.ndim != rank:
            raise Error(2, f"{name}: rank {a.ndim}; {shape} is expected")
    heads, head_dim = q.shape[1], q.shape[-1]
    if (heads, head_dim) != (kernel.heads, kernel.head_dim):
        raise Error(2, f"q: {heads} heads of {head_dim}; the kernel was compiled for {kernel.heads} heads of {kernel.head_dim}")
    for name, a in (("k", k), ("v", v)):
        if a.shape != key_shape(q.shape, k.shape, kernel):
            want = list(key_shape(q.shape, k.shape, kernel))
            alike = f"but q has {want}; q, k and v must be shaped alike" if want == list(q.shape) else f"but the kernel takes {want}"
            raise Error(2, f"{name}: shape {list(a.shape)}, {alike}")


def counts(values, name, size):
    import numpy
    try:
        array = numpy.asarray(values)
    except (RuntimeError, TypeError, ValueError):
        raise TypeError(f"{name}: {type(values).__name__}; whole numbers are expected") from None
    if not array.size:
        array = array.astype(numpy.int32)
    if array.dtype.kind not in "iu" or array.shape != (size,):
        raise Error(2, f"{name}: {array.dtype} {list(array.shape)}; integers [{size}] are expected")
    if array.size and (array.min() < 0 or array.max() >= 2 ** 31):
        raise Error(2, f"{name}: {array.min() if array.min() < 0 else array.max()} is out of range")
    return numpy.ascontiguousarray(array, numpy.int32)


def check_numbers(kernel, layer, dropout_p, seed, scale):
    """Refuses numbers that ctypes would truncate silently."""
    for name, value, most in (("layer", layer, kernel.layers), ("seed", 0 if seed is None else seed, 2 ** 64)):
        if not hasattr(value, "__index__"):
            raise TypeError(f"{name}: {value!r} is not a whole number")
        if not 0 <= value.__index__() < most:
            raise Error(2, f"{name}: {value} is not in 0..{most - 1}")
    for name, value in (("dropout_p", dropout_p), ("scale", 0 if scale is None else scale)):
        if not isinstance(value, (float, int, numbers.Real)):  # the first two are found faster
            raise TypeError(f"{name}: {value!r} is not a number")
        if not abs(value) < 3e38 or (name == "dropout_p" and not 0 <= value < 1):
            raise Error(2, f"{name}: {value} is not {'finite' if name == 'scale' else 'in 0 <= p < 1'}")


def seed_of(seed, dropout_p):
    """The number given, or one from numpy.random's global generator."""
    if seed is None and dropout_p:
        import numpy
        return int(numpy.random.randint(2 ** 63 - 1, dtype=numpy.int64))
    return (seed or 0).__index__()


def check_starts(starts, offsets, kernel):
    if starts is not None and offsets is not None:
        raise Error(2, "starts and offsets exclude each other")
    if starts is not None and kernel.kv_length != kernel.length:
        raise Error(2, "starts: not for kernels with other numbers of keys than of queries")


def scale_of(scale):
    """Fields of a launch."""
    return {} if scale is None else {"scale": float(scale), "flags": library.SCALE_GIVEN}


def check_bias(bias, kernel):
    import numpy
    if (bias is None) != (kernel.bias is None):
        raise Error(2, f"bias: the kernel was compiled with bias={kernel.bias!r}")
    if bias is None:
        return None
    n = kernel.length
    if not isinstance(bias, numpy.ndarray):
        raise TypeError(f"bias: {type(bias).__name__}; an array of numpy is expected")
    if bias.dtype != numpy.float32 or bias.shape != (kernel.heads, n, n):
        raise Error(2, f"bias: {bias.dtype} {list(bias.shape)}; float32 [{kernel.heads}, {n}, {n}] is expected")
    return numpy.ascontiguousarray(bias)


def shift(array, starts, sign):
    """Rows of sequence b of [B, H, N, D] moved by starts[b], cyclically."""
    import numpy
    rows = (numpy.arange(array.shape[2])[None] + sign * starts[:, None]) % array.shape[2]
    index = rows[:, None, :, None] if array.ndim == 4 else rows[:, None, :]
    return numpy.take_along_axis(array, index, 2)


def attention_numpy(q, k, v, kernel, layer, lengths, starts, offsets, dropout_p, seed, scale, bias, return_lse, key_lengths=None):
    """Computes maskc.attention for numpy arrays, with threads on all cores."""
    import numpy
    if not isinstance(kernel, Kernel):
        check_kernel(kernel)
    if kernel.device.startswith("cuda"):
        raise Error(2, f"q: an array of numpy is on cpu, but the kernel was loaded for {kernel.device}: compile with target='cpu'")
    if kernel.ordered:
        return attention_ordered(q, k, v, kernel, layer, lengths, starts, offsets, dropout_p, seed, scale, bias, return_lse, key_lengths)
    return attention_positions(q, k, v, kernel, layer, lengths, starts, offsets, dropout_p, seed, scale, bias, return_lse, key_lengths)


def attention_ordered(q, k, v, kernel, layer, lengths, starts, offsets, dropout_p, seed, scale, bias, return_lse, key_lengths):
    """Computes attention by a kernel in another order: brings the arrays to that order, and the
    outputs back."""
    import numpy
    check_shapes(q, k, v, kernel, False)
    check_ordered(kernel, q.shape[2], lengths, starts, offsets, key_lengths)
    order, bias = kernel.order, check_bias(bias, kernel)
    back = numpy.argsort(order)
    q, k, v = (a[:, :, order] for a in (q, k, v))
    bias = bias if bias is None else bias[:, order][:, :, order]
    out, lse = attention_positions(q, k, v, kernel, layer, None, None, None, dropout_p, seed, scale, bias, True, None)
    out = out[:, :, back]
    return (out, lse[:, :, back]) if return_lse else out


def attention_positions(q, k, v, kernel, layer, lengths, starts, offsets, dropout_p, seed, scale, bias, return_lse, key_lengths):
    """Computes attention of arrays in the order of the kernel's positions."""
    import numpy
    packed = offsets is not None
    check_shapes(q, k, v, kernel, packed)
    check_numbers(kernel, layer, dropout_p, seed, scale)
    check_starts(starts, offsets, kernel)
    batch = len(offsets) - 1 if packed else q.shape[0]
    if batch < 0:
        raise Error(2, "offsets: empty; [B + 1] whole numbers are expected")
    if packed and not batch and len(q):
        raise Error(2, f"offsets: of no sequence, but q has {len(q)} rows")
    length = kernel.length if packed else q.shape[2]
    if starts is not None:
        starts = counts(starts, "starts", batch)
        left = numpy.maximum(length - starts, 0)
        lengths = left if lengths is None else counts(lengths, "lengths", batch)
        if (starts.astype(numpy.int64) + lengths > length).any():
            raise Error(2, f"starts: a sequence ends beyond {length}")
        q, k, v = (shift(a, starts, 1) for a in (q, k, v))
    q, k, v = (usable(a, name, kernel) for name, a in (("q", q), ("k", k), ("v", v)))
    shape = q.shape if packed else (batch, length, kernel.heads, kernel.head_dim)
    out = numpy.empty(shape, q.dtype)
    out = out if packed else out.transpose(0, 2, 1, 3)
    lse = numpy.empty((kernel.heads, len(q)) if packed else (batch, kernel.heads, length), numpy.float32)
    kept = [counts(a, name, size) if a is not None else None
            for name, a, size in (("lengths", lengths, batch), ("offsets", offsets, batch + 1), ("key_lengths", key_lengths, batch))]
    soft = check_bias(bias, kernel)
    if packed:
        length = int(numpy.diff(kept[1]).max(initial=0)) or 1
        if (numpy.diff(kept[1]) < 0).any():
            raise Error(2, "offsets: they must not fall")
        if length > kernel.length:
            raise Error(2, f"offsets: a sequence of {length}, but the mask has {kernel.length}")
    launch = library.Launch(
        batch=batch, length=length, layer=layer.__index__(), dropout=dropout_p, seed=seed_of(seed, dropout_p), **scale_of(scale),
        lengths=kept[0].ctypes.data if kept[0] is not None else None, offsets=kept[1].ctypes.data if packed else None,
        tokens=len(q) if packed else 0, query=tensor_of(q, packed), key=tensor_of(k, packed), value=tensor_of(v, packed),
        out=tensor_of(out, packed), lse=lse.ctypes.data, soft=soft.ctypes.data if soft is not None else None,
        key_length=0 if packed or kernel.kv_length == kernel.length else k.shape[2],
        key_lengths=kept[2].ctypes.data if kept[2] is not None else None)
    if batch and out.size:
        launch.workspace_bytes = kernel.workspace_bytes(launch)
        launch.workspace = workspace(launch.workspace_bytes if launch.workspace_bytes < 1 << 60 else 0)
        kernel.run(launch)
    if starts is not None:
        out, lse = shift(out, starts, -1), shift(lse, starts, -1)
    return (out, lse) if return_lse else out
