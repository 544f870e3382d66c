# SPDX-License-Identifier: Apache-2.0
"""Arrays as files, without numpy: .npy written and read, float32 tensors of a .safetensors file read."""
import array
import ast
import json
import math
import struct

import programs

TYPES = {"<f4": "f", "|b1": "b"}


def write_npy(path, kind, shape, values):
    """kind: "<f4" or "|b1"; values row by row."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = array.array(TYPES[kind], values)
    assert len(data) == math.prod(shape)
    programs.write_whole(path, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data.tobytes())


def read_npy(path):
    """(shape, values) of a file of float32 or bool, row by row."""
    raw = path.read_bytes()
    try:
        assert raw[:6] == b"\x93NUMPY" and raw[6] in (1, 2)
        size, begin = (struct.unpack_from("<H", raw, 8)[0], 10) if raw[6] == 1 else (struct.unpack_from("<I", raw, 8)[0], 12)
        header = ast.literal_eval(raw[begin:begin + size].decode("latin1"))
        data = array.array(TYPES[header["descr"]], raw[begin + size:])
        assert len(data) == math.prod(header["shape"]) and not header["fortran_order"]
    except (AssertionError, KeyError, ValueError, IndexError, SyntaxError, struct.error):
        raise programs.Fatal(2, f"{path}: a .npy file of float32 or bool in C order is expected") from None
    return tuple(header["shape"]), data


def read_safetensors(path, name):
    """(shape, values) of a float32 tensor."""
    raw = path.read_bytes()
    try:
        size = struct.unpack_from("<Q", raw)[0]
        entry = json.loads(raw[8:8 + size])[name]
        begin, end = entry["data_offsets"]
        data = array.array("f", raw[8 + size + begin:8 + size + end])
        assert entry["dtype"] == "F32" and len(data) == math.prod(entry["shape"])
    except (AssertionError, KeyError, TypeError, ValueError, struct.error):
        raise programs.Fatal(2, f"{path}: a .safetensors file with a float32 tensor '{name}' is expected") from None
    return tuple(entry["shape"]), data
