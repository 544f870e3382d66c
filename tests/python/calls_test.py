#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random calls of the package, right and wrong: is each right one what its definition says, and each wrong one refused in one line,
without a crash? Under the address sanitizer: tests/python/asan.

usage: calls_test.py [--calls N] [--seed S] [--device cpu|cuda]
"""
import collections
import random
import sys
import warnings

from common import KIND, Case, active_keys, attend, cmocka_count, error, needs_torch
import maskc

CALLS, SEED = 500, 1
N, HEADS, D = 40, 2, 16
MASK = "window(5)|global(0)"
KERNELS = {  # name: what differs
    "plain": {}, "dropout": {"dropout": True}, "add": {"bias": "add"}, "scale": {"bias": "scale"}, "bf16": {"dtype": "bfloat16"},
    "layers": {"mask": "layers 2\nlayer 0: " + MASK + "\nlayer 1: causal\n"},
}


READ_BY_THE_HOST = ("lengths", "starts", "offsets")


def new_kernel(name):
    options = {"mask": MASK, "n": N, "heads": HEADS, "head_dim": D} | KERNELS[name]
    return maskc.compile(options.pop("mask"), **options)


class Call:
    """One of attention() that is right; what makes it wrong comes after."""

    def __init__(self, draw, kernels):
        import torch
        self.draw, self.name = draw, draw.choice(list(kernels))
        self.kernel = kernels[self.name]
        self.batch, self.length, self.named = draw.randint(1, 3), draw.randint(1, N), {}
        self.rows = (self.batch, HEADS, self.length, D)
        kind = draw.choice(("whole", "right", "left", "packed"))
        if kind == "packed":
            lengths = [draw.randint(0, N) for _ in range(self.batch)]
            self.named["offsets"] = torch.tensor([0] + lengths).cumsum(0).to(draw.choice((torch.int32, torch.int64)))
            self.rows = (sum(lengths), HEADS, D)
        elif kind != "whole":
            lengths = [draw.randint(0, self.length) for _ in range(self.batch)]
            self.named["lengths"] = torch.tensor(lengths)
            if kind == "left":
                self.named["starts"] = torch.tensor([draw.randint(0, self.length - l) for l in lengths], dtype=torch.int32)
        self.tensors = [torch.randn(self.rows).to(self.kernel.torch_dtype) for _ in range(3)]
        if self.kernel.bias:
            self.named["bias"] = torch.randn(HEADS, N, N)
        if self.name == "layers":
            self.named["layer"] = draw.randint(0, 1)
        if self.name == "dropout" and draw.random() < 0.5:
            self.named |= {"dropout_p": 0.3, "seed": draw.randint(0, 99)}

    def put(self, **named):
        self.named |= named

    def change(self, change):
        """One of q, k, v, or all of them."""
        for k in self.draw.choice(((0,), (1,), (2,), (0, 1, 2))):
            self.tensors[k] = change(self.tensors[k])

    def places(self, name, *values):
        """lengths, starts or offsets with one wrong number."""
        import torch
        old = self.named.get(name)
        made = old.long() if old is not None else torch.zeros(self.batch + (name == "offsets"), dtype=torch.int64)
        made[self.draw.randrange(len(made))] = self.draw.choice(values)
        self.named.pop("offsets" if name != "offsets" else "lengths", None)
        self.named[name] = made


def wrong_ways():
    """{name: what makes a call wrong}."""
    import torch
    far = (-1, -2 ** 31, N + 1, 2 ** 31 - 1, 2 ** 40)
    return {
        "dtype": lambda c: c.change(lambda t: t.to(c.draw.choice((torch.float64, torch.float16, torch.int32, torch.bool, torch.complex64)))),
        "device": lambda c: c.tensors.__setitem__(c.draw.randrange(3), c.tensors[0].to("meta")),
        "rank": lambda c: c.change(lambda t: c.draw.choice((t[None], t[..., 0], t.flatten(), t.sum()))),
        "heads": lambda c: c.change(lambda t: torch.cat([t, t], 1)),
        "no heads": lambda c: c.change(lambda t: t[:, :0]),
        "head dim": lambda c: c.change(lambda t: t[..., :c.draw.choice((0, 1, 8, 15))]),
        "another length": lambda c: c.tensors.__setitem__(c.draw.choice((1, 2)), torch.zeros(c.rows[:-2] + (c.rows[-2] + 1, D), dtype=c.tensors[0].dtype)),
        "too long": lambda c: (c.named.pop("offsets", 0), c.named.pop("lengths", 0), c.named.pop("starts", 0),
                               c.tensors.__setitem__(slice(3), [torch.zeros(1, HEADS, N + c.draw.choice((1, 999)), D, dtype=c.tensors[0].dtype)] * 3)),
        "no tensor": lambda c: c.tensors.__setitem__(c.draw.randrange(1, 3), c.draw.choice((None, 3, "k", [1.0], object()))),
        "lengths": lambda c: c.places("lengths", *far),
        "lengths' size": lambda c: c.put(lengths=torch.zeros(c.batch + c.draw.choice((-1, 1, 7)), dtype=torch.int32)),
        "lengths' rank": lambda c: c.put(lengths=torch.zeros(c.batch, 1, dtype=torch.int32)),
        "lengths' dtype": lambda c: c.put(lengths=torch.zeros(c.batch, requires_grad=c.draw.random() < 0.5)),
        "lengths' device": lambda c: c.put(lengths=torch.zeros(c.batch, dtype=torch.int32, device="meta")),
        "lengths' kind": lambda c: c.put(lengths=c.draw.choice(("abc", {}, object(), 1.5, [None]))),
        "starts": lambda c: c.places("starts", *far),
        "starts' size": lambda c: c.put(starts=torch.zeros(c.batch + 1, dtype=torch.int32)),
        "offsets": lambda c: c.places("offsets", *far),
        "offsets' size": lambda c: c.put(offsets=torch.zeros(0, dtype=torch.int32)),
        "both": lambda c: c.put(offsets=torch.tensor([0, 1]), lengths=torch.tensor([1])),
        "layer": lambda c: c.put(layer=c.draw.choice((-1, 2, 2 ** 40, -2 ** 63))),
        "layer's kind": lambda c: c.put(layer=c.draw.choice((0.5, "0", None))),
        "dropout_p": lambda c: c.put(dropout_p=c.draw.choice((-0.1, 1.0, 1.5, float("nan"), float("inf")))),
        "seed": lambda c: c.put(dropout_p=0.3, seed=c.draw.choice((-1, 2 ** 64, 0.5, "x", torch.zeros(2)))),
        "scale": lambda c: c.put(scale=c.draw.choice((float("nan"), float("inf"), -float("inf"), 1e300, "1"))),
        "bias": lambda c: c.put(bias=c.draw.choice((torch.zeros(HEADS, N, N + 1), torch.zeros(N, N), torch.zeros(HEADS, N, N).double(),
                                                    torch.zeros(HEADS, N, N, device="meta"), 3.0))),
        "no bias": lambda c: c.put(bias=None if c.kernel.bias else torch.zeros(HEADS, N, N)),
    }


def making_ways():
    """{name: a call that is wrong, of compile(), from_flex(), load()}."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask
    square = {"n": N, "heads": HEADS, "head_dim": D}
    c = maskc.compile

    def per_batch(b, h, q, kv):
        return q >= kv + b
    return {
        "batch mod": lambda d: c(per_batch, **square),
        "batch block": lambda d: c(create_block_mask(per_batch, 2, 1, 64, 64, device="cpu", BLOCK_SIZE=16), head_dim=D),
        "block too short": lambda d: c(create_block_mask(lambda b, h, q, k: q >= k, None, None, 32, 32, device="cpu", BLOCK_SIZE=16), n=64),
        "mod's dtype": lambda d: c(lambda b, h, q, kv: q - kv, **square),
        "NaN mask": lambda d: c(torch.full((d.randint(1, 9),) * 2, float("nan"))),
        "float mask": lambda d: c(torch.rand(8, 8)),
        "negative": lambda d: c(torch.full((8, 8), -d.randint(1, 9))),
        "shape": lambda d: c(torch.ones(d.randint(0, 4), d.randint(5, 9), dtype=torch.bool)),
        "rank": lambda d: c(torch.ones(d.choice(((8,), (), (1, 1, 1, 8, 8))), dtype=torch.bool)),
        "longer than it is": lambda d: c(torch.ones(8, 8, dtype=torch.bool), n=9),
        "heads": lambda d: c(torch.ones(2, 8, 8, dtype=torch.bool), heads=3),
        "no length": lambda d: c("dense", heads=2),
        "text": lambda d: c("".join(d.choice("window(5)|&-01,\n\0x ") for _ in range(d.randint(0, 30))) + "(", n=9),
        "number": lambda d: c("dense", n=d.choice((-1, 2 ** 32, 1.5, "9", True)), heads=2),
        "dtype": lambda d: c("dense", dtype=d.choice(("int8", torch.float64, None, 3)), **square),
        "head_dim": lambda d: c("dense", n=8, head_dim=d.choice((0, 7, 17, 264, -8))),
        "bias": lambda d: c("dense", bias=d.choice(("times", 1, True)), **square),
        "transform": lambda d: c("dense", transform=d.choice(("hardmax", "sparsegen", "sparsegen=x", None)), **square),
        "target": lambda d: c("dense", target=d.choice(("z80", "", "cpu,", "x86-64-v9")), **square),
        "kind": lambda d: c(d.choice((None, 3, 1.5, {}, b"dense")), **square),
    }


