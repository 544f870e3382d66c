# SPDX-License-Identifier: Apache-2.0
"""attn_implementation="maskc" of transformers: the mask that the model itself asks for, exactly, for the tokens that are
there; a padding row's own output, which models ignore, is 0. What cannot be done is refused by name."""
import dataclasses

import torch
import torch.nn.functional as F

from . import torch_op
from ._library import Error
from .transformers_kernels import DTYPES, bucket, chosen_kernel

NAME = "maskc"
REFUSED = ("softcap", "s_aux", "cu_seq_lens_q", "cu_seqlens")  # arguments that change what is computed
EXACT = 1024  # up to this length every entry of a mask function is compared, beyond it some rows


@dataclasses.dataclass
class Mask:
    """What stands where other implementations have a tensor: the mask as text, and where the sequences lie."""
    text: str
    lengths: "torch.Tensor | None"  # int32 [B]
    starts: "torch.Tensor | None"   # int32 [B]: left padding
    longest: int                    # positions of the model, or of this batch


# ---- the mask interface ----

def text_of(bidirectional, local_size, use_vmap):
    if use_vmap:
        raise Error(2, "attn_implementation='maskc': a mask function of the model's own is not supported; maskc.apply takes a mask")
    if bidirectional:
        return f"window({local_size})" if local_size is not None else "dense"
    return f"causal & window({local_size - 1})" if local_size is not None else "causal"


COMPARED = {}  # text: the length up to which it was held against transformers' own function


def expected(text, rows, keys):
    near = (rows[:, None] - keys).abs()
    bits = torch.ones(len(rows), len(keys), dtype=torch.bool)
    if text.startswith("causal"):
        bits &= keys <= rows[:, None]
    if "window" in text:
        bits &= near <= int(text.split("(")[1].rstrip(")"))
    return bits


