# SPDX-License-Identifier: Apache-2.0
"""maskbert's training by ctypes: the functions of tools/compare/bert_train.c."""
import ctypes
import os
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_uint32, c_uint64, c_void_p

import numpy

from bert_peers_ours import Failed, argument_of


class CallerBatch(ctypes.Structure):
    _fields_ = [("sequences", c_uint32), ("masked", c_uint32)] + [
        (name, c_void_p) for name in ("token_ids", "count", "first_part", "masked_row", "masked_label", "next_label")]


class Library:
    """OSError where it cannot be loaded."""

    def __init__(self, path):
        # Its own libraries first: torch brings an OpenMP and an oneDNN too.
        self.lib = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
        for name, result, arguments in (
                ("trainer_open", c_void_p, [c_char_p, c_char_p, c_char_p, c_uint32, c_uint32, c_void_p]),
                ("trainer_batch", None, [c_void_p, POINTER(CallerBatch)]),
                ("trainer_gradients", c_int, [c_void_p, c_void_p, c_void_p]),
                ("trainer_gradient", c_int, [c_void_p, c_char_p, c_uint64, c_void_p]),
                ("trainer_step", c_int, [c_void_p, c_double, c_double, c_void_p]),
                ("trainer_part", c_char_p, [c_uint32]), ("trainer_seconds", None, [c_void_p, c_void_p]),
                ("trainer_close", None, [c_void_p])):
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        self.parts = []
        while part := self.lib.trainer_part(len(self.parts)):
            self.parts.append(part.decode())


class Ours:
    """A model loaded for training, and one batch. dropout: of hidden states and of attention. A batch without `next` trains on
    masked words only."""

    def __init__(self, library, folder, mask, threads, dropout, batch, dtype="bf16"):
        self.library, self.parts, self.dropout = library.lib, library.parts, dropout
        self.text = (c_char * 4096)()
        self.handle = self.library.trainer_open(os.fsencode(folder), argument_of(mask), dtype.encode(), threads,
                                                (dropout > 0) + 2 * (batch.next is None), self.text)
        if not self.handle:
            raise Failed(self.text.value.decode(errors="replace"))
        self.arrays = [numpy.ascontiguousarray(x, t) for x, t in (
            (batch.ids.flatten(), numpy.uint32), ([batch.length] * batch.sequences, numpy.uint32),
            (batch.first_parts, numpy.uint32), (batch.rows, numpy.uint32), (batch.labels, numpy.uint32),
            *([(batch.next, numpy.uint8)] if batch.next is not None else []))]
        self.library.trainer_batch(self.handle, CallerBatch(batch.sequences, len(batch.rows),
                                                            *(x.ctypes.data for x in self.arrays), *([None] if batch.next is None else [])))

    def check(self, result):
        if result:
            raise Failed(self.text.value.decode(errors="replace"))

    def __call__(self):
        self.check(self.library.trainer_step(self.handle, self.dropout, self.dropout, self.text))

    def gradients(self, shapes):
        """(loss, {name: gradient}) without dropout; shapes: {name: shape}."""
        loss, found = numpy.zeros(2), {}
        self.check(self.library.trainer_gradients(self.handle, loss.ctypes.data, self.text))
        for name, shape in shapes.items():
            found[name] = numpy.empty(shape, numpy.float32)
            if self.library.trainer_gradient(self.handle, name.encode(), found[name].size, found[name].ctypes.data):
                raise Failed(f"no gradient of {name}")
        return float(loss.sum()), found

    def shares(self):
        """{part of a step: its share of the time}."""
        seconds = numpy.zeros(len(self.parts))
        self.library.trainer_seconds(self.handle, seconds.ctypes.data)
        return dict(zip(self.parts, (seconds / seconds.sum()).tolist()))

    def close(self):
        self.library.trainer_close(self.handle)
        self.handle = None
