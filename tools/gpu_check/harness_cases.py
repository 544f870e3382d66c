# SPDX-License-Identifier: Apache-2.0
"""Problems of the stage harness: the masks that a harness of prototypes names, as masks of ours, with the kernels of its
folder. 12 heads, bf16.
"""
import dataclasses

from gpu_check import timing_cases
from gpu_check.timing_cases import HEADS, OURS

DTYPE, FAMILY, TARGET = "bf16", "cuda_hopper", "sm_90a"
PASSES = ("forward", "backward")
TILES = "tiles"  # a mask from a file: one in ten tiles of 64 x 32, half of them under patterns
WORD = (1 << 64) - 1


@dataclasses.dataclass(frozen=True)
class Problem:
    """One mask and size on both sides."""
    mask: str  # of ours
    name: str  # of the harness
    length: int
    batch: int
    head_dim: int
    kernels: tuple  # files of the harness without .cubin: forward, dQ, dK and dV

    @property
    def title(self):
        return f"{self.name} n={self.length} D={self.head_dim}"

    @property
    def key(self):
        """Key of its files in a task of the measuring process."""
        return self.mask, self.length, self.batch, self.head_dim, DTYPE

    def case(self, direction):
        """Our kernel alone, as the stage time measures it."""
        sizes = timing_cases.Problem(self.length, self.batch, self.head_dim, DTYPE, (self.mask,), ())
        return timing_cases.Case(sizes, direction, ((OURS, self.mask),), self.name)

    def options(self, mask):
        return [mask, "-n", self.length, "--heads", HEADS, "--dtype", DTYPE, "--head-dim", self.head_dim,
                "--family", FAMILY, "--target", TARGET]


WIDE = ("f64_k128_w3t", "q64_k128_w2", "k64_k128_w2s")
FOUR = ("f64_k64_w4", "q64_w1b2r", "k64_w1b2r")
FOUR_WIDE = ("f64_k64_w4", "q64_k128_w2", "k64_k128_w2s")
NARROW = ("f64_k64_w1b3r", "q64_w1b2r", "k64_w1b2r")
PROBLEMS = (
    Problem("dense", "dense", 2048, 32, 64, WIDE),
    Problem("longformer-cls(64,2)", "longformer", 8192, 8, 64, NARROW),
    Problem("causal", "causal", 8192, 8, 64, WIDE),
    Problem("window(256)", "window256", 8192, 8, 64, FOUR),
    Problem("blocks(32)", "blocks", 8192, 8, 64, FOUR_WIDE),
    Problem("dense", "dense", 2048, 16, 128, ("f128_k128_w2", "q128_w2", "k128_k64_w2s")),
    Problem(TILES, "tiles", 8192, 8, 64, NARROW),
)


# ---- the mask of tiles ----

def hashed(a, b):
    x = ((a << 32 | b) * 0x9e3779b97f4a7c15) & WORD
    x ^= x >> 29
    return (x * 0xbf58476d1ce4e5b9 & WORD) >> 32


def word_of(row, tile, choice):
    """Active columns of a row in a chosen tile: all, or a pattern."""
    return 0xffffffff if choice >> 8 & 1 else hashed(row * 7 + 3, tile + 1000003)


def tile_rows(length):
    """Rows of the mask, a byte an entry. The length is a multiple of 64."""
    for block in range(length // 64):
        chosen = [(t, x) for t in range(length // 32) for x in [hashed(block, t)] if x % 10 == 0]
        for row in range(64 * block, 64 * block + 64):
            made = bytearray(length)
            for tile, choice in chosen:
                made[32 * tile:32 * tile + 32] = f"{word_of(row, tile, choice):032b}"[::-1].encode().translate(BITS)
            yield bytes(made)


BITS = bytes(k & 1 for k in range(256))  # of the digits 0 and 1


def write_tiles(path, length):
    """The mask as a .npy of booleans."""
    header = f"{{'descr': '|b1', 'fortran_order': False, 'shape': ({length}, {length}), }}"
    header = header.ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        file.writelines(tile_rows(length))
