# SPDX-License-Identifier: Apache-2.0
"""apply(): another mask for a transformers model, which its configuration then stores."""
import os
import re
import sys

from ._library import Error
from .arguments import count_of, transform_of
from .stated import state
from .transformers_kernels import share
from .transformers_stored import KEY, FromLayers, StoredMask, positions_of, read_key

HEADS = ("num_attention_heads", "num_heads", "n_heads")  # attributes of layers and configurations
CROSS = re.compile("cross_?att|encoder_attn|encoder_decoder|encdecatt", re.IGNORECASE)  # names of attention to the tokens of an encoder


class Override:
    """Mask and kernels of one attention layer. It never changes: copies of a model share it."""

    def __init__(self, stated, layer, transform):
        self.stated, self.layer, self.transform = stated, layer, transform
        self.shared, self.length = share(stated.value), stated.length

    def __deepcopy__(self, memo):
        return self


def is_cross(name, module):
    """Returns True if the layer attends to the tokens of an encoder."""
    return bool(getattr(module, "is_cross_attention", False) or CROSS.search(f"{name} {type(module).__name__}"))


def interface_modules(model):
    """Layers that ask transformers for their attention function, in order."""
    if not hasattr(model, "named_modules") or not hasattr(model, "config"):
        within = " (here model.module)" if hasattr(getattr(model, "module", None), "config") else ""
        raise TypeError(f"model: {type(model).__name__}; a model of transformers is expected, as in maskc.apply(model, mask){within}")
    found = []
    for name, module in model.named_modules():
        names = getattr(getattr(type(module).forward, "__wrapped__", type(module).forward), "__code__", None)
        if names and "ALL_ATTENTION_FUNCTIONS" in names.co_names:
            found.append((name, module))
    return found


def attention_modules(model):
    """Those of them that a mask applies to: they attend to their own tokens."""
    return [(name, module) for name, module in interface_modules(model) if not is_cross(name, module)]


def chosen(layers, count):
    """Numbers of layers."""
    try:
        numbers = [count_of("layers", number, 0, count - 1) for number in (range(count) if layers is None else layers)]
    except TypeError:
        raise Error(2, f"layers: {type(layers).__name__}; a list of whole numbers is expected") from None
    if not numbers:
        raise Error(2, "layers: empty; the numbers of the layers that change are expected, or None for all")
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


def heads_of(module):
    """Query heads of a layer; None where it does not state them."""
    for owner in (module, getattr(module, "config", None)):
        for name in HEADS:
            if isinstance(getattr(owner, name, None), int):
                return getattr(owner, name)
    return None


def check_shape(stated, modules, numbers):
    """A mask has one layer or the model's, one head or each layer's."""
    if stated.layers not in (1, len(modules)):
        raise Error(2, f"mask: {stated.layers} layers, but the model has {len(modules)}; 1 or {len(modules)} are expected")
    for number in numbers:
        heads = heads_of(modules[number][1])
        if stated.heads != 1 and heads not in (None, stated.heads):
            raise Error(2, f"mask: {stated.heads} heads, but layer {number} has {heads}; 1 or {heads} are expected")


def cover(model, modules, numbers, stated, transform, patch):
    """These layers attend through the mask from now on, the others as before."""
    for number in numbers:
        modules[number][1]._maskc = Override(stated, number if stated.layers > 1 else 0, transform)
        if patch:
            patch(modules[number][1])
    for _, module in (*modules, *interface_modules(model)):
        module._maskc = getattr(module, "_maskc", None)


def is_dense(model, modules):
    """Returns True if layers without another mask attend to all tokens."""
    windows = (getattr(owner, name, None) for owner in [model.config, *(module for _, module in modules)] for name in ("sliding_window", "local_attention"))
    causal = (getattr(module, name, False) for _, module in modules for name in ("is_causal", "is_decoder"))
    return not any(windows) and not any(causal)


def stored_mask(model, modules):
    """The key of the configuration for what the layers attend through now."""
    own = [module._maskc for _, module in modules]
    transforms = {override.transform for override in own if override}
    if len(transforms) > 1:
        return StoredMask({}, None, f"maskc: layers with the transforms {', '.join(sorted(transforms))}; a folder stores one")
    values = {"mask": "mask.mask", "transform": transforms.pop()}
    if not all(own) and not is_dense(model, modules):
        values["layers"] = [k for k, override in enumerate(own) if override]
    return StoredMask(values, FromLayers([(override.stated, override.layer) if override else None for override in own]))


def read_late(values, folder):
    """The key of a configuration that was loaded before maskc was imported."""
    if not folder or not os.path.isdir(folder):
        raise Error(2, f"config.{KEY}: the mask file was not read: load the configuration by from_pretrained after `import maskc`; "
                       "for a part of a larger model apply the mask again")
    return read_key(values, folder, {})


def install(model):
    """The mask of the configuration, for a model that attends by "maskc" and has no mask yet."""
    stored = getattr(model.config, KEY, None)
    if not isinstance(stored, dict) or model.config._attn_implementation != "maskc":
        return
    if not isinstance(stored, StoredMask):
        stored = model.config.maskc = read_late(stored, getattr(model.config, "_name_or_path", None))
    layers = stored.get("layers")
    modules, patch = layers_of(model, layers)
    if any("_maskc" in vars(module) for _, module in modules):
        return
    stated, transform = stored.stated(positions_of(model.config)), stored.get("transform") or "softmax"
    transform_of(transform)
    numbers = chosen(layers, len(modules))
    check_shape(stated, modules, numbers)
    cover(model, modules, numbers, stated, transform, patch)


def remove(model, modules):
    """The model's own mask again."""
    from .transformers_layers import unpatch
    for _, module in (*modules, *interface_modules(model)):
        vars(module).pop("_maskc", None)
        unpatch(module)
    vars(model.config).pop(KEY, None)
    return model


def apply_mask(model, mask, layers=None):
    modules, patch = layers_of(model, layers)
    if mask is None:
        if layers is not None:
            raise Error(2, "layers: with None as mask all layers get the model's own mask again; a mask or layers=None is expected")
        return remove(model, modules)
    numbers = chosen(layers, len(modules))
    stated = state(mask, positions_of(model.config), heads_of(modules[0][1]))
    check_shape(stated, modules, numbers)
    cover(model, modules, numbers, stated, "softmax", patch)
    if not patch:
        model.set_attn_implementation("maskc")
    setattr(model.config, KEY, stored_mask(model, modules))
    print(f"maskc: {len(numbers)} of {len(modules)} attention layers of {type(model).__name__} now attend through another mask: "
          "this changes what the model computes", file=sys.stderr)
    return model
