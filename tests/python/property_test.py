#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is attention on torch tensors, forward and every gradient, what its definition says in float64: random masks, dtypes,
strides, lengths, packed, padded on the left, dropout and biases? At least 300 cases of one seed, which is printed.

usage: property_test.py [--cases N] [--seed S] [--device cpu|cuda]
"""
import random
import sys

from common import DEVICE, Case, active_keys, attend, cmocka_count, error, gradients, needs_torch
import maskc

CASES, SEED = 320, 1
N, HEADS, D = 37, 3, 32  # D the rows that a dropped-out matrix can be read through
MASKS = ("random", "window(4)|global(0)", "causal", "distance(1,2,5)|diagonal(0)", "blocks(3)&stride(2)|rows(3)")
KINDS = [(dtype, bias) for dtype in ("float32", "bfloat16", "float16") for bias in (None, "add", "scale")]


class Kernels:
    """One for each mask, dtype and bias that a case asks for."""

    def __init__(self, seed):
        self.random, self.made, self.seed = random.Random(seed), {}, seed

    def mask(self, name):
        import torch
        if name != "random":
            return name
        bits = torch.rand(HEADS, N, N, device="cpu", generator=torch.Generator("cpu").manual_seed(self.seed)) < 0.3
        bits[:, 7] = False  # queries without a key
        return bits

    def take(self, name, dtype, bias):
        key = (name, dtype, bias)
        if key not in self.made:
            self.made[key] = maskc.compile(self.mask(name), n=N, heads=HEADS, head_dim=D, dtype=dtype, bias=bias, dropout=bias is None)
        return self.made[key]


def strided(draw, b, n, dtype):
    """[B, H, N, D] of a random layout; not all can be read in place."""
    import torch
    layout = draw.choice(("bhnd", "bnhd", "qkv", "nbhd", "odd", "last"))
    if layout == "bhnd":
        return torch.randn(b, HEADS, n, D).to(dtype)
    if layout == "bnhd":
        return torch.randn(b, n, HEADS, D).to(dtype).transpose(1, 2)
    if layout == "qkv":
        return torch.randn(b, n, 3, HEADS, D).to(dtype)[:, :, 1].transpose(1, 2)
    if layout == "nbhd":
        return torch.randn(n, b, HEADS, D).to(dtype).permute(1, 2, 0, 3)
    if layout == "odd":
        return torch.randn(b, HEADS, n, D + 1).to(dtype)[..., 1:]
    return torch.randn(b, HEADS, D, n).to(dtype).transpose(2, 3)


def placed(draw, kind, b, n):
    """(lengths, starts) of the sequences; None where all is there."""
    if kind == "whole":
        return None, None
    lengths = [draw.randint(0, n) for _ in range(b)]
    return lengths, [draw.randint(0, n - l) for l in lengths] if kind == "left" else None


def spread(x, b, n, lengths, starts):
    """[B, H, n, n]: x's corner where each sequence lies, 0 elsewhere."""
    import torch
    wide = torch.zeros(b, HEADS, n, n, dtype=x.dtype)
    for k in range(b):
        l = n if lengths is None else lengths[k]
        s = 0 if starts is None else starts[k]
        wide[k, :, s:s + l, s:s + l] = x[:, :l, :l]
    return wide


def active_of(kernel, *place):
    return spread(active_keys(kernel), *place)


