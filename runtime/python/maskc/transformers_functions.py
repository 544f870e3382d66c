# SPDX-License-Identifier: Apache-2.0
"""Mask functions of transformers.masking_utils as text of the mask language. A function is read by its structure: its name and
the variables that it holds. That is exact for every sequence of the batch and also works while torch.compile traces."""
import dataclasses
import types

import torch
from transformers import masking_utils

from ._library import Error
from .torch_numbers import apart

PREFIX = "attn_implementation='maskc': "
INNER = ".<locals>.inner_mask"
OTHER = "use 'sdpa' or 'eager' for this model"
REFUSED = {  # functions whose mask differs by sequence: what the message calls them
    "blockwise_overlay" + INNER: "tokens that see each other both ways (block_sequence_ids: images)",
    "padding_mask_function" + INNER: "a padding mask within a mask function",
}


@dataclasses.dataclass
class Found:
    """The parts of a mask function that differ by sequence."""
    documents: "torch.Tensor | None" = None     # int [B, N]: the number of each token's document
    positions: "torch.Tensor | None" = None     # int [B, N]: positions within the documents
    left_padding: "torch.Tensor | None" = None  # int [B]: where chunks begin
    chunk: int = 0


def captured(function, name):
    """The variable that a closure holds."""
    return function.__closure__[function.__code__.co_freevars.index(name)].cell_contents


def name_of(function):
    """The qualified name of a function of masking_utils, else None."""
    if not isinstance(function, types.FunctionType) or function.__module__ != masking_utils.__name__:
        return None
    return function.__qualname__  # getattr() with a default does not trace


# ---- the readers: (function, Found) -> list of texts that hold together ----

def read_all(function, found):
    texts = []
    for part in captured(function, "mask_functions"):
        texts += texts_of(part, found)
    return texts


def read_any(function, found):
    own = Found()
    texts = ["(" + joined(texts_of(part, own)) + ")" for part in captured(function, "mask_functions")]
    if own.documents is not None or own.positions is not None or own.chunk:
        raise Error(2, f"{PREFIX}packed sequences or chunks beside other tokens are not supported: {OTHER}")
    return ["(" + " | ".join(texts) + ")"]


def read_after(function, found):
    return [f"after({captured(function, 'sliding_window')})"]  # j > i - w: joined() states it


def read_window(function, found):
    return [f"window({captured(function, 'sliding_window')})"]


def read_chunks(function, found):
    found.chunk, found.left_padding = captured(function, "chunk_size"), captured(function, "left_padding")
    return [f"local({found.chunk})"]


def read_documents(function, found):
    found.documents = captured(function, "packed_sequence_mask")
    return []


def read_positions(function, found):
    found.positions = captured(function, "position_ids")
    return texts_of(captured(function, "mask_function"), found)


def read_causal(function, found):
    return ["causal"]


def read_dense(function, found):
    return []


READERS = {
    "and_masks.<locals>.and_mask": read_all,
    "or_masks.<locals>.or_mask": read_any,
    "causal_mask_function": read_causal,
    "bidirectional_mask_function": read_dense,
    "sliding_window_overlay" + INNER: read_after,
    "sliding_window_bidirectional_overlay" + INNER: read_window,
    "chunked_overlay" + INNER: read_chunks,
    "packed_sequence_mask_function" + INNER: read_documents,
    "remap_positions_for_packed_sequence" + INNER: read_positions,
}


def texts_of(function, found):
    name = name_of(function)
    if name in REFUSED:
        raise Error(2, f"{PREFIX}{REFUSED[name]} are not supported: {OTHER}")
    if name not in READERS or name in CHANGED:
        raise Error(2, f"{PREFIX}this model has a mask function of its own, which is not supported: {OTHER}")
    return READERS[name](function, found)


def joined(texts):
    """One expression of texts that hold together."""
    causal = ["causal"] if "causal" in texts else []
    others = []
    for text in texts:
        if text.startswith("after("):
            width = int(text[6:-1]) - 1
            text = f"window({width})" if width >= 0 else "none"
            text = text if causal else f"(~causal | {text})"
        if text != "causal" and text not in others:
            others.append(text)
    return " & ".join(causal + others) or "dense"


def read(function):
    """(text, Found) of a mask function. What is not known is refused."""
    found = Found()
    text = joined(texts_of(function, found))
    if found.positions is not None and found.documents is None:
        raise Error(2, f"{PREFIX}positions without documents are not supported: {OTHER}")
    return text, found


# ---- the names must mean what they meant when the readers were written ----

def meanings():
    """{name: (a function of that name, the mask that it must be)} at 12 tokens; a missing name is left out."""
    q, k = torch.arange(12)[:, None], torch.arange(12)[None]
    documents = torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2]])
    positions = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 3, 0, 1, 2]])

    def odd(b, h, i, j):
        return (i - j) % 2 == 1

    def early(b, h, i, j):
        return j < 5

    rows = {
        "and_masks.<locals>.and_mask": ((odd, early), odd(0, 0, q, k) & early(0, 0, q, k)),
        "or_masks.<locals>.or_mask": ((odd, early), odd(0, 0, q, k) | early(0, 0, q, k)),
        "causal_mask_function": (None, k <= q),
        "bidirectional_mask_function": (None, q + k >= 0),
        "sliding_window_overlay" + INNER: ((3,), k > q - 3),
        "sliding_window_bidirectional_overlay" + INNER: ((3,), (q - k).abs() <= 3),
        "chunked_overlay" + INNER: ((4, torch.tensor([2])), (q - 2) // 4 == (k - 2) // 4),
        "packed_sequence_mask_function" + INNER: ((documents,), documents[0][q] == documents[0][k]),
        "remap_positions_for_packed_sequence" + INNER: ((odd, positions), odd(0, 0, positions[0][q], positions[0][k])),
    }
    made = {name: (getattr(masking_utils, name.split(".")[0], None), arguments, mask) for name, (arguments, mask) in rows.items()}
    return {name: (maker if arguments is None else maker(*arguments), mask) for name, (maker, arguments, mask) in made.items() if maker}


def changed():
    """Names that this version of transformers uses for something else."""
    q, k, zero = torch.arange(12)[:, None], torch.arange(12)[None], torch.zeros((), dtype=torch.long)
    return {name for name, (function, mask) in meanings().items()
            if name_of(function) != name or not torch.equal(torch.as_tensor(function(zero, zero, q, k)).expand(12, 12), mask.expand(12, 12))}


with apart():
    CHANGED = changed()
