# SPDX-License-Identifier: Apache-2.0
"""apply() for models whose layers take no attention implementation: their attention layers' forward, with ours within."""
import functools
import types
import weakref

import torch

from ._library import Error
from .transformers_attention import attention_forward
from .transformers_interface import Mask, sequences
from .transformers_kernels import bucket
from .transformers_patch import is_cross

LAST = (lambda: None, 0, None)  # the mask that all layers of a forward pass get, and what was read of it


def padding_of(attention_mask):
    """bool [B, N] of a model's additive [B, 1, 1, N], or [B, 1, N, N] whose rows are all alike."""
    wrong = attention_mask.dim() != 4 or attention_mask.shape[1] != 1
    alike = torch.tensor(True) if wrong else (attention_mask == attention_mask[:, :, :1]).all()
    if torch.compiler.is_compiling():
        torch._assert_async(alike, "maskc.apply: the model has an attention mask of its own beside the one that was applied")
    elif wrong or not alike:
        raise Error(2, f"maskc.apply: an attention mask of shape {list(attention_mask.shape)} beside the one that was applied; [B, N] is expected")
    row = attention_mask[:, 0, 0]
    return row if row.dtype == torch.bool else row == 0


def mask_of(attention_mask, n):
    """The Mask of what such a model makes of [B, N]; None: no padding."""
    global LAST  # pylint: disable=global-statement
    if isinstance(attention_mask, Mask):
        return attention_mask
    if attention_mask is None:
        return Mask("dense", None, None, bucket(n))
    if torch.compiler.is_compiling():
        return Mask("dense", *sequences(padding_of(attention_mask)), bucket(n))
    kept, version, mask = LAST
    now = 0 if attention_mask.is_inference() else attention_mask._version
    if kept() is not attention_mask or version != now:
        mask = Mask("dense", *sequences(padding_of(attention_mask)), bucket(n))
        LAST = weakref.ref(attention_mask), now, mask
    return mask


def attend(module, q, k, v, hidden, attention_mask, position_bias, named):
    """[B, N, H * D] of three projections."""
    shape = (*hidden.shape[:-1], -1, module.attention_head_size)
    q, k, v = (project(hidden).view(shape).transpose(1, 2) for project in (q, k, v))
    dropout = module.dropout.p if module.training else 0.0
    out, _ = attention_forward(module, q, k, v, mask_of(attention_mask, hidden.shape[1]), dropout=dropout, position_bias=position_bias,
                               output_attentions=named.get("output_attentions"))
    return out.flatten(2)


def mpnet(module, hidden_states, attention_mask=None, position_bias=None, **named):
    bias = None if position_bias is None else position_bias[:1]  # the model repeats it for each sequence
    return (module.o(attend(module, module.q, module.k, module.v, hidden_states, attention_mask, bias, named)),)


def big_bird(module, hidden_states, attention_mask=None, **named):
    for name in ("encoder_hidden_states", "cache", "past_key_values", "past_key_value"):
        if named.get(name) is not None:
            raise Error(3, f"maskc.apply: BigBird with {name}; cross-attention and caches are not supported yet")
    return attend(module, module.query, module.key, module.value, hidden_states, attention_mask, None, named), None


BOUND = ("forward", "_old_forward")  # attributes by which hooks of accelerate hold a layer's forward
FORWARDS = {"MPNetSelfAttention": mpnet, "BigBirdSelfAttention": big_bird}
REFUSED = {"LongformerSelfAttention": "the rows of its global tokens have projections of their own, which no mask says; "
                                      "from_transformers(config) gives its windows for a model of another kind"}


def refuse(model):
    """Models of which it is known why their mask cannot be changed."""
    for module in model.modules():
        if type(module).__name__ in REFUSED:
            raise Error(3, f"{type(model).__name__}: {REFUSED[type(module).__name__]}")


def leave_own_sparsity(model, layers):
    """BigBird's layers compute all scores from now on, and we a part of them."""
    for module in model.modules():
        if type(module).__name__ == "BigBirdModel":
            if layers is not None and module.attention_type == "block_sparse":
                raise Error(2, "layers: BigBird's own sparse attention cannot be kept in some layers: give set_attention_type('original_full') first")
            module.set_attention_type("original_full")


def attention_modules(model, layers):
    """Such layers, in order."""
    leave_own_sparsity(model, layers)
    found = [(name, module) for name, module in model.named_modules() if type(module).__name__ in FORWARDS and not is_cross(name, module)]
    for name, module in found:
        if "forward" in vars(module) and not any(isinstance(vars(module).get(kept), types.MethodType) for kept in BOUND):
            raise Error(3, f"maskc.apply: {name} has another forward than its class: apply the mask before that is set")
    return found


@functools.cache
def ours(kind):
    """The layer's class with our forward. It has the class's name; a pickle holds the class itself."""
    return type(kind.__name__, (kind,), {"forward": FORWARDS[kind.__name__], "__reduce_ex__": reduce_ours, "__module__": __name__})


def reduce_ours(module, protocol):
    return new_ours, (type(module).__base__,), vars(module)


def new_ours(kind):
    return ours(kind).__new__(ours(kind))


def is_ours(module):
    return type(module).__module__ == __name__


def change_class(module, kind):
    """Copies of the module's variables, as DataParallel makes them, then run on their own weights. Hooks of accelerate hold a bound forward."""
    module.__class__ = kind
    for name in BOUND:
        if isinstance(vars(module).get(name), types.MethodType):
            vars(module)[name] = types.MethodType(kind.forward, module)


def patch(module):
    """The layer attends through its mask from now on."""
    if not is_ours(module):
        change_class(module, ours(type(module)))


def unpatch(module):
    """The layer's own forward again."""
    if is_ours(module):
        change_class(module, type(module).__base__)
