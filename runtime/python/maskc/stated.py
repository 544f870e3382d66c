# SPDX-License-Identifier: Apache-2.0
"""Stated: a mask that was read and checked, independent of the file that it came from, and its form in a model's folder."""
import io
import json
import os
import tempfile

from ._library import Error
from .kernel import run_program
from .masks import dense_array, is_mask_mod, mask_argument
from .runs import Runs

DEFAULT_LENGTH = 512  # of text without a length, for a model that states no number of positions
WITH_LENGTH = (".npy", ".npz", ".safetensors", ".mkb")  # files that hold a mask of one length
MOST_ENTRIES = 1 << 31  # of an array that is composed or written


class Stated:
    """value: text of the mask language with its length, or bytes [layers, heads, n, n], or Runs. It never changes: copies share it."""

    def __init__(self, value, length, heads, layers):
        self.value, self.length, self.heads, self.layers = value, length, heads, layers

    def __deepcopy__(self, memo):
        return self

    def file(self, length=None):
        """(name, bytes) of the file in a model's folder. The text form has the model's length, which a reader assumes."""
        if isinstance(self.value, str):
            return ("mask.mask", self.value.encode()) if length in (None, self.length) else ("mask.npy", array_bytes(self))
        made = made_of(array_bytes(self))
        if isinstance(made.value, str) and length in (None, self.length):
            return "mask.mask", made.value.encode()
        return "mask.npy", array_bytes(self)


def first_line(e):
    return Error(e.code, e.text.split("\n")[0])


def statement(argument, options, folder):
    """Returns the result of `maskc make`: text if the mask can be stated exactly, else an array."""
    text, array = os.path.join(folder, "made.mask"), os.path.join(folder, "made.npy")
    try:
        run_program("make", *options, "-o", text, "--", argument)
    except Error as e:
        if "cannot be stated exactly" not in e.text:
            raise first_line(e) from None
        run_program("make", *options, "-o", array, "--", argument)
        return of_file(array)
    with open(text, encoding="utf-8") as f:
        return of_text(f.read())


def of_text(text):
    counts = dict(line.split() for line in text.split("\n")[:3] if line.startswith(("length ", "heads ", "layers ")))
    return Stated(text, *(int(counts.get(name, 1)) for name in ("length", "heads", "layers")))


def of_file(path):
    try:
        import numpy
    except ImportError:
        raise Error(3, "a mask that cannot be stated as text needs numpy") from None
    return of_array(numpy.load(path) != 0)


def of_array(array):
    value = array if isinstance(array, Runs) else dense_array(array)
    layers, heads, n, _ = value.shape
    return Stated(value, n, heads, layers)


def array_bytes(stated):
    """The mask as a .npy file."""
    import numpy
    if stated.layers * stated.heads * stated.length ** 2 > MOST_ENTRIES:
        raise Error(3, f"a mask of {stated.layers} layers, {stated.heads} heads and {stated.length} positions is too large for mask.npy: "
                       "apply it as text of the mask language")
    data = io.BytesIO()
    numpy.save(data, bits(stated))
    return data.getvalue()


def bits(stated):
    """numpy bool [layers, heads, n, n]."""
    import numpy
    if not isinstance(stated.value, str):
        return numpy.asarray(stated.value).astype(bool)
    with tempfile.TemporaryDirectory(prefix="maskc-") as folder:
        path = os.path.join(folder, "bits.npy")
        run_program("make", mask_argument(stated.value)[0], "-o", path)
        return (numpy.load(path) != 0).reshape(stated.layers, stated.heads, stated.length, stated.length)


def made_of(data, name="mask.npy", options=lambda path, folder: (), shown=None):
    """The statement of a mask file in memory. options: a function of its path and folder. shown: its path in messages."""
    with tempfile.TemporaryDirectory(prefix="maskc-") as folder:
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(data)
        try:
            return statement(path, options(path, folder), folder)
        except Error as e:
            raise Error(e.code, e.text.replace(path, shown or name)) from None


def text_options(text, positions, folder):
    """The length of a text argument: a file may hold its own, which the model's positions crop."""
    if text.lower().endswith(WITH_LENGTH):
        own = statement(text, (), folder).length
        return ("-n", str(positions)) if positions and own > positions else ()
    if positions:
        return ("-n", str(positions))
    try:
        statement(text, (), folder)
    except Error as e:
        if "no length of its own" not in e.text:
            raise
        return ("-n", str(DEFAULT_LENGTH))
    return ()


def state(mask, positions, heads=None):
    """The Stated of a mask as compile() takes it, for a model of that many positions (None: the model states none) and heads."""
    if isinstance(mask, (str, os.PathLike)):
        text = mask_argument(mask)[0]
        with tempfile.TemporaryDirectory(prefix="maskc-") as folder:
            return statement(text, text_options(text, positions, folder), folder)
    if is_mask_mod(mask):
        return of_array(mask_argument(mask, positions or DEFAULT_LENGTH, heads)[1])
    return of_array(mask_argument(mask)[1])


def one_layer(stated, layer, length):
    """The Stated of one layer, cropped to the length."""
    if not isinstance(stated.value, str):
        return of_array(bits(stated)[layer:layer + 1, :, :length, :length])
    options = ("-n", str(length)) + (("--layer", str(layer)) if stated.layers > 1 else ())
    return made_of(stated.value.encode(), "layer.mask", lambda *where: options)


def layer_lines(number, text):
    """Statements of one layer as statements of a file with layers."""
    lines = [line for line in text.split("\n") if line and not line.startswith(("length ", "heads ", "layers "))]
    return [f"layer {number} {line}" if line.startswith("head ") else f"layer {number}: {line}" for line in lines]


def compose(parts):
    """One Stated of (Stated, layer) for each layer of a model; None: dense."""
    length = min(part[0].length for part in parts if part)
    heads = max(part[0].heads for part in parts if part)
    known = {part: one_layer(*part, length) for part in set(parts) if part}
    layers = [known[part] if part else of_text(f"length {length}\ndense\n") for part in parts]
    if all(isinstance(layer.value, str) for layer in layers):
        head = [f"length {length}", f"heads {heads}", f"layers {len(layers)}"]
        lines = [line for k, layer in enumerate(layers) for line in layer_lines(k, layer.value)]
        return made_of("\n".join(head + lines + [""]).encode(), "composed.mask")
    import numpy
    if len(layers) * heads * length ** 2 > MOST_ENTRIES:
        raise Error(3, f"masks of {len(layers)} layers, {heads} heads and {length} positions are too large for one mask.npy")
    return of_array(numpy.concatenate([numpy.broadcast_to(bits(layer), (1, heads, length, length)) for layer in layers]))


def hash_of(stated):
    """The hash that the key "maskc" of a config.json holds."""
    name, data = stated.file()
    with tempfile.TemporaryDirectory(prefix="maskc-") as folder:
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(data)
        return json.loads(run_program("show", path, "--json"))["hash"]
