# SPDX-License-Identifier: Apache-2.0
"""Calls of a mask_mod: by torch.vmap over queries and keys, as FlexAttention makes them. The index of the sequence or of the
head can be withheld: a mask_mod that reads it is found out, whatever it does with it."""
import contextlib
import sys

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from ._library import Error

NAMES = "batch", "head"
T = torch.Tensor
# Functions allowed on a withheld index: none depends on its value.
FREE = [T.new_ones, T.new_zeros, T.new_full, T.new_empty, T.new_tensor, T.size, T.dim, T.numel, T.get_device, T.is_floating_point,
        torch.ones_like, torch.zeros_like, torch.full_like, torch.empty_like, torch.is_floating_point]
FREE += [getattr(T, name).__get__ for name in ("device", "dtype", "shape", "ndim", "layout", "is_cuda", "is_meta", "requires_grad")]


class Read(Exception):
    """The mask_mod needs the value of an index that is withheld: "batch" or "head"."""

    def __init__(self, name):
        super().__init__(name)
        self.name = name


class Watch(TorchFunctionMode):
    """Sees every function of torch that a mask_mod calls."""

    def __init__(self, withheld):
        super().__init__()
        self.withheld, self.read = withheld, None  # withheld: [(name, tensor)]

    def name_of(self, values):
        return next((name for value in tree_leaves(values) for name, t in self.withheld if value is t), None)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = self.name_of((args, kwargs))
        if name and func in FREE and not self.name_of((args[1:], kwargs)):
            args = (torch.zeros((), dtype=torch.int64), *args[1:])
        elif name:
            self.read = self.read or name
            raise Read(name)
        if func is T.__getitem__ and all(isinstance(x, T) for x in tree_leaves(args[1])):
            return torch.ops.aten.index(args[0], tree_leaves(args[1]))  # x[q_idx], which vmap has no rule for
        return func(*args, **kwargs)


def each_pair(mod):
    """mod of all queries and all keys: bool [queries, keys]."""
    def one(b, h, q, k):
        made = torch.as_tensor(mod(b, h, q, k))
        if made.dtype != torch.bool or made.dim():
            raise Error(2, f"mask_mod gives {made.dtype} {list(made.shape)} for a query and a key; one bool is expected")
        return made
    return torch.vmap(torch.vmap(one, (None, None, None, 0)), (None, None, 0, None))


def run_eagerly():
    """A mask_mod that torch.compile has wrapped is called without it."""
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else contextlib.nullcontext()


def entries(mod, b, h, rows, keys):
    """bool [rows, keys] on the CPU. b, h: numbers, or None: withheld, and Read is raised where the mask_mod reads it."""
    indices = [torch.empty((), dtype=torch.int64, device="meta" if x is None else keys.device) for x in (b, h)]
    withheld = [(name, t) for name, t, x in zip(NAMES, indices, (b, h)) if x is None]
    for t, x in zip(indices, (b, h)):
        if x is not None:
            t.fill_(x)
    watch = Watch(withheld)
    try:
        with run_eagerly(), watch:
            made = each_pair(mod)(*indices, rows, keys)
        made = made.cpu()
    except Error:
        raise
    except Exception as e:  # pylint: disable=broad-exception-caught
        if watch.read:
            raise Read(watch.read) from None
        lines = str(e).strip().split("\n")
        raise Error(2, f"the mask_mod failed: {type(e).__name__}: {lines[0]}") from e
    if watch.read:
        raise Read(watch.read)
    return made
