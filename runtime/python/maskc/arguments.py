# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments: numbers, names and texts of the wrong kind are refused in one line."""
import os

from ._library import Error

DTYPE_NAMES = {"f32": 0, "float32": 0, "float": 0, "bf16": 1, "bfloat16": 1, "f16": 2, "float16": 2, "half": 2}


def number_of(names, what, value):
    if not isinstance(value, (str, type(None))) or value not in names:
        raise Error(2, f"{what}: {value!r} is none of {', '.join(str(n) for n in names)}")
    return names[value]


def dtype_number(dtype):
    """By name, or a dtype of torch or numpy."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return number_of(DTYPE_NAMES, "dtype", str(name).removeprefix("torch."))


def count_of(what, value, least=1, most=2 ** 32 - 1):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise Error(2, f"{what}: {value!r} is not a whole number from {least}")
    number = value.__index__()
    if not least <= number <= most:
        raise Error(2, f"{what}: {number} is not a whole number from {least} to {most}")
    return number


def optional_count(what, value):
    """0 for None."""
    return 0 if value is None else count_of(what, value)


def text_of(what, value, expected="text"):
    """Text, which C and the command line end at a NUL."""
    if not isinstance(value, str):
        raise TypeError(f"{what}: {type(value).__name__}; {expected} is expected")
    if "\0" in value:
        raise Error(2, f"{what}: a NUL character at position {value.index(chr(0))}; {expected} has none")
    return value


def encoded(what, value):
    """Bytes for C; None stays."""
    if value is None:
        return None
    try:
        return text_of(what, value).encode()
    except UnicodeEncodeError:
        raise Error(2, f"{what}: {value!r} has a character that UTF-8 does not encode") from None


def path_of(what, value):
    """A path as text."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{what}: {type(value).__name__}; a path is expected")
    path = os.fspath(value)
    return text_of(what, os.fsdecode(path) if isinstance(path, bytes) else path, "a path")


def transform_of(text):
    """(number, lambda) of "softmax" or "sparsegen=LAMBDA"."""
    name, _, value = str(text).partition("=")
    try:
        if name == "softmax" and not value:
            return 0, 0.0
        if name == "sparsegen":
            return 1, float(value)
    except ValueError:
        pass
    raise Error(2, f"transform: {text!r} is neither softmax nor sparsegen=LAMBDA")


def storage_of(t):
    """Returns the kind of a torch tensor; "" for one with plain strides."""
    if getattr(t, "is_nested", False):
        return "nested"
    if str(t.layout) != "torch.strided":
        return str(t.layout).removeprefix("torch.")
    return "quantized" if t.is_quantized else ""


def check_dense(name, t, meta=False, other=""):
    """A tensor of torch whose memory is a dense array. meta: one without memory passes too. other: accepted in place of a sparse tensor."""
    kind = storage_of(t) or ("meta" if t.is_meta and not meta else "")
    if kind:
        hint = f", as .to_dense() gives{other}" if kind.startswith("sparse") else ""
        raise Error(2, f"{name}: a {kind} tensor; a dense one is expected{hint}")


def check_ordered(kernel, length, lengths, starts, offsets, key_lengths):
    """Sequences of a kernel in another order are whole: a part of one is no corner of the mask."""
    for name, value in (("lengths", lengths), ("starts", starts), ("offsets", offsets), ("key_lengths", key_lengths)):
        if value is not None:
            raise Error(2, f"{name}: not for a kernel that was compiled with --order, whose sequences all have {kernel.length} tokens")
    if length != kernel.length:
        raise Error(2, f"q: {length} tokens; a kernel that was compiled with --order takes all {kernel.length}")


def check_kernel(kernel):
    """Anything but a Kernel is refused."""
    from .kernel import Kernel
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel: {type(kernel).__name__}; a maskc.Kernel of maskc.compile or maskc.load is expected")