def as_array(value):
    """A tensor on the CPU as a NumPy array; any other value as it is."""
    return value.detach().numpy() if hasattr(value, "detach") and value.device.type == "cpu" else value


def as_tensor(value):
    import torch
    return value if isinstance(value, torch.Tensor) else torch.from_numpy(value)


@needs_torch
class CallsTest(Case):
    @classmethod
    def setUpClass(cls):
        import torch

        import maskc.torch_op  # noqa: F401: kernels get their dtypes
        torch.manual_seed(SEED)
        cls.kernels = {name: new_kernel(name) for name in KERNELS}
        cls.wrong, cls.making = wrong_ways(), making_ways()
        if KIND != "cpu":  # the host cannot read these numbers there
            cls.wrong = {name: way for name, way in cls.wrong.items() if name not in READ_BY_THE_HOST}

    def run_call(self, c, draw):
        """The call: in float32 by numpy's arrays one time in four; else with a backward pass in half of all cases."""
        if c.kernel.dtype == "f32" and draw.random() < 0.25:
            return as_tensor(maskc.attention(*map(as_array, c.tensors), c.kernel, **{k: as_array(v) for k, v in c.named.items()}))
        with_grad = draw.random() < 0.5
        if with_grad:
            for t in c.tensors:
                if hasattr(t, "is_floating_point") and t.is_floating_point() and t.is_leaf:
                    t.requires_grad_()
        out = maskc.attention(*c.tensors, c.kernel, **c.named)
        if with_grad and out.requires_grad:
            out.sum().backward()
            self.assertTrue(all(t.grad.isfinite().all() for t in c.tensors))
        return out.detach()

    def is_right(self, c, out):
        """Compares calls without dropout on whole sequences with float64; all others must be finite."""
        import torch
        self.assertEqual(out.shape, c.tensors[0].shape)
        self.assertTrue(out.isfinite().all())
        if set(c.named) - {"bias", "layer"}:
            return
        active, q, k, v = active_keys(c.kernel, c.named.get("layer", 0)), *(t.detach().double() for t in c.tensors)
        n = c.length
        bias = c.named["bias"].double()[:, :n, :n] if c.kernel.bias else None
        truth = attend(q, k, v, active[:, :n, :n], D ** -0.5, bias=bias, kind=c.kernel.bias)[0]
        self.assertLess(error(out, truth), 1e-5 if c.name != "bf16" else 2e-2)

    def refused_call(self, label, call):
        """One line of a known kind of exception."""
        try:
            call()
        except (maskc.Error, TypeError, ValueError) as e:
            self.assertTrue(str(e).strip(), label)
            self.assertNotIn("\n", str(e), label)
            return
        except Exception as e:  # pylint: disable=broad-exception-caught
            self.fail(f"{label}: {type(e).__name__}: {e}")
        self.fail(f"{label}: not refused")

    def one(self, draw):
        """Makes one random call and returns its kind."""
        what = draw.random()
        if what < 0.25:
            name = draw.choice(list(self.making))
            self.refused_call(name, lambda: self.making[name](draw))
            return "making"
        c = Call(draw, self.kernels)
        if what < 0.5:
            self.is_right(c, self.run_call(c, draw))
            return "right"
        names = draw.sample(list(self.wrong), draw.choice((1, 1, 1, 2)))
        if len(names) == 2:  # together they may cancel out, or be no call that a change can be made of
            return self.two(c, names, draw)
        self.wrong[names[0]](c)
        self.refused_call(f"{names[0]} of {c.name}, {sorted(c.named)}", lambda: self.run_call(c, draw))
        return "wrong"

    def two(self, c, names, draw):
        try:
            for name in names:
                self.wrong[name](c)
        except Exception:  # pylint: disable=broad-exception-caught
            return "no call"
        try:
            self.run_call(c, draw)
        except (maskc.Error, TypeError, ValueError) as e:
            self.assertNotIn("\n", str(e).strip(), names)
        return "wrong twice"

    def test_calls(self):
        draw, seen = random.Random(SEED), collections.Counter()
        for _ in range(CALLS):
            seen[self.one(draw)] += 1
        print(f"seed {SEED}, {CALLS} calls: " + ", ".join(f"{count} {name}" for name, count in sorted(seen.items())))
        self.assertGreater(seen["right"], CALLS // 6)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    words = iter(sys.argv[1:])
    for word in words:
        CALLS, SEED = (int(next(words)), SEED) if word == "--calls" else (CALLS, int(next(words)))
    cmocka_count.run_cases()
