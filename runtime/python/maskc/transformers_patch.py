# SPDX-License-Identifier: Apache-2.0
"""apply(): another mask for a transformers model."""
import sys

from ._library import Error
from .transformers_kernels import share


class Override:
    """What one attention layer attends through."""

    def __init__(self, mask, n, number):
        self.shared, self.n, self.number = share(mask), n, number

    @property
    def mask(self):
        return self.shared.mask

    def layer(self, kernel):
        return self.number if getattr(kernel, "layers", 1) > 1 else 0


def attention_modules(model):
    """Those that ask transformers for their attention function, in order."""
    found = []
    for name, module in model.named_modules():
        names = getattr(getattr(type(module).forward, "__wrapped__", type(module).forward), "__code__", None)
        if names and "ALL_ATTENTION_FUNCTIONS" in names.co_names and not getattr(module, "is_cross_attention", False):
            found.append((name, module))
    return found


def text_length(model, mask):
    """For text; an array has its own."""
    if not isinstance(mask, str):
        return 0
    n = getattr(model.config, "max_position_embeddings", None)
    if not n:
        raise Error(2, f"{type(model).__name__} has no max_position_embeddings: give the mask as an array, of its length")
    return n


def chosen(layers, count):
    numbers = range(count) if layers is None else list(layers)
    for number in numbers:
        if not isinstance(number, int) or not 0 <= number < count:
            raise Error(2, f"layers: {number!r} is not in 0..{count - 1}")
    return numbers


def layers_of(model, layers):
    """(attention layers in order, what makes one of them ours or None)."""
    from . import transformers_layers
    modules = attention_modules(model)
    if modules:
        return modules, None
    transformers_layers.refuse(model)
    modules = transformers_layers.attention_modules(model, layers)
    if not modules:
        raise Error(3, f"{type(model).__name__}: its layers do not take an attention implementation, so its mask cannot be changed")
    return modules, transformers_layers.patch


def apply_mask(model, mask, layers=None):
    from .masks import is_mask_mod, mask_argument
    modules, patch = layers_of(model, layers)
    numbers = chosen(layers, len(modules))
    n = text_length(model, mask)
    if not isinstance(mask, str):
        mask = mask_argument(mask, text_length(model, "") if is_mask_mod(mask) else None, getattr(model.config, "num_attention_heads", None))[1]
        if mask.shape[0] not in (1, len(modules)):
            raise Error(2, f"mask: {mask.shape[0]} layers, the model has {len(modules)}")
    if not patch:
        model.set_attn_implementation("maskc")
    for number in numbers:
        modules[number][1]._maskc = Override(mask, n, number)
        if patch:
            patch(modules[number][1])
    print(f"maskc: {len(numbers)} of {len(modules)} attention layers of {type(model).__name__} now attend through another mask: "
          "this changes what the model computes", file=sys.stderr)
    return model
