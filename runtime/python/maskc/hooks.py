# SPDX-License-Identifier: Apache-2.0
"""What happens when transformers is imported, before or after maskc: it learns the implementation "maskc"."""
import importlib.abc
import importlib.machinery
import sys

ATTENTION = None  # of the module torch_op, which puts it here: an import statement in each call takes .6 us
WATCHED = "transformers.modeling_utils"  # models cannot be had without it


def is_torch(value):
    """Whether it is a torch tensor; torch is not imported for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def torch_attention():
    """Of the module torch_op, imported when the first tensor comes. A variable that a trace changes is not read there: torch.compile guards it."""
    if sys.modules["torch"].compiler.is_compiling() or ATTENTION is None:
        from . import torch_op
        return torch_op.attention
    return ATTENTION


def register():
    from . import transformers_attention
    transformers_attention.register()


class Loader(importlib.abc.Loader):
    """The module's own loader, and then our registration."""

    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        register()

    def __getattr__(self, name):
        return getattr(self.loader, name)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != WATCHED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            spec.loader = Loader(spec.loader)
        return spec


def install():
    if WATCHED in sys.modules:
        register()
    elif not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
