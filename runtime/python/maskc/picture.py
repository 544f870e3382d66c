# SPDX-License-Identifier: Apache-2.0
"""show(): what a mask looks like, in a terminal and in a notebook."""
import re
import struct
import tempfile
import zlib

from ._library import Error
from .kernel import Kernel, read_mask, run_for_mask, shape_words, write_argument
from .masks import mask_argument

MOST = 512  # pixels a side
MOST_ENTRIES = 1 << 28  # of a mask, which a picture makes an array
ON, OFF = (32, 74, 135), (244, 244, 240)


class Picture:
    """A mask's structure as text, and as a PNG where a notebook asks. A longer mask than the picture allows has the text only."""

    def __init__(self, text, made, words):
        self.text, self.made, self.words = text, made, words  # as write_argument() and `maskc make` take them
        self.png = None

    def __repr__(self):
        return self.text

    def _repr_png_(self):
        if self.png is None and entries(self.text) <= MOST_ENTRIES:
            with tempfile.TemporaryDirectory(prefix="maskc-") as folder:
                bits = read_mask(write_argument(self.made, folder), *self.words)
            self.png = png_of(shares(bits.reshape(-1, *bits.shape[-2:])[0]))
        return self.png

    def save(self, path):
        """A PNG of the first head."""
        png = self._repr_png_()
        if png is None:
            raise Error(2, f"the mask has {entries(self.text)} entries in all heads, a picture is made of {MOST_ENTRIES}; `maskc show -o` draws longer masks")
        with open(path, "wb") as f:
            f.write(png)


def entries(text):
    """Entries of all heads, as the first line of `maskc show` gives their numbers."""
    n, heads, layers = (int(x) for x in re.search(r": (\d+) x \d+,\s+(\d+)\s+heads?,\s+(\d+)\s+layer", text).groups())
    return layers * heads * n * n


def shares(bits):
    """Active share of each pixel, at most MOST a side."""
    import numpy
    n = len(bits)
    size = min(n, MOST)
    edges = numpy.arange(size) * n // size
    sums = numpy.add.reduceat(numpy.add.reduceat(bits, edges, 1, numpy.uint32), edges, 0, numpy.float64)
    widths = numpy.diff(numpy.append(edges, n))
    return sums / numpy.outer(widths, widths)


def png_of(share):
    """PNG bytes of a square picture; a pixel with anything active is seen."""
    import numpy
    seen = numpy.where(share > 0, 0.25 + 0.75 * share, 0)[..., None]
    rgb = (numpy.array(OFF) * (1 - seen) + numpy.array(ON) * seen).round().astype(numpy.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in rgb)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    size = len(share)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def show(mask, n: int | None = None, heads: int | None = None) -> Picture:
    """Density and structure of a mask (as compile() takes it, or a Kernel), and a picture in a notebook."""
    made, words = (None, mask) if isinstance(mask, Kernel) else mask_argument(mask, n, heads), shape_words(n, heads)
    with tempfile.TemporaryDirectory(prefix="maskc-") as folder:
        return Picture(run_for_mask(write_argument(made, folder), folder, "show", *words), made, words)
