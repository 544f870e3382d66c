#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of `bare` in its root folder: no compiler is there, and the installed wheel, with all its kernels compiled ahead, does without."""
import itertools
import os
import pathlib
import re
import subprocess
import sys

import numpy
import torch

import maskc

MASKS = ("star", "logsparse", "strided", "fixed", "longformer", "bigbird", "blockbert-2", "blockbert-3")
COMPILER = re.compile(r"(.*-)?(cc|gcc|g\+\+|c\+\+|clang|clang\+\+|tcc|zig|icx|cc1|ld|lld|as)(-[0-9.]+)?")
N, HEADS, D = 256, 12, 64
KINDS = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 3e-3}


def compilers():
    """Programs of the root that bear a compiler's name."""
    for folder, below, files in os.walk("/"):
        if folder == "/":
            below[:] = [name for name in below if name not in ("proc", "dev")]
        for name in files:
            if COMPILER.fullmatch(name) and os.access(os.path.join(folder, name), os.X_OK):
                yield os.path.join(folder, name)


def run(*arguments, **environment):
    return subprocess.run(arguments, capture_output=True, text=True, check=False, env=os.environ | environment)


def must(holds, text):
    if not holds:
        sys.exit(f"bare_check: {text}")


def eager(q, k, v, active):
    scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~active, -torch.inf)
    return torch.softmax(scores, -1).nan_to_num() @ v


def compile_and_verify(mask):
    path = f"/tmp/{mask}.mkb"
    for command in (("compile", mask, "-n", str(N), "--heads", str(HEADS), "-o", path), ("verify", path)):
        done = run("maskc", *command)
        must(done.returncode == 0, f"maskc {' '.join(command)}: {done.stdout}{done.stderr}")
    return maskc.load(path)


def numpy_agrees(kernel):
    q, k, v = (numpy.random.default_rng(s).standard_normal((1, HEADS, N, D)).astype("f4") for s in range(3))
    truth = eager(*(torch.from_numpy(t).double() for t in (q, k, v)), torch.from_numpy(kernel.mask[0]))
    return numpy.abs(maskc.attention(q, k, v, kernel) - truth.numpy()).max() < 1e-5


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.out = torch.nn.Linear(HEADS * D, 3 * HEADS * D), torch.nn.Linear(HEADS * D, HEADS * D)

    def forward(self, x, attend):
        q, k, v = self.into(x).unflatten(-1, (3, HEADS, D)).permute(2, 0, 3, 1, 4)
        return self.out(attend(q, k, v).transpose(1, 2).flatten(2))


def trains(kernel):
    """The gradients of a step are those of attention written out, and the step lowers the loss."""
    torch.manual_seed(1)
    layer, x, active = Layer(), torch.randn(2, N, HEADS * D), torch.from_numpy(kernel.mask[0])
    ways, losses, grads = (lambda *t: maskc.attention(*t, kernel), lambda *t: eager(*t, active)), [], []
    for attend in ways:
        layer.zero_grad()
        losses.append(layer(x, attend).square().mean())
        losses[-1].backward()
        grads.append(torch.cat([p.grad.flatten() for p in layer.parameters()]))
    with torch.no_grad():
        for p in layer.parameters():
            p -= 0.1 * p.grad
        after = layer(x, ways[0]).square().mean()
    return (grads[0] - grads[1]).norm() < 1e-4 * grads[1].norm() and after < losses[0]


def whole_set():
    """Makes and runs each kernel that was compiled ahead for this machine's level; returns their number."""
    count = 0
    for dtype, d, dropout in itertools.product(KINDS, (32, 64, 80, 96, 128), (False, True)):
        kernel = maskc.compile("window(5) | global(0)", n=64, heads=2, head_dim=d, dtype=dtype, dropout=dropout)
        q, k, v = (torch.randn(1, 2, 64, d).to(getattr(torch, dtype)) for _ in range(3))
        error = (maskc.attention(q, k, v, kernel) - eager(*(t.double() for t in (q, k, v)), torch.from_numpy(kernel.mask[0]))).abs().max()
        must(error < KINDS[dtype], f"{dtype}, D={d}: off by {error:.1e}")
        count += 1
    return count


def main():
    must(not list(compilers()), f"the root has compilers: {list(compilers())}")
    refused = run("maskc", "compile", "star", "-n", "64", "-o", "/tmp/refused.mkb", MASKC_AHEAD="none")
    must(refused.returncode == 3 and "install a compiler" in refused.stderr, f"without kernels compiled ahead: {refused.returncode} {refused.stderr}")
    for mask in MASKS:
        kernel = compile_and_verify(mask)
        must(numpy_agrees(kernel), f"{mask}: not the definition")
        must(trains(kernel), f"{mask}: a step does not train")
    kernels = whole_set()
    must(run("maskbert", "--version").returncode == 0, "maskbert does not start")
    must(not pathlib.Path("/tmp/.cache/maskc").exists(), "something was compiled")
    print(f"no compiler; {len(MASKS)} of {len(MASKS)} masks compiled, verified, run, trained one step; {kernels} other kernels compiled and run; "
          f"{run('maskc', 'devices').stdout.split('ahead ', 1)[-1].strip().splitlines()[0].strip()}")


if __name__ == "__main__":
    main()
