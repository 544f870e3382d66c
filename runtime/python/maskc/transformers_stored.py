# SPDX-License-Identifier: Apache-2.0
"""The key "maskc" of a config.json: the model's mask in a file beside it. A configuration reads the file when it is loaded and
writes it when it is saved."""
import functools
import os
import warnings

from ._library import Error
from .stated import compose, hash_of, made_of, state, text_options

KEY = "maskc"


def positions_of(config):
    """The length of the model's masks, None where the model states none."""
    n = getattr(config, "max_position_embeddings", None)
    return n if isinstance(n, int) and n > 0 else None


class FromFile:
    """A mask file that was read. It never changes: copies share it."""

    def __init__(self, path, data):
        self.path, self.data = path, data

    def __deepcopy__(self, memo):
        return self

    def stated(self, positions):
        name = os.path.basename(self.path)
        if b"file(" in self.data and name.endswith(".mask"):  # it names files beside it
            return state(self.path, positions)
        return made_of(self.data, name, lambda path, folder: text_options(path, positions, folder), self.path)

    def written(self, positions):
        """(file name, bytes, hash); the hash is None where the key's own holds."""
        if b"file(" in self.data and self.path.endswith(".mask"):
            return *self.stated(positions).file(positions), None
        return os.path.basename(self.path), self.data, None


class FromLayers:
    """Masks of the attention layers: (Stated, its layer), or None for dense attention. Copies share it."""

    def __init__(self, parts):
        self.parts, self.kept = tuple(parts), None

    def __deepcopy__(self, memo):
        return self

    def stated(self, positions):
        first = self.parts[0]
        if first and all(part and part[0] is first[0] for part in self.parts):
            if first[0].layers == 1 or [layer for _, layer in self.parts] == list(range(first[0].layers)):
                return first[0]
        return compose(self.parts)

    def written(self, positions):
        if self.kept is None:
            stated = self.stated(positions)
            self.kept = *stated.file(positions), hash_of(stated)
        return self.kept


class StoredMask(dict):
    """The key's object, {"mask": FILE, "hash": .., "transform": ..}, and the mask itself, or the reason why there is none."""

    def __init__(self, values, source, problem=None):
        super().__init__(values)
        self.source, self.problem = source, problem

    def __deepcopy__(self, memo):
        return StoredMask(self, self.source, self.problem)

    def __reduce__(self):
        return StoredMask, (dict(self), self.source, self.problem)

    def stated(self, positions):
        """The mask, checked against the key's hash."""
        if self.source is None:
            raise Error(2, self.problem)
        stated = self.source.stated(positions)
        if isinstance(self.source, FromFile) and self.get("hash") not in (None, hash_of(stated)):
            warnings.warn(f"maskc: {self.source.path} has changed since config.json was written", stacklevel=2)
        return stated

    def write(self, folder, positions):
        """Writes the mask file and completes the key. A mask that was missing stays missing, and maskbert says so."""
        if self.source is None:
            return
        name, data, hashed = self.source.written(positions)
        write_whole(os.path.join(folder, name), data)
        self["mask"] = name
        if hashed:
            self["hash"] = hashed


def write_whole(path, data):
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(temporary, "wb") as f:
            f.write(data)
        os.replace(temporary, path)
    except OSError as e:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise Error(3, f"{path}: {e.strerror}") from None


# ---- reading ----

def missing(where, name):
    return (f"{where}: missing, but config.json names it as the model's mask; copy {name} from the model's first folder, "
            f"or remove the key {KEY!r} for dense attention")


def local_path(model, name, named):
    """Where the file beside config.json is; a repository's is downloaded as its config.json was. None: there is none."""
    folder = model if os.path.isdir(model) else os.path.dirname(model)
    if os.path.isdir(model) or os.path.isfile(model):
        return os.path.abspath(os.path.join(folder, named.get("subfolder") or "", name))
    from transformers.utils import cached_file
    kept = ("cache_dir", "force_download", "proxies", "token", "revision", "local_files_only", "subfolder")
    try:
        return cached_file(model, name, **{key: named[key] for key in kept if named.get(key) is not None})
    except (OSError, ValueError):
        return None


def read_key(values, model, named):
    """The StoredMask of a config.json's key. A problem is raised when a layer needs the mask."""
    name = values.get("mask")
    if not isinstance(name, str) or not name or "/" in name or "\0" in name or name.startswith("."):
        return StoredMask(values, None, f"{model}/config.json: maskc.mask {name!r}: a file beside it is expected")
    path = local_path(model, name, named)
    where = path or os.path.join(model, name)
    try:
        with open(where, "rb") as f:
            return StoredMask(values, FromFile(where, f.read()))
    except FileNotFoundError:
        return StoredMask(values, None, missing(where, name))
    except OSError as e:
        return StoredMask(values, None, f"{where}: {e.strerror}")


# ---- the hook ----

def hook_configurations(base):
    """Configurations of transformers read, write and upload the mask file. base: PreTrainedConfig."""
    get_config_dict, save_pretrained, get_files_timestamps = base.get_config_dict.__func__, base.save_pretrained, base._get_files_timestamps

    @functools.wraps(get_config_dict)
    def get_with_mask(cls, pretrained_model_name_or_path, **named):
        values, rest = get_config_dict(cls, pretrained_model_name_or_path, **named)
        if isinstance(values.get(KEY), dict) and not isinstance(values[KEY], StoredMask):
            values[KEY] = read_key(values[KEY], os.fspath(pretrained_model_name_or_path), named)
        return values, rest

    @functools.wraps(save_pretrained)
    def save_with_mask(self, save_directory, *arguments, **named):
        stored = self.__dict__.get(KEY)
        if isinstance(stored, StoredMask) and not os.path.isfile(save_directory):
            stored.write(os.fspath(save_directory), positions_of(self))
        return save_pretrained(self, save_directory, *arguments, **named)

    @functools.wraps(get_files_timestamps)
    def times_without_mask(self, working_dir):
        """save_pretrained() uploads the files that are newer than these; the mask file is written before."""
        times, stored = get_files_timestamps(self, working_dir), self.__dict__.get(KEY)
        if isinstance(stored, StoredMask):
            times.pop(stored.get("mask"), None)
        return times

    base.get_config_dict, base.save_pretrained, base._get_files_timestamps = classmethod(get_with_mask), save_with_mask, times_without_mask
