# SPDX-License-Identifier: Apache-2.0
"""Files of learned masks, and what their parameters mean, by the definitions; and the toy that learns them: for learn_command_test.py
and learn_settle_test.py."""
import ctypes
import ctypes.util
import json
import math
import os
import struct
import subprocess

from pretrain_toy import Toy


def read_tensors(path):
    """Name to (shape, numbers); the metadata."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    kinds = {"F32": "f", "F64": "d", "I64": "q", "U8": "B"}
    tensors = {}
    for name, t in header.items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            count = math.prod(t["shape"])
            tensors[name] = t["shape"], struct.unpack(f"<{count}{kinds[t['dtype']]}", data[8 + size + begin:8 + size + end])
    return tensors, header.get("__metadata__")


def forge_state(path, change):
    """A state with other bytes and a right checksum. change(header, data) alters what it is given. False: no library has the sum."""
    name = ctypes.util.find_library("xxhash")
    if not name:
        return False
    class Sum(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]
    library = ctypes.CDLL(name)
    library.XXH3_128bits.restype, library.XXH3_128bits.argtypes = Sum, [ctypes.c_char_p, ctypes.c_size_t]
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + size]), bytearray(raw[8 + size:])
    change(header, data)
    header["__metadata__"]["sum"] = "0" * 32
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    forged = struct.pack("<Q", len(text)) + text + bytes(data)
    found = library.XXH3_128bits(forged, len(forged))
    path.write_bytes(forged.replace(b"0" * 32, b"%016x%016x" % (found.high, found.low), 1))
    return True


def read_mask(path):
    """The bytes of a boolean .npy."""
    data = path.read_bytes()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


def mask_of(shape, alpha, kind, n):
    """Without noise: alpha above 0, by the definition of each kind; a byte an entry."""
    distances, code = kind[0] == "dam-s", "--dam-code" in kind
    rest = shape[1:] if "--per-layer" in kind else shape
    each = math.prod(rest[1:])
    ret = bytearray()
    for head in range(len(alpha) // each):
        a = alpha[head * each:(head + 1) * each]
        for i in range(n):
            for j in range(n):
                d = abs(i - j)
                if not distances:
                    on = a[i * n + j] > 0
                elif code:
                    on = a[2 * d] > a[2 * d + 1]
                else:
                    on = 0 in (i, j) or n - 1 in (i, j) or a[d] > 0
                ret.append(on)
    return bytes(ret)


def logit_of(alpha, kind, n, i, j):
    """Returns the parameter of a head that decides entry (i, j); None on a border that is forced on."""
    d = abs(i - j)
    if kind[0] != "dam-s":
        return alpha[i * n + j]
    if "--dam-code" in kind:
        return alpha[2 * d] - alpha[2 * d + 1]
    return None if 0 in (i, j) or n - 1 in (i, j) else alpha[d]


def write_alpha(path, kind, shape, values):
    """As alpha_write() does."""
    data = struct.pack(f"<{len(values)}f", *values)
    header = json.dumps({"__metadata__": {"dam": kind}, "alpha": {"dtype": "F32", "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def alpha_state(toy, run):
    tensors, _ = read_tensors(toy.states(run)[-1])
    return [tensors[n][1] for n in ("alpha", "alpha_first_moment", "alpha_second_moment")]


def same(toy, a, b):
    assert toy.weights(a) == toy.weights(b), f"{a} and {b} have other weights"
    assert toy.moments(a) == toy.moments(b), f"{a} and {b} have other moments"
    assert toy.losses(a) == toy.losses(b), f"{a} and {b} have other losses"
    assert alpha_state(toy, a) == alpha_state(toy, b), f"{a} and {b} have another alpha"
    for name in ("alpha.safetensors", "config.json"):
        assert (toy.work / a / name).read_bytes() == (toy.work / b / name).read_bytes(), name


class LearnToy(Toy):
    """With maskc beside maskbert."""

    def __init__(self, maskc, *to):
        super().__init__(*to)
        self.program = maskc

    def maskc(self, *command):
        """Returns its output. It cannot see rates stored for this machine, like runs."""
        made = subprocess.run([self.program, *map(str, command)], cwd=self.work, capture_output=True, text=True, check=False,
                              env={**os.environ, "XDG_CACHE_HOME": str(self.work / "no-cache")})
        assert made.returncode == 0, f"{command}: {made.stderr}"
        return made.stdout
