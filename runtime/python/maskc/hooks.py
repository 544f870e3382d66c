# SPDX-License-Identifier: Apache-2.0
"""Extends transformers when it is imported, before or after maskc: the implementation "maskc", and configurations with a mask file."""
import importlib.abc
import sys

ATTENTION = None  # of the module torch_op, which puts it here: an import statement in each call takes .6 us


def is_torch(value):
    """Returns True for a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_capturing():
    """Returns True while torch captures this thread's work into a CUDA graph. Fake tensors of a GPU do not start CUDA."""
    cuda = sys.modules.get("torch.cuda")
    is_initialized = getattr(cuda, "is_initialized", None)  # absent while another thread imports torch
    return bool(is_initialized) and is_initialized() and cuda.is_current_stream_capturing()


def torch_attention():
    """Returns attention() of the module torch_op, imported when the first tensor comes. While torch.compile traces, ATTENTION is not read: tracing may change it, and torch.compile would guard it."""
    if sys.modules["torch"].compiler.is_compiling() or ATTENTION is None:
        from . import torch_op
        return torch_op.attention
    return ATTENTION


def register(module):
    from . import transformers_attention
    transformers_attention.register()


def register_configurations(module):
    from .transformers_stored import hook_configurations
    hook_configurations(getattr(module, "PreTrainedConfig", None) or module.PretrainedConfig)  # its name before transformers 5


WATCHED = {"transformers.configuration_utils": register_configurations, "transformers.modeling_utils": register}


class Loader(importlib.abc.Loader):
    """The module's own loader, and then our registration, once: a finder that delegates to the others may wrap one of ours in another one."""

    def __init__(self, loader, finder):
        self.loader = loader
        self.finder = finder

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        if module.__name__ in self.finder.names:
            WATCHED[module.__name__](module)
            self.finder.forget(module.__name__)

    def __getattr__(self, name):
        return getattr(self.loader, name)


class Finder(importlib.abc.MetaPathFinder):
    """Finder of the watched modules that are not imported yet."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path, target=None):
        if name not in self.names:
            return None
        others = [f for f in sys.meta_path if not isinstance(f, Finder)]
        found = (f.find_spec(name, path, target) for f in others if hasattr(f, "find_spec"))  # those of editable installations too
        spec = next((s for s in found if s), None)
        if spec and spec.loader:
            spec.loader = Loader(spec.loader, self)
        return spec

    def forget(self, name):
        self.names.discard(name)
        if not self.names and self in sys.meta_path:
            sys.meta_path.remove(self)


def install():
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    for name, registration in WATCHED.items():
        if name in sys.modules:
            registration(sys.modules[name])
    missing = {name for name in WATCHED if name not in sys.modules}
    if missing:
        sys.meta_path.insert(0, Finder(missing))
