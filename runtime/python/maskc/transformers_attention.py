# SPDX-License-Identifier: Apache-2.0
"""attn_implementation="maskc" of transformers: the mask that the model itself asks for, exactly, for the tokens that are
there; a padding row's own output, which models ignore, is 0. What cannot be done is refused by name."""
import torch
import torch.nn.functional as F

from . import torch_op
from ._library import Error
from .transformers_functions import PREFIX
from .transformers_interface import Mask, kernel_length, mask_interface, require
from .transformers_kernels import DTYPES, chosen_kernel
from .transformers_stored import FromLayers

try:
    from transformers.utils.output_capturing import _active_collector as COLLECTOR
except ImportError:
    COLLECTOR = None
NAME = "maskc"
MISSING = object()
REFUSED = ("softcap", "head_mask", "s_aux", "sinks", "indices", "block_indices", "cu_seq_lens_q", "cu_seq_lens_k", "cu_seqlens")  # they change the result


def wants_probabilities(module, named):
    """True if the caller wants output_attentions. Some layers do not hand the argument on; then the collector of transformers 5 has it."""
    if named.get("output_attentions") or getattr(getattr(module, "config", None), "output_attentions", False):
        return True
    collected = None if COLLECTOR is None or torch.compiler.is_compiling() else COLLECTOR.get()
    return any(name.endswith("attentions") for name in collected or ())


def check_named(module, named):
    for name in REFUSED:
        if named.get(name) is not None:
            raise Error(2, f"{PREFIX}{name} is not supported")
    if wants_probabilities(module, named):
        applied = getattr(module, "_maskc", MISSING) is not MISSING  # 'eager' would compute attention without the mask, or not be used
        raise Error(2, PREFIX + "output_attentions is not supported, as probabilities are never stored: " + (
            "`maskbert attention` has the maps under the mask; maskc.apply(model, None) computes attention without it" if applied else "use 'eager'"))


def repeat_heads(t, times):
    b, h, n, d = t.shape
    return t[:, :, None].expand(b, h, times, n, d).reshape(b, h * times, n, d)


def model_mask(module, attention_mask, is_causal, named, n):
    """The Mask of a layer."""
    if isinstance(attention_mask, Mask):
        return attention_mask
    if attention_mask is not None:
        raise Error(2, f"{PREFIX}an attention mask of shape {list(attention_mask.shape)} is not supported; "
                       "[B, N] is expected, or maskc.apply with one mask for all sequences")
    if named.get("sliding_window") is not None:
        raise Error(2, PREFIX + "a sliding window without its mask is not supported")
    causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
    return Mask("causal" if causal else "dense", None, None, kernel_length(getattr(module, "config", None), n))


def bias_from(starts, bias):
    """The bias [1, H, N, N] that sequences see from their first tokens on. Kernels read one for all sequences, from its own corner."""
    same = (starts == starts[:1]).all()
    require(same | (bias[..., 1:, 1:] == bias[..., :-1, :-1]).all(), "left padding of different lengths with a position bias that is no "
            "function of the distance is not supported: pad on the right")
    n = bias.shape[-1]
    rows = (torch.arange(n, device=bias.device) + same * starts[:1].sum()) % n
    return bias.index_select(-2, rows).index_select(-1, rows)


def padded_bias(bias, n, starts=None):
    """float32 [H, n, n] of a model's [1, H, N, N]."""
    if bias.shape[0] != 1:
        raise Error(2, f"{PREFIX}a position bias of shape {list(bias.shape)}; one for all sequences is expected")
    if starts is not None:
        bias = bias_from(starts, bias)
    more = n - bias.shape[-1]
    return F.pad(bias[0].float(), (0, more, 0, more)).contiguous()


def run_packed(mask, query, key, value, kernel, layer, dropout, seed, scaling):
    """Documents of all rows, one after the other."""
    b, _, n, _ = query.shape
    query, key, value = (t.transpose(1, 2).flatten(0, 1) for t in (query, key, value))
    out = torch_op.attend(query, key, value, kernel, layer, None, None, mask.offsets, dropout, seed, scaling, None)[0]
    return out.unflatten(0, (b, n)).transpose(1, 2)


