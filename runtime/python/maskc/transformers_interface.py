# SPDX-License-Identifier: Apache-2.0
"""The mask interface of attn_implementation="maskc": what a model's layers receive in place of a mask tensor."""
import dataclasses

import torch

from ._library import Error
from .transformers_functions import PREFIX, read
from .transformers_kernels import bucket

TENSOR_USES = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "and", "rand", "or", "ror", "invert", "neg", "lt", "le", "gt", "ge",
               "getitem", "setitem", "len", "iter", "bool", "float", "int")


class NoTensor(Error, AttributeError):
    """A Mask was used as a tensor. hasattr() of such a name is False."""


@dataclasses.dataclass(eq=False)
class Mask:
    """The mask as text, and where the sequences are. Layers that use it as a tensor are refused: they compute attention themselves."""
    text: str
    lengths: "torch.Tensor | None"  # int32 [B]
    starts: "torch.Tensor | None"   # int32 [B]: left padding
    longest: int                    # positions of the kernel: of the model, or of this batch
    offsets: "torch.Tensor | None" = None  # int32 [documents + 1]: packed sequences, of the tokens of all rows

    def refuse(self, *arguments, **named):
        raise NoTensor(3, f"{PREFIX}the layers of this model compute attention themselves and ignore the implementation: use 'eager'")

    def to(self, device, non_blocking=False):
        """The same on a device, as accelerate moves arguments of layers."""
        if not isinstance(device, (str, int, torch.device)):
            self.refuse()
        moved = {name: getattr(self, name).to(device, non_blocking=non_blocking) for name in ("lengths", "starts", "offsets") if getattr(self, name) is not None}
        return dataclasses.replace(self, **moved)

    def __getattr__(self, name):
        if name.startswith("__"):  # of copy and pickle
            raise AttributeError(name)
        return self.refuse()

    def __eq__(self, other):
        return False if other is None else self.refuse()

    __hash__ = object.__hash__

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        return cls.refuse(None)


for use in TENSOR_USES:
    setattr(Mask, f"__{use}__", Mask.refuse)


def require(condition, text):
    """Raises unless the bool tensor is true; within a compiled graph when it runs."""
    if torch.compiler.is_compiling():
        torch._assert_async(condition, PREFIX + text)
    elif not condition:
        raise Error(2, PREFIX + text)


def sequences(padding):
    """(lengths, starts) of a bool [B, N] padding mask; None where not needed."""
    lengths = padding.sum(1, dtype=torch.int32)
    starts = padding.int().argmax(1).to(torch.int32)
    last = padding.shape[1] - 1 - padding.flip(1).int().argmax(1)
    require(((last - starts + 1 == lengths) | (lengths == 0)).all(),
            "an attention mask with holes is not supported: 1 for a sequence's tokens, 0 on its sides")
    if torch.compiler.is_compiling():
        return lengths, starts
    return (lengths if not padding.all() else None), (starts if starts.any() else None)


def check_chunks(found, starts):
    """Chunks begin where the sequence begins, as masks do."""
    first = torch.zeros_like(found.left_padding) if starts is None else starts
    require((found.left_padding == first).all(), "chunks that do not begin where their sequence begins are not supported")
    if found.positions is not None:
        require((found.positions[:, 0] % found.chunk == 0).all(), "chunks that begin within a chunk are not supported")


def offsets_of(found, text):
    """Where the documents of packed rows begin, in tokens of all rows; None: each row is one document."""
    documents = found.documents
    if documents is None:
        return None
    if torch.compiler.is_compiling():
        require((documents == documents[:, :1]).all(), "packed sequences under torch.compile are not supported: call the model itself")
        return None
    if (documents == documents[:, :1]).all():
        return None
    if found.chunk:
        raise Error(2, f"{PREFIX}packed sequences with chunked attention are not supported")
    first = torch.diff(documents, prepend=documents[:, :1] - 1) != 0
    ends = torch.tensor([documents.numel()], device=documents.device)
    return torch.cat((first.flatten().nonzero()[:, 0], ends)).to(torch.int32)


def kernel_length(config, n):
    """Positions of a kernel for n tokens. While torch.compile traces, the model's own: one graph serves every length."""
    positions = getattr(config, "max_position_embeddings", None) if torch.compiler.is_compiling() else None
    return positions if isinstance(positions, int) and positions > 0 else bucket(n)


def check_places(q_length, kv_length, q_offset, kv_offset, attention_mask):
    if q_length != kv_length:
        raise Error(3, f"{PREFIX}{q_length} queries and {kv_length} keys; cross-attention and caches are not supported yet")
    for offset in (q_offset, kv_offset):
        if isinstance(offset, torch.Tensor):
            require((offset == 0).all(), "queries after cached keys are not supported yet")
        elif offset != 0:
            raise Error(3, f"{PREFIX}queries or keys from position {offset} on; caches are not supported yet")
    if attention_mask is not None and (attention_mask.dim() != 2 or attention_mask.shape[1] != kv_length):
        raise Error(2, f"{PREFIX}an attention mask of shape {list(attention_mask.shape)} is not supported; [B, {kv_length}] is expected")


def mask_interface(batch_size, q_length=None, kv_length=None, q_offset=0, kv_offset=0, mask_function=None, attention_mask=None,
                   config=None, cache_position=None, **named):
    """The Mask of a forward pass. cache_position: in the place of q_length and q_offset before transformers 5."""
    if cache_position is not None:
        q_length, q_offset = cache_position.shape[0], cache_position[0]
    check_places(q_length, kv_length, q_offset, kv_offset, attention_mask)
    text, found = read(mask_function)
    lengths = starts = None
    if attention_mask is not None:
        lengths, starts = sequences(attention_mask.bool())
    if found.chunk:
        check_chunks(found, starts)
    return Mask(text, lengths, starts, kernel_length(config, q_length), offsets_of(found, text))