@needs_torch
class PropertyTest(Case):
    def one(self, draw, kernels):
        """Runs one case; returns what it was."""
        import torch
        name, (dtype, bias) = draw.choice(MASKS), draw.choice(KINDS)
        kernel, kind = kernels.take(name, dtype, bias), draw.choice(("whole", "right", "left", "packed"))
        b, n, scale = draw.randint(1, 3), draw.randint(1, N), draw.choice((None, 0.3))
        if kind == "packed":
            return self.packed(draw, kernel, b) or f"{kernel} packed"
        lengths, starts = placed(draw, kind, b, n)
        q, k, v, grad = (strided(draw, b, n, getattr(torch, dtype)) for _ in range(4))
        q, k, v = (t.requires_grad_() for t in (q, k, v))
        x = torch.randn(HEADS, N, N, requires_grad=True) if bias else None
        tensor = torch.tensor
        out, lse = maskc.attention(q, k, v, kernel, lengths=tensor(lengths) if lengths else None, starts=tensor(starts) if starts else None,
                                   scale=scale, bias=x, return_lse=True)
        out.backward(grad)
        got = [out, q.grad, k.grad, v.grad] + ([x.grad] if bias else [])
        active = active_of(kernel, b, n, lengths, starts)
        label = f"{name} {dtype} bias={bias} {kind} b={b} n={n} lengths={lengths} starts={starts}"
        self.judge(label, got, (q, k, v, grad), active, scale or D ** -0.5, x, kernel, (b, n, lengths, starts))
        wanted = attend(*(t.detach().double() for t in (q, k, v)), active, scale or D ** -0.5,
                        bias=spread(x.detach().double(), b, n, lengths, starts) if bias else None, kind=bias)[1]
        finite = wanted.isfinite()
        self.assertTrue(torch.equal(finite, lse.isfinite()), label)
        self.assertLess(error(lse[finite], wanted[finite]), 1e-5 if dtype == "float32" else 1e-2, label)
        return label

    def judge(self, label, got, tensors, active, scale, x, kernel, place):
        """Against float64: 1e-5 in float32, else 1.5 x the plain way's error."""
        import torch
        dtype = tensors[0].dtype

        def ways(work, rounded):
            ts = [t.detach().to(work) for t in tensors]
            wide = spread(x.detach().to(work), *place) if x is not None else None
            made = gradients(ts[0], ts[1], ts[2], active, scale, ts[3], rounded, wide, kernel.bias or "add")
            return made
        truth = ways(torch.float64, lambda t: t)
        plain = ways(torch.float32, lambda t: t.to(dtype).float()) if dtype != torch.float32 else None
        if x is not None:  # X's own gradient, of sequences that lie elsewhere
            truth[4], plain = self.moved(truth, tensors, x, kernel, place, scale), None if plain is None else plain
        for k, a in enumerate(got):
            most = 1e-5 if plain is None else 1.5 * error(plain[k], truth[k]) + 1e-5 if k < 4 else 2e-2
            self.assertLess(error(a, truth[k]), most, f"{label}: {('O', 'dQ', 'dK', 'dV', 'dX')[k]}")

    def moved(self, truth, tensors, x, kernel, place, scale):
        """dX of the definition: each sequence brought to the front, and summed."""
        import torch
        b, n, lengths, starts = place
        total, mask = torch.zeros(HEADS, N, N, dtype=torch.float64), active_keys(kernel)
        for k in range(b):
            l = n if lengths is None else lengths[k]
            s = 0 if starts is None else starts[k]
            ts = [t.detach().double()[k:k + 1, :, s:s + l] for t in tensors]
            total[:, :l, :l] += gradients(*ts[:3], mask[:, :l, :l], scale, ts[3], bias=x.detach().double()[:, :l, :l], kind=kernel.bias)[4]
        return total

    def packed(self, draw, kernel, b):
        """The same bits as each sequence alone."""
        import torch
        dtype, lengths = kernel.torch_dtype, [draw.randint(0, N) for _ in range(b)]
        offsets = torch.tensor([0] + lengths).cumsum(0).to(draw.choice((torch.int32, torch.int64)))
        total = sum(lengths)
        q, k, v = (torch.randn(total, HEADS, D).to(dtype).requires_grad_() for _ in range(3))
        grad, x = torch.randn(draw.choice((total, 1)), draw.choice((HEADS, 1)), D).to(dtype), torch.randn(HEADS, N, N) if kernel.bias else None
        grad = grad.expand(total, HEADS, D)
        out, lse = maskc.attention(q, k, v, kernel, offsets=offsets, bias=x, return_lse=True)
        self.assertEqual((out.shape, lse.shape), (q.shape, (HEADS, total)))
        grads = torch.autograd.grad(out, (q, k, v), grad)
        for s, l in zip(offsets.tolist(), lengths):
            one = [t[s:s + l].detach().transpose(0, 1)[None].requires_grad_() for t in (q, k, v)]
            alone = maskc.attention(*one, kernel, bias=x)
            alone_grads = torch.autograd.grad(alone, one, grad[s:s + l].transpose(0, 1)[None])
            for a, b_ in zip((out, *grads), (alone, *alone_grads)):
                self.assertTrue(torch.equal(a[s:s + l].transpose(0, 1)[None], b_), f"packed {kernel} {lengths}")

    def test_cases(self):
        import torch
        draw, kernels, seen = random.Random(SEED), Kernels(SEED), []
        torch.manual_seed(SEED)
        print(f"seed {SEED}, {CASES} cases on {DEVICE}")
        for _ in range(CASES):
            seen.append(self.one(draw, kernels))
        self.assertGreaterEqual(len(seen), min(CASES, 300))
        self.assertGreaterEqual(len(kernels.made), min(CASES, 300) // 8)

    def test_dropout_is_what_it_drops(self):
        """Through V = 1 the dropped-out probabilities show; with them, the gradients are the definition's."""
        import torch
        kernel = maskc.compile("window(9)", n=D, heads=HEADS, head_dim=D, dropout=True)
        q, k, v = (torch.randn(2, HEADS, D, D, requires_grad=True) for _ in range(3))
        grad, eye = torch.randn(2, HEADS, D, D), torch.eye(D).expand(2, HEADS, D, D)
        p, met = (maskc.attention(q, k, eye, kernel, dropout_p=rate, seed=11).detach() for rate in (0.0, 0.25))
        keep = (met > 0) / (1 - round(65536 * 0.25) / 65536)
        self.assertLess(error(met, (p * keep).double()), 1e-5)
        self.assertLess(abs((met > 0).sum() / (p > 0).sum() - 0.75), 0.05)
        doubles = [t.detach().double().requires_grad_() for t in (q, k, v)]
        active = active_keys(kernel)
        probabilities = attend(*doubles, active, D ** -0.5)[2]
        truth = (probabilities * keep) @ doubles[2]
        out = maskc.attention(q, k, v, kernel, dropout_p=0.25, seed=11)
        pairs = zip((out, *torch.autograd.grad(out, (q, k, v), grad)),
                    (truth, *torch.autograd.grad(truth, doubles, grad.double())))
        for a, b in pairs:
            self.assertLess(error(a, b), 1e-5)
        torch.manual_seed(5)
        first, second = (maskc.attention(q, k, v, kernel, dropout_p=0.25) for _ in range(2))
        torch.manual_seed(5)
        again = maskc.attention(q, k, v, kernel, dropout_p=0.25)
        self.assertTrue(torch.equal(first, again) and not torch.equal(first, second))


if __name__ == "__main__":
    words = iter(sys.argv[1:])
    for word in words:
        CASES, SEED = (int(next(words)), SEED) if word == "--cases" else (CASES, int(next(words)))
    cmocka_count.run_cases()