def run(mask, query, key, value, kernel, layer, dropout, scaling, bias):
    seed = torch_op.seed_tensor(None) if dropout else None
    if mask.offsets is not None:
        if bias is not None:
            raise Error(2, PREFIX + "packed sequences with a position bias are not supported")
        return run_packed(mask, query, key, value, kernel, layer, dropout, seed, scaling)
    if mask.starts is not None:
        return torch_op.attend_from(mask.starts, query, key, value, kernel, layer, mask.lengths, dropout, seed, scaling, bias)[0]
    return torch_op.attend(query, key, value, kernel, layer, mask.lengths, None, None, dropout, seed, scaling, bias)[0]


def override_of(module):
    """The mask that was applied to the layer or stored in its folder; None: the model's own."""
    override = getattr(module, "_maskc", MISSING)
    if override is not MISSING:
        return override
    stored = getattr(getattr(module, "config", None), "maskc", None)
    if isinstance(getattr(stored, "source", None), FromLayers):
        raise Error(2, PREFIX + "maskc.apply gave a mask to another model, which shares this model's configuration: make each model with a "
                       "copy.deepcopy of it (or call model.set_attn_implementation('maskc') for that mask)")
    if isinstance(stored, dict):
        raise Error(2, PREFIX + "the model's configuration has a mask that this layer did not receive: call model.set_attn_implementation('maskc')")
    return None


def autocast(*tensors):
    """The tensors as torch's own attention sees them: under autocast in its dtype, except float64."""
    kind = tensors[0].device.type
    if kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind):
        want = torch.get_autocast_dtype(kind)
        tensors = [t.to(want) if t.is_floating_point() and t.dtype != torch.float64 else t for t in tensors]
    query, key, value = (t.dtype for t in tensors)
    if query not in DTYPES:
        raise Error(2, f"{PREFIX}{query}; float32, bfloat16 or float16 is expected")
    if key != query or value != query:
        raise Error(2, f"{PREFIX}query is {query}, key {key}, value {value}; one dtype is expected")
    return tensors


def to_16(d):
    return max(16, (d + 7) // 8 * 8)


def attention_forward(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, position_bias=None,
                      **named):
    """query [B, H, N, D], key and value [B, H or fewer, N, D] -> ([B, N, H, D], None)."""
    check_named(module, named)
    if query.shape[2] != key.shape[2]:
        raise Error(3, f"{PREFIX}{query.shape[2]} queries and {key.shape[2]} keys; cross-attention and caches are not supported yet")
    query, key, value = autocast(query, key, value)
    d = query.shape[-1]
    scaling = d ** -0.5 if scaling is None else scaling
    if to_16(d) != d:
        query, key, value = (F.pad(t, (0, to_16(d) - d)) for t in (query, key, value))
    mask, override = model_mask(module, attention_mask, is_causal, named, query.shape[2]), override_of(module)
    kind = "add" if position_bias is not None else None
    text, length, layer, transform = (mask.text, mask.longest, 0, "softmax") if override is None else (
        override.shared.name, override.length, override.layer, override.transform)
    kernel, times = chosen_kernel(text, length, query, key.shape[1], dropout, kind, transform)
    if times > 1:
        key, value = (repeat_heads(t, times) for t in (key, value))
    if position_bias is not None:
        position_bias = padded_bias(position_bias, length, mask.starts)
    try:
        out = run(mask, query, key, value, kernel, layer, dropout, scaling, position_bias)
    except RuntimeError as e:
        torch_op.raise_plain(e)
        raise
    return out[..., :d].transpose(1, 2), None


def register():
    """Called when transformers is there."""
    from transformers.modeling_utils import AttentionInterface, PreTrainedModel
    try:
        from transformers import masking_utils
    except ImportError:
        return  # before 4.53 models make their masks themselves
    AttentionInterface.register(NAME, attention_forward)
    from .transformers_hooks import hook_masks, hook_models
    masking_utils.AttentionMaskInterface.register(NAME, mask_interface)
    hook_masks(masking_utils)
    hook_models(PreTrainedModel)
