# SPDX-License-Identifier: Apache-2.0
"""Functions of transformers that maskc extends: models receive the mask of their configuration, and padding of cross-attention is
refused."""
import functools
import inspect
import sys
import warnings

from ._library import Error
from .transformers_functions import PREFIX
from .transformers_interface import Mask
from .transformers_patch import attention_modules, install
from .transformers_stored import KEY

NAME = "maskc"
CREATORS = ("create_bidirectional_mask", "create_bidirectional_sliding_window_mask")


def refuse_layers(kind):
    raise Error(3, f"{PREFIX}the layers of {kind.__name__} do not take an attention implementation: use 'eager', or maskc.apply for MPNet and BigBird")


def check_layers(model):
    """Refuses a model that accepts the implementation but has no layer that uses it."""
    if model.config._attn_implementation == NAME and KEY not in vars(model.config):
        if not model._can_set_attn_implementation() and not attention_modules(model):
            refuse_layers(type(model))


def warn_dropped(model):
    """A mask that was applied holds only while its layers attend by "maskc"."""
    others = {getattr(module, "config", model.config)._attn_implementation for _, module in attention_modules(model) if getattr(module, "_maskc", None)} - {NAME}
    if others:
        warnings.warn(f"maskc: attn_implementation={others.pop()!r} ignores the mask that was applied to {type(model).__name__}; "
                      "set_attn_implementation('maskc') computes it again", stacklevel=3)


def checked(cls, make, arguments, named):
    """A new model. Some look the implementation up in a table of their own."""
    try:
        return make(cls, *arguments, **named)
    except KeyError as e:
        if e.args != (NAME,):
            raise
        refuse_layers(cls)


def hook_models(base):
    """A model whose implementation becomes "maskc" receives the mask of its configuration. base: PreTrainedModel."""
    from_pretrained, from_config, set_implementation = base.from_pretrained.__func__, base._from_config.__func__, base.set_attn_implementation

    @functools.wraps(from_pretrained)
    def loaded(cls, *arguments, **named):
        made = checked(cls, from_pretrained, arguments, named)
        model = made[0] if isinstance(made, tuple) else made
        install(model)
        check_layers(model)
        return made

    @functools.wraps(from_config)
    def configured(cls, *arguments, **named):
        model = checked(cls, from_config, arguments, named)
        install(model)
        return model

    @functools.wraps(set_implementation)
    def switched(self, attn_implementation, *arguments, **named):
        set_implementation(self, attn_implementation, *arguments, **named)
        if attn_implementation == NAME and self.config._attn_implementation != NAME:
            refuse_layers(type(self))
        check_layers(self)
        install(self)
        warn_dropped(self)

    base.from_pretrained, base._from_config = classmethod(loaded), classmethod(configured)
    base.set_attn_implementation = switched


def refusing_cross_padding(create):
    """A function of masking_utils. Padding of keys alone is not a mask of sequences: queries would lose their outputs. The names of
    parameters differ by release (inputs_embeds was input_embeds)."""
    names = list(inspect.signature(create).parameters)
    place = names.index("encoder_hidden_states") if "encoder_hidden_states" in names else len(names)

    @functools.wraps(create)
    def created(*arguments, **named):
        mask = create(*arguments, **named)
        crossed = named.get("encoder_hidden_states", arguments[place] if len(arguments) > place else None)
        if isinstance(mask, Mask) and crossed is not None and (mask.lengths is not None or mask.starts is not None):
            raise Error(3, PREFIX + "cross-attention with padding is not supported yet")
        return mask

    return created


def hook_masks(masking_utils):
    """Modules that were imported before hold the functions by name."""
    for name in CREATORS:
        create = getattr(masking_utils, name, None)
        if create is None:
            continue
        replaced = refusing_cross_padding(create)
        for module in list(sys.modules.values()):
            if getattr(module, "__dict__", {}).get(name) is create:
                setattr(module, name, replaced)
