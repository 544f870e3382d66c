#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A compiled mask as an operator of ONNX Runtime, on the CPU: builds onnx_op.c, runs a model of one node. README.md has the page.

usage: onnx_attention.py [MASK]
needs: python3 with onnxruntime, onnx, numpy and maskc; a C compiler (cc, or $CC); ONNX Runtime's headers, which its Python
package does not carry: $ONNXRUNTIME_INCLUDE is the folder of onnxruntime_c_api.h.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

import maskc
from maskc import _library

HERE = pathlib.Path(__file__).resolve().parent


def build(folder):
    """Compiles onnx_op.c beside the libmaskc that Python has loaded: the path of a library for register_custom_ops_library."""
    headers, compiler = os.environ.get("ONNXRUNTIME_INCLUDE", ""), os.environ.get("CC", "cc")
    if not headers or not (pathlib.Path(headers) / "onnxruntime_c_api.h").is_file():
        raise maskc.Error(2, f"ONNXRUNTIME_INCLUDE is '{headers}': expected the folder of onnxruntime_c_api.h")
    if not shutil.which(compiler):
        raise maskc.Error(3, f"no C compiler '{compiler}': set CC")
    path, library = pathlib.Path(folder) / "maskc_onnx.so", _library.library_path()
    done = subprocess.run([compiler, "-std=c11", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{HERE.parents[2]}", "-isystem", headers,
                           HERE / "onnx_op.c", library, f"-Wl,-rpath,{library.parent}", "-o", path], check=False)
    if done.returncode:
        raise maskc.Error(3, f"{compiler} does not compile onnx_op.c with the headers of {headers}")
    return path


def model(kernel, heads="H", head_dim="D", padded=True):
    """One node: q, k, v [B, N, H, D] and, where padded, lengths int32 [B]; kernel is the path of a kernel file."""
    tensor, kinds = onnx.helper.make_tensor_value_info, onnx.TensorProto
    q, k, v, out = (tensor(name, kinds.FLOAT, ["B", "N", heads, head_dim]) for name in ("q", "k", "v", "out"))
    given = [q, k, v] + [tensor("lengths", kinds.INT32, ["B"])] * padded
    node = onnx.helper.make_node("Attention", [t.name for t in given], ["out"], domain="maskc", kernel=str(kernel))
    graph = onnx.helper.make_graph([node], "attention", given, [out])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("maskc", 1)], ir_version=8)


def session(library, proto, threads=0):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.register_custom_ops_library(str(library))
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def reference(q, k, v, lengths, mask):
    """The definition in float64; mask is bool [H, n, n]."""
    q, k, v = (t.astype(numpy.float64).transpose(0, 2, 1, 3) for t in (q, k, v))
    there = numpy.arange(q.shape[2])[None] < lengths[:, None]
    active = mask[None] & there[:, None, :, None] & there[:, None, None]
    s = numpy.where(active, q @ k.swapaxes(2, 3) / q.shape[3] ** 0.5, -numpy.inf)
    most = s.max(-1, keepdims=True)
    p = numpy.exp(s - numpy.where(most > -numpy.inf, most, 0))
    return (p / numpy.maximum(p.sum(-1, keepdims=True), 1e-300) @ v).transpose(0, 2, 1, 3)


def inputs(batch, n, heads, head_dim):
    generator = numpy.random.default_rng(1)
    q, k, v = (generator.standard_normal((batch, n, heads, head_dim), numpy.float32) for _ in range(3))
    return {"q": q, "k": k, "v": v, "lengths": numpy.array([n] + [n * 2 // 5] * (batch - 1), numpy.int32)}


def main():
    parser = argparse.ArgumentParser(prog="onnx_attention.py", usage="onnx_attention.py [MASK]")
    parser.add_argument("mask", nargs="?", default="window(16)|global(0)")
    mask = parser.parse_args().mask
    n, heads, d = 256, 4, 32
    kernel, given = maskc.compile(mask, n=n, heads=heads, head_dim=d, forward_only=True), inputs(2, n, heads, d)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "kernel.mkb"
        kernel.save(path)
        out = session(build(folder), model(path, heads, d)).run(None, given)[0]
    wanted = reference(*given.values(), kernel.mask[0])
    away = float(numpy.linalg.norm(out - wanted) / numpy.linalg.norm(wanted))
    print(f"onnxruntime {onnxruntime.__version__}, {mask}: differs from numpy in float64 by {away:.1e}")
    return int(not away < 1e-5)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except maskc.Error as e:
        print(f"onnx_attention.py: {e}", file=sys.stderr)
        raise SystemExit(e.code) from None
