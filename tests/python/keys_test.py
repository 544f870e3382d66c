#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are fewer key than query heads, and other numbers of keys than of queries, what torch's scaled_dot_product_attention computes in
float64, forward and every gradient, on random shapes, masks, strides and lengths; opcheck, torch.compile; what is wrong refused in one
line? Are biases of all strides, lengths of all integer types, seeds and numbers accepted or refused alike, for tensors and arrays?"""
import random
import tempfile
import warnings

from common import DEVICE, Case, cmocka_count, cpu_only, error, needs_torch
import maskc

TEXTS = ("causal", "window(4)", "dense", "stride(3)|window(1)", "columns(0,2)|diagonal(0)")


def square(text, side):
    """The mask as bool [side, side]."""
    import torch
    i, j = torch.arange(side)[:, None], torch.arange(side)[None]
    return {"causal": j <= i, "window(4)": (i - j).abs() <= 4, "dense": (i >= 0) & (j >= 0), "stride(3)|window(1)":
            ((i - j) % 3 == 0) | ((i - j).abs() <= 1), "columns(0,2)|diagonal(0)": (j == 0) | (j == 2) | (i == j)}[text]


def between(text, queries, keys, align):
    """bool [queries, keys], by the rule: at the end query i stands at i + side - queries, key j at j + side - keys."""
    side = max(queries, keys)
    whole = square(text, side)
    return whole[side - queries:, side - keys:] if align == "end" else whole[:queries, :keys]


def expected(q, k, v, mask):
    """torch's, in float64; a query without a key gives 0."""
    import torch
    q, k, v = (t.detach().double().requires_grad_() for t in (q, k, v))
    group = q.shape[1] // k.shape[1]
    kk, vv = (t.repeat_interleave(group, 1) for t in (k, v))  # what enable_gqa means
    empty = ~mask.any(-1, keepdim=True)
    out = torch.nn.functional.scaled_dot_product_attention(q, kk, vv, attn_mask=mask | empty)
    return out * ~empty, (q, k, v)


def strided(b, h, n, d, dtype, rnd):
    """[B, H, N, D], in memory [B, N, H, D] or as it is."""
    import torch
    return torch.randn(b, h, n, d).to(dtype) if rnd.random() < .5 else torch.randn(b, n, h, d).to(dtype).transpose(1, 2)


