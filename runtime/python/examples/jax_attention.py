#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A compiled mask in JAX, on the CPU: under jit and with gradients by jax.ffi, and without a build by DLPack. README.md has the page.

needs: python3 with jax, numpy and maskc; a C++ compiler (g++, or $CXX).
"""
import ctypes
import functools
import os
import pathlib
import subprocess
import tempfile

import jax
import jax.numpy as jnp
import numpy

import maskc
from maskc import _library

HERE = pathlib.Path(__file__).resolve().parent


def build(folder):
    """Compiles jax_ffi.cpp beside the libmaskc that Python has loaded, and registers its two targets."""
    path, library = pathlib.Path(folder) / "maskc_jax.so", _library.library_path()
    subprocess.run([os.environ.get("CXX", "g++"), "-std=c++17", "-O2", "-w", "-shared", "-fPIC", f"-I{HERE.parents[2]}", f"-I{jax.ffi.include_dir()}",
                    HERE / "jax_ffi.cpp", library, f"-Wl,-rpath,{library.parent}", "-o", path], check=True)
    lib = ctypes.CDLL(str(path))
    for name in ("forward", "backward"):
        jax.ffi.register_ffi_target(f"maskc_{name}", jax.ffi.pycapsule(getattr(lib, f"maskc_jax_{name}")), platform="cpu")


def numbers(kernel, scale):
    return {"kernel": numpy.int64(kernel.handle.value), "scale": numpy.float64(kernel.default_scale if scale is None else scale)}


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5))
def attention(q, k, v, lengths, kernel, scale=None):
    """O [B, N, H, D] of q, k, v [B, N, H, D] and lengths int32 [B]; scale: 1/sqrt(D) where None."""
    return attention_forward(q, k, v, lengths, kernel, scale)[0]


def attention_forward(q, k, v, lengths, kernel, scale):
    b, n, h, _ = q.shape
    shapes = jax.ShapeDtypeStruct(q.shape, q.dtype), jax.ShapeDtypeStruct((b, h, n), jnp.float32)
    out, lse = jax.ffi.ffi_call("maskc_forward", shapes)(q, k, v, lengths, **numbers(kernel, scale))
    return out, (q, k, v, lengths, out, lse)


def attention_backward(kernel, scale, kept, grad):
    q, k, v, lengths, out, lse = kept
    shapes = (jax.ShapeDtypeStruct(q.shape, q.dtype),) * 3
    grads = jax.ffi.ffi_call("maskc_backward", shapes)(grad, q, k, v, lengths, out, lse, **numbers(kernel, scale))
    return (*grads, None)


attention.defvjp(attention_forward, attention_backward)


def reference(q, k, v, lengths, bits):
    """The same by JAX's own operations."""
    n = q.shape[1]
    there = jnp.arange(n)[None] < lengths[:, None]
    active = bits[None] & there[:, None, :, None] & there[:, None, None]
    s = jnp.where(active, jnp.einsum("bihd,bjhd->bhij", q, k) / q.shape[-1] ** 0.5, -1e30)
    return jnp.einsum("bhij,bjhd->bihd", jnp.where(active, jax.nn.softmax(s), 0), v)


def difference(a, b):
    return float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b))


def main():
    n, heads, d = 256, 4, 32
    kernel = maskc.compile("window(16)|global(0)", n=n, heads=heads, head_dim=d)
    keys = jax.random.split(jax.random.key(1), 4)
    q, k, v, weight = (jax.random.normal(key, (2, n, heads, d)) for key in keys)
    lengths, bits = jnp.array([n, 100], jnp.int32), jnp.array(kernel.mask[0])
    with tempfile.TemporaryDirectory() as folder:
        build(folder)
        step = jax.jit(jax.value_and_grad(lambda q, k, v: (attention(q, k, v, lengths, kernel) * weight).sum(), (0, 1, 2)))
        truth = jax.value_and_grad(lambda q, k, v: (reference(q, k, v, lengths, bits) * weight).sum(), (0, 1, 2))
        (ours, grads), (theirs, wanted) = step(q, k, v), truth(q, k, v)
    worst = max(difference(a, b) for a, b in zip(grads, wanted))
    print(f"jax.ffi under jit: value {float(ours):.4f}, JAX's own {float(theirs):.4f}; gradients differ by {worst:.1e}")
    first = [numpy.asarray(t).transpose(0, 2, 1, 3) for t in (q, k, v)]  # DLPack: JAX's own memory, no copy
    out = jnp.asarray(maskc.attention(*first, kernel, lengths=numpy.asarray(lengths))).transpose(0, 2, 1, 3)
    away = difference(out, reference(q, k, v, lengths, bits))
    print(f"arrays through DLPack, forward: differs by {away:.1e}")
    return int(not (worst < 1e-5 and away < 1e-5))


if __name__ == "__main__":
    raise SystemExit(main())