def compare(text, mask_function, n):
    """Whether text is what the function says. A version of transformers that means something else must not pass."""
    if COMPARED.get(text, 0) >= n:
        return
    keys = torch.arange(n)
    rows = keys if n <= EXACT else torch.cat([keys[:64], keys[-64:], keys[64:-64:max(1, n // 256)]])
    zero = torch.zeros((), dtype=torch.long)
    theirs = torch.as_tensor(mask_function(zero, zero, rows[:, None], keys[None]))
    if theirs.dtype != torch.bool or not torch.equal(theirs.expand(len(rows), n), expected(text, rows, keys)):
        raise Error(2, "attn_implementation='maskc': this version of transformers asks for a mask that is not known: use maskc.apply")
    COMPARED[text] = n


def holes(padding, lengths, starts):
    n = padding.shape[1]
    last = n - 1 - padding.flip(1).int().argmax(1)
    return ((last - starts + 1 != lengths) & (lengths > 0)).any()


def sequences(padding):
    """(lengths, starts) of a bool [B, N] padding mask; None where not needed."""
    lengths = padding.sum(1, dtype=torch.int32)
    starts = padding.int().argmax(1).to(torch.int32)
    if torch.compiler.is_compiling():
        torch._assert_async(~holes(padding, lengths, starts), "attn_implementation='maskc': an attention mask with holes is not supported")
        return lengths, starts
    if holes(padding, lengths, starts):
        raise Error(2, "attn_implementation='maskc': an attention mask with holes is not supported: 1 for a sequence's tokens, 0 on its sides")
    return (lengths if not padding.all() else None), (starts if starts.any() else None)


def mask_interface(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, mask_function=None, attention_mask=None,
                   local_size=None, use_vmap=False, config=None, **named):
    """What a model's attention layers get as attention_mask."""
    if q_length != kv_length:
        raise Error(3, f"attn_implementation='maskc': {q_length} queries and {kv_length} keys; cross-attention and caches are not supported yet")
    text = text_of("allow_is_bidirectional_skip" in named, local_size, use_vmap)
    if not torch.compiler.is_compiling():
        compare(text, mask_function, q_length)
        longest = bucket(q_length)
    else:
        longest = getattr(config, "max_position_embeddings", None) or 4096
    lengths = starts = None
    if attention_mask is not None:
        lengths, starts = sequences(attention_mask.bool())
    return Mask(text, lengths, starts, longest)


# ---- the attention interface ----

def check_named(module, named):
    for name in REFUSED:
        if named.get(name) is not None:
            raise Error(2, f"attn_implementation='maskc': {name} is not supported")
    config = getattr(module, "config", None)
    if named.get("output_attentions") or getattr(config, "output_attentions", False):
        raise Error(2, "attn_implementation='maskc': output_attentions is not supported, as probabilities are never stored: use 'eager'")


def repeat_heads(t, times):
    b, h, n, d = t.shape
    return t[:, :, None].expand(b, h, times, n, d).reshape(b, h * times, n, d)


def model_mask(module, attention_mask, is_causal, named, n):
    """The Mask of a layer."""
    if isinstance(attention_mask, Mask):
        return attention_mask
    if attention_mask is not None:
        raise Error(2, f"attn_implementation='maskc': an attention mask of shape {list(attention_mask.shape)} is not supported; "
                       "[B, N] is expected, or maskc.apply with one mask for all sequences")
    if named.get("sliding_window") is not None:
        raise Error(2, "attn_implementation='maskc': a sliding window without its mask is not supported")
    causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
    longest = bucket(n) if not torch.compiler.is_compiling() else getattr(module.config, "max_position_embeddings", 4096)
    return Mask("causal" if causal else "dense", None, None, longest)


def padded_bias(bias, n):
    """float32 [H, n, n] of a model's [1, H, N, N]."""
    if bias.shape[0] != 1:
        raise Error(2, f"attn_implementation='maskc': a position bias of shape {list(bias.shape)}; one for all sequences is expected")
    more = n - bias.shape[-1]
    return F.pad(bias[0].float(), (0, more, 0, more)).contiguous()


def run(mask, query, key, value, kernel, layer, dropout, scaling, bias):
    seed = torch_op.seed_tensor(None) if dropout else None
    if mask.starts is not None:
        return torch_op.attend_from(mask.starts, query, key, value, kernel, layer, mask.lengths, dropout, seed, scaling, bias)[0]
    return torch_op.attend(query, key, value, kernel, layer, mask.lengths, None, None, dropout, seed, scaling, bias)[0]


def to_16(d):
    return max(16, (d + 7) // 8 * 8)


def attention_forward(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, position_bias=None,
                      **named):
    """query [B, H, N, D], key and value [B, H or fewer, N, D] -> ([B, N, H, D], None)."""
    check_named(module, named)
    if query.shape[2] != key.shape[2]:
        raise Error(3, f"attn_implementation='maskc': {query.shape[2]} queries and {key.shape[2]} keys; cross-attention and caches are not supported yet")
    if query.dtype not in DTYPES:
        raise Error(2, f"attn_implementation='maskc': {query.dtype}; float32, bfloat16 or float16 is expected")
    d = query.shape[-1]
    scaling = d ** -0.5 if scaling is None else scaling
    if to_16(d) != d:
        query, key, value = (F.pad(t, (0, to_16(d) - d)) for t in (query, key, value))
    mask, override = model_mask(module, attention_mask, is_causal, named, query.shape[2]), getattr(module, "_maskc", None)
    kind = "add" if position_bias is not None else None
    text, length = (mask.text, mask.longest) if override is None else (override.shared.name, override.n)
    kernel, times = chosen_kernel(text, length, query, key.shape[1], dropout, kind)
    if times > 1:
        key, value = (repeat_heads(t, times) for t in (key, value))
    if position_bias is not None:
        position_bias = padded_bias(position_bias, mask.longest if override is None else kernel.length)
    try:
        out = run(mask, query, key, value, kernel, override.layer(kernel) if override is not None else 0, dropout, scaling, position_bias)
    except RuntimeError as e:
        torch_op.raise_plain(e)
        raise
    return out[..., :d].transpose(1, 2), None


def register():
    """Called when transformers is there."""
    from transformers.modeling_utils import AttentionInterface
    try:
        from transformers.masking_utils import AttentionMaskInterface
    except ImportError:
        return  # before 4.53 models make their masks themselves
    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, mask_interface)
