# SPDX-License-Identifier: Apache-2.0
"""show(): what a mask looks like, in a terminal and in a notebook."""
import struct
import tempfile
import zlib

from .kernel import Kernel, as_argument, read_mask, run_for_mask, shape_words

MOST = 512  # pixels a side
ON, OFF = (32, 74, 135), (244, 244, 240)


class Picture:
    """A mask's structure as text, and as a PNG where a notebook asks."""

    def __init__(self, text, bits):
        self.text, self.bits = text, bits  # bits: bool [heads, n, n]

    def __repr__(self):
        return self.text

    def _repr_png_(self):
        return png_of(shares(self.bits[0]))

    def save(self, path):
        """A PNG of the first head."""
        with open(path, "wb") as f:
            f.write(self._repr_png_())


def shares(bits):
    """Active share of each pixel, at most MOST a side."""
    import numpy
    n = len(bits)
    size = min(n, MOST)
    edges = numpy.arange(size) * n // size
    sums = numpy.add.reduceat(numpy.add.reduceat(bits.astype(numpy.float64), edges, 0), edges, 1)
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
    if isinstance(mask, Kernel):
        mask = mask.mask
    words = shape_words(n, heads)
    with tempfile.TemporaryDirectory(prefix="maskc-") as folder:
        argument = as_argument(mask, n, heads, folder)
        text = run_for_mask(argument, folder, "show", *words)
        bits = read_mask(argument, *words)
        return Picture(text, bits.reshape(-1, *bits.shape[-2:]))