@needs_torch
class KeysTest(Case):
    def check(self, kernel, q, k, v, mask, limit, **named):
        import torch
        tensors = [t.clone().requires_grad_() for t in (q, k, v)]
        out = maskc.attention(*tensors, kernel, **named)
        theirs, inputs = expected(q, k, v, mask)
        grad = torch.randn(out.shape)
        self.assertLess(error(out, theirs), limit)
        ours = torch.autograd.grad(out, tensors, grad.to(out.dtype))
        for a, b in zip(ours, torch.autograd.grad(theirs, inputs, grad.to(out.dtype).double())):
            self.assertEqual(a.shape, b.shape)
            self.assertLess(error(a, b), 2 * limit)

    def test_random_shapes(self):
        import torch
        torch.manual_seed(3)
        rnd = random.Random(3)
        for case in range(16):
            dtype, limit = rnd.choice([(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
            heads, kv_heads = rnd.choice([(4, 2), (6, 1), (2, 2), (6, 3)])
            n, m = rnd.choice([1, 17, 40, 64]), rnd.choice([5, 33, 64, 90])
            text, align = rnd.choice(TEXTS), rnd.choice(["start", "end"])
            with self.subTest(case=case, dtype=dtype, heads=(heads, kv_heads), n=n, m=m, text=text, align=align):
                kernel = maskc.compile(text if rnd.random() < .5 else square(text, max(n, m)), n=n, heads=heads, head_dim=16,
                                       dtype=dtype, kv_heads=kv_heads, kv_length=m, align=align)
                mask = between(text, n, m, align)
                self.assertTrue((torch.from_numpy(kernel.mask[0, 0].copy()).to(DEVICE) == mask).all())
                q = strided(2, heads, n, 16, dtype, rnd)
                k, v = (strided(2, kv_heads, m, 16, dtype, rnd) for _ in "kv")
                self.check(kernel, q, k, v, mask, limit)
                if n > 1:
                    cut = rnd.randrange(1, n), rnd.randrange(1, m)
                    lengths = torch.tensor([n, cut[0]], dtype=torch.int32)
                    keys = torch.tensor([cut[1], m], dtype=torch.int64)
                    seen = (torch.arange(n)[:, None] < lengths[:, None, None]) & (torch.arange(m) < keys[:, None, None]) & mask
                    named = {"key_lengths": keys} if n != m else {}
                    if n != m:
                        self.check(kernel, q, k, v, seen[:, None], limit, lengths=lengths, **named)

    def test_torch_names_it_so(self):
        import torch
        from torch.nn.attention.bias import causal_lower_right, causal_upper_left
        q, k, v = torch.randn(1, 4, 24, 16), torch.randn(1, 2, 60, 16), torch.randn(1, 2, 60, 16)
        for align, bias in (("start", causal_upper_left), ("end", causal_lower_right)):
            kernel = maskc.compile("causal", n=24, heads=4, head_dim=16, kv_heads=2, kv_length=60, align=align)
            theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias(24, 60)._materialize(), enable_gqa=True)
            self.assertLess(error(maskc.attention(q, k, v, kernel), theirs), 1e-5)

    def test_packed_and_starts(self):
        import torch
        kernel = maskc.compile("causal", n=32, heads=4, head_dim=16, kv_heads=2)
        q, k, v = torch.randn(2, 32, 4, 16), torch.randn(2, 32, 2, 16), torch.randn(2, 32, 2, 16)
        padded = maskc.attention(*(t.transpose(1, 2) for t in (q, k, v)), kernel).transpose(1, 2)
        packed = maskc.attention(*(t.reshape(64, -1, 16) for t in (q, k, v)), kernel, offsets=[0, 32, 64])
        self.assertLess(error(packed.reshape(2, 32, 4, 16), padded), 1e-6)
        started = maskc.attention(*(t.transpose(1, 2) for t in (q, k, v)), kernel, starts=[0, 20])
        self.assertLess(error(started[0].transpose(0, 1), padded[0]), 1e-6)

    def test_operator(self):
        import torch
        kernel = maskc.compile("window(5)", n=20, heads=4, head_dim=16, kv_heads=2, kv_length=50, align="end")
        q, k, v = torch.randn(2, 4, 20, 16), torch.randn(2, 2, 50, 16), torch.randn(2, 2, 50, 16)
        maskc.attention(q, k, v, kernel)
        from maskc import torch_op
        arguments = (q, k, v, kernel._op, 0, kernel.default_scale, torch.tensor([[20, 7], [50, 9]], dtype=torch.int32), None, None, 0.0, None, None)
        torch.library.opcheck(torch_op.forward_op, arguments)
        out, lse = torch_op.forward_op(*arguments)
        torch.library.opcheck(torch_op.backward_op, (torch.ones_like(out), q, k, v, out, lse, *arguments[3:-1], None, False))
        compiled = torch.compile(lambda *t: maskc.attention(*t, kernel), fullgraph=True)
        inputs = [t.clone().requires_grad_() for t in (q, k, v)]
        theirs = torch.autograd.grad(maskc.attention(*inputs, kernel).sum(), inputs)
        for a, b in zip(torch.autograd.grad(compiled(*inputs).sum(), inputs), theirs):
            self.assertLess(error(a, b), 1e-6)

    def test_no_queries(self):
        import torch
        kernel = maskc.compile("dense", n=8, heads=2, head_dim=16, kv_length=12)
        q, k, v = (torch.randn(1, 2, n, 16).requires_grad_() for n in (0, 12, 12))
        maskc.attention(q, k, v, kernel).sum().backward()
        self.assertEqual(k.grad.abs().sum() + v.grad.abs().sum(), 0)

    def test_refused(self):
        import torch
        a, kernel = maskc.attention, maskc.compile("dense", n=8, heads=4, head_dim=16, kv_heads=2, kv_length=12)
        q, k, v = torch.randn(2, 4, 8, 16), torch.randn(2, 2, 12, 16), torch.randn(2, 2, 12, 16)
        self.refused("k: shape", a, q, q, v, kernel)
        self.refused("v: shape", a, q, k, v[:, :, :5], kernel)
        self.refused("k: shape", a, q, torch.randn(2, 2, 13, 16), torch.randn(2, 2, 13, 16), kernel)
        self.refused("starts", a, q, k, v, kernel, starts=[0, 0])
        self.refused("length 12", maskc.compile, square("dense", 8), kv_length=12)
        self.refused("key_lengths", a, q, k, v, kernel, key_lengths=[1, 2, 3], lengths=[1, 2])
        ungrouped = maskc.compile("dense", n=8, heads=4, head_dim=16)
        self.refused("key_lengths", a, q, q, q, ungrouped, key_lengths=[1, 2])

    @cpu_only("the host cannot read lengths there")
    def test_wrong_lengths(self):
        import torch
        kernel = maskc.compile("dense", n=8, heads=4, head_dim=16, kv_heads=2, kv_length=12)
        q, k, v = torch.randn(2, 4, 8, 16), torch.randn(2, 2, 12, 16), torch.randn(2, 2, 12, 16)
        self.refused("key_lengths", maskc.attention, q, k, v, kernel, key_lengths=[13, 0])

    def test_kernel_file_as_a_mask(self):
        """Its mask is aligned already; its lengths come from the file, others are refused."""
        with tempfile.TemporaryDirectory() as folder:
            for n, m in ((20, 30), (30, 20)):
                first = maskc.compile("causal", n=n, heads=2, head_dim=16, kv_length=m, kv_heads=1, align="end")
                first.save(f"{folder}/first.mkb")
                for options in ({}, {"n": n, "kv_length": m}, {"kv_length": m, "align": "end"}, {"n": n, "kv_length": m, "align": "start", "dtype": "bfloat16"}):
                    again = maskc.compile(f"{folder}/first.mkb", head_dim=16, kv_heads=1, **options)
                    self.assertTrue((again.mask == first.mask).all() and (again.length, again.kv_length) == (n, m), options)
                for options in ({"n": 10}, {"n": 20, "kv_length": 20}, {"n": m, "kv_length": n}, {"n": n, "kv_length": n}):
                    self.refused(f"it is for {n} queries and {m} keys", maskc.compile, f"{folder}/first.mkb", head_dim=16, **options)
                self.refused("hops are for as many keys", maskc.compile, f"{folder}/first.mkb", head_dim=16, hops=1)
                self.refused("an order is for as many keys", maskc.compile, f"{folder}/first.mkb", head_dim=16, order=list(range(30)))

    @cpu_only("arrays of numpy are on the CPU")
    def test_numpy(self):
        import torch
        kernel = maskc.compile("causal", n=24, heads=4, head_dim=16, kv_heads=2, kv_length=60, align="end")
        q, k, v = torch.randn(1, 4, 24, 16), torch.randn(1, 2, 60, 16), torch.randn(1, 2, 60, 16)
        ours = maskc.attention(*(t.numpy() for t in (q, k, v)), kernel, key_lengths=[50])
        theirs = maskc.attention(q, k, v, kernel, key_lengths=[50])
        self.assertEqual(error(torch.from_numpy(ours.copy()), theirs), 0)
        self.refused("v: shape", maskc.attention, q.numpy(), k.numpy(), v.numpy()[:, :, :7], kernel)
        self.refused("starts", maskc.attention, q.numpy(), k.numpy(), v.numpy(), kernel, starts=[0])


@needs_torch
class ArgumentsTest(Case):
    @staticmethod
    def tensors(batch=3):
        import torch
        torch.manual_seed(3)
        return [torch.randn(batch, 2, 24, 16) for _ in range(3)]

    def test_bias_of_any_strides(self):
        """Equal to its contiguous copy, and so is the gradient."""
        import torch
        tensors = self.tensors()
        for heads, shape, change in ((2, (24, 24, 2), lambda t: t.permute(2, 0, 1)), (2, (24, 24, 1), lambda t: t.permute(2, 0, 1).expand(2, 24, 24)),
                                     (2, (2, 24, 24), lambda t: t.mT), (1, (4, 24, 24), lambda t: t[1::2][:1])):
            kernel, table = maskc.compile("dense", n=24, heads=heads, head_dim=16, bias="add"), torch.randn(shape, requires_grad=True)

            def attend(bias):
                return maskc.attention(*(t[:, :heads] for t in tensors), kernel, bias=bias)  # pylint: disable=cell-var-from-loop
            theirs = attend(change(table).clone(memory_format=torch.contiguous_format))
            wanted = torch.autograd.grad(theirs.square().sum(), table)[0]
            for call in (attend, torch.compile(attend, backend="aot_eager", fullgraph=True)):
                out = call(change(table))
                self.assertTrue(torch.equal(out, theirs))
                self.assertLess(error(torch.autograd.grad(out.square().sum(), table)[0], wanted), 1e-6)

    def test_an_order_that_was_read_in_inference_mode(self):
        import torch
        q, order = self.tensors()[0].requires_grad_(), list(range(23, -1, -1))
        with torch.inference_mode():
            kernel = maskc.compile("causal", n=24, heads=2, head_dim=16, order=order)
            maskc.attention(q, q, q, kernel)
        theirs = maskc.attention(q, q, q, maskc.compile("causal", n=24, heads=2, head_dim=16, order=order))
        grads = (torch.autograd.grad(out.square().sum(), q)[0] for out in (maskc.attention(q, q, q, kernel), theirs))
        self.assertTrue(torch.equal(*grads))

    def test_tensors_that_are_refused(self):
        import torch
        q, k, v = self.tensors()
        kernel = maskc.compile("dense", n=24, heads=2, head_dim=16, dropout=True)
        nested = torch.nested.nested_tensor([q[0], q[1]])
        self.refused("dropout_p: Tensor; a number", maskc.attention, q, k, v, kernel, dropout_p=torch.tensor(.3, requires_grad=True), kind=TypeError)
        self.refused("q: a sparse_coo tensor; a dense one", maskc.attention, q.to_sparse(), k, v, kernel)
        self.refused("k: a nested tensor; a dense one", maskc.attention, q, nested, v, kernel)
        self.refused("q: a nested tensor; a dense one", maskc.attention, nested, nested, nested, kernel)

    @cpu_only("arrays of numpy are on the CPU, and the host cannot read lengths elsewhere")
    def test_as_with_arrays(self):
        """Tensors and arrays of numpy are accepted, and refused, with the same numbers."""
        import numpy
        import torch
        tensors, keys = self.tensors(), self.tensors()
        kernel = maskc.compile("dense", n=24, heads=2, head_dim=16)
        wide = maskc.compile("causal", n=24, heads=2, head_dim=16, kv_length=40, align="end")
        keys[1:] = torch.randn(2, 3, 2, 40, 16)
        for change in (lambda t: t, lambda t: t.numpy()):
            a = [change(t) for t in tensors]
            for seed in (-3, 2 ** 64):
                self.refused("seed", maskc.attention, *a, kernel, seed=seed)
            self.refused("seed", maskc.attention, *a, kernel, seed=1.5, kind=(maskc.Error, TypeError))
            self.refused("lengths", maskc.attention, *a, kernel, lengths=numpy.array([2 ** 63 + 5, 1, 2], numpy.uint64))
            self.refused("bool [3]; integers [", maskc.attention, *a, kernel, lengths=change(torch.tensor([True] * 3)))
            self.refused("are expected", maskc.attention, *map(change, keys), wide, lengths=[[5, 6, 7], [9, 9, 9]])
            theirs = maskc.attention(*a, kernel, lengths=[3, 24, 0])
            for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"):
                out = maskc.attention(*a, kernel, lengths=change(torch.tensor([3, 24, 0]).to(getattr(torch, name))))
                self.assertTrue((out == theirs).all(), name)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cmocka_count.run_cases()
