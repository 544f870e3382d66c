# SPDX-License-Identifier: Apache-2.0
"""maskbert's engine by ctypes: the functions of tools/compare/bert_engine.c."""
import ctypes
import os
from ctypes import c_char, c_char_p, c_int, c_uint32, c_void_p

import numpy


OWN = object()  # stands for the model's own mask


def argument_of(mask):
    """The mask argument of bert_open(): None for the model's own mask."""
    return None if mask is OWN else (mask or "dense").encode()


class Failed(Exception):
    """Ours refused or failed; the text says why."""


class Library:
    """Raises OSError if it cannot be loaded."""

    def __init__(self, path):
        # Its own libraries first: torch brings an OpenMP and an oneDNN too.
        self.lib = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
        for name, result, arguments in (
                ("bert_open", c_void_p, [c_char_p, c_char_p, c_char_p, c_uint32, c_void_p]),
                ("bert_run", c_int, [c_void_p, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p]),
                ("bert_states", None, [c_void_p, c_void_p]), ("bert_phase", c_char_p, [c_uint32]),
                ("bert_close", None, [c_void_p])):
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        self.phases = []
        while phase := self.lib.bert_phase(len(self.phases)):
            self.phases.append(phase.decode())


class Ours:
    """A loaded model and one batch."""

    def __init__(self, library, folder, mask, dtype, threads, batch, size):
        self.library, self.text = library.lib, (c_char * 4096)()
        self.phases, self.handle, self.size, self.tokens = library.phases, None, size, batch.tokens
        self.ids = batch.packed_ids.numpy().astype(numpy.uint32)
        self.counts = numpy.array(batch.counts, numpy.uint32)
        self.seconds = numpy.zeros(len(self.phases))
        self.handle = self.library.bert_open(os.fsencode(folder), argument_of(mask), dtype.encode(),
                                             threads, self.text)
        if not self.handle:
            raise Failed(self.text.value.decode(errors="replace"))

    def __call__(self):
        if self.library.bert_run(self.handle, self.ids.ctypes.data, self.counts.ctypes.data, len(self.counts),
                                 self.seconds.ctypes.data, self.text):
            raise Failed(self.text.value.decode(errors="replace"))

    def states(self):
        ret = numpy.empty((self.tokens, self.size), numpy.float32)
        self.library.bert_states(self.handle, ret.ctypes.data)
        return ret

    def shares(self):
        """{phase: its part of the time}."""
        return dict(zip(self.phases, (self.seconds / self.seconds.sum()).tolist()))

    def close(self):
        self.library.bert_close(self.handle)
        self.handle = None
