# SPDX-License-Identifier: Apache-2.0
"""maskc: attention masks compiled into forward and backward kernels that skip most inactive entries.

    kernel = maskc.compile("longformer(64,2)", n=512, heads=12)      # maskc.Kernel
    out = maskc.attention(q, k, v, kernel)                           # [B, H, N, D] of torch or numpy
    maskc.apply(model, "longformer(64,2)")                           # a transformers model attends through this mask
    AutoModel.from_pretrained(name, attn_implementation="maskc")     # the model's own mask

numpy is enough for masks, plans and kernels on arrays; torch (2.10 or later) and transformers are optional.
"""
from . import hooks as _hooks
from ._library import Error
from .flex import from_flex
from .kernel import Kernel, compile, load, plan
from .picture import Picture, show
from .runs import Runs
from .transformers_masks import from_transformers

__version__ = "0.2.0"
__all__ = ["Error", "Kernel", "Picture", "Runs", "apply", "attention", "compile", "from_flex", "from_transformers", "load", "plan", "show"]


def attention(q, k, v, kernel: Kernel, layer: int = 0, lengths=None, starts=None, offsets=None, dropout_p: float = 0.0,
              seed: "int | None" = None, scale: "float | None" = None, bias=None, return_lse: bool = False, key_lengths=None):
    """O = softmax(scale Q K^T over the active keys) V.

    q, k, v: [B, H, N, D] of torch, any strides with D contiguous; read in place if pointers and strides are multiples of
        16 bytes, else copied. Or packed [T, H, D] with offsets. numpy arrays too, only forward. N may be less than the mask's length: its top-left corner is used. k and v have the heads and the
        number of rows that compile() was given as kv_heads and kv_length; query head h has key head h // (H // kv_heads).
    kernel: of compile() or load(), for this dtype, H and D. A kernel of `maskc compile --order` accepts whole sequences in the order of tokens and
        returns O and LSE in that order; dropout's draws are those of the kernel's positions. layer: of a mask that differs by layer.
    lengths: int [B], tokens of each sequence; rows beyond give 0. starts: int [B], the first position of each sequence
        (left padding); the mask begins there, and lengths counts from there. offsets: int [B + 1] of a packed batch.
    dropout_p, seed: of attention probabilities, with a kernel compiled with dropout; seed None: torch's generator draws it, for numpy numpy.random's.
    scale: a number, 1/sqrt(D) where None; 0 makes attention uniform. bias: float32 [H, n, n], n the mask's length, for a kernel compiled with bias ("add": below -1e37 it may count as -inf).
    key_lengths: int [B], of k and v, where the kernel has another number of keys than of queries; `lengths` is then q's.
    return_lse: (O, LSE), LSE float32 [B, H, N] or [H, T], without a gradient.

    Returns O, shaped as q, in memory [B, N, H, D]. Differentiable once, in reverse mode, in q, k, v and bias. Under autocast q, k, v are cast
    to the kernel's dtype. Raises maskc.Error or TypeError with one line.
    """
    if _hooks.is_torch(q):
        attend = _hooks.torch_attention()
        return attend(q, k, v, kernel, layer, lengths, starts, offsets, dropout_p, seed, scale, bias, return_lse, key_lengths)
    from .arrays import attention_numpy
    return attention_numpy(q, k, v, kernel, layer, lengths, starts, offsets, dropout_p, seed, scale, bias, return_lse, key_lengths)


def apply(model, mask, layers=None):
    """From now on the transformers model attends through this mask instead of its own: that changes the model, and a
    line on stderr says so. mask: as compile() accepts it, read and checked at once; text gets n = max_position_embeddings,
    and shorter batches use the corner. None: the model's own mask again. layers: numbers of the layers that change; None:
    all. The model's save_pretrained() writes the mask. Returns the model."""
    from .transformers_patch import apply_mask
    return apply_mask(model, mask, layers)


_hooks.install()
