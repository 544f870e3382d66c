#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is every result exact or refused in one line? A scale of 0, forward-mode derivatives, kernels without a reference, programs of
another process, masks by head and by batch, arguments of the wrong kind."""
import gc
import subprocess
import sys
import tempfile
import unittest
import warnings

from common import Case, active_keys, attend, cmocka_count, cpu_only, error, has, needs_numpy, needs_torch
import maskc

N, HEADS, D = 32, 2, 16
SHAPE = {"n": N, "heads": HEADS, "head_dim": D}


def attention_of(q, kernel, **named):
    return maskc.attention(q, q, q, kernel, **named)


@needs_torch
class ScaleTest(Case):
    def setUp(self):
        import torch
        torch.manual_seed(1)
        self.tensors = torch.randn(3, 2, HEADS, N, D).unbind(0)

    def check(self, dtype, bound, **options):
        import torch
        kernel = maskc.compile("window(4)-diagonal(0)", dtype=dtype, **SHAPE, **options)
        x = [t.to(kernel.torch_dtype).requires_grad_() for t in self.tensors]
        active = active_keys(kernel)
        for scale in (0, -0.0, 1e-60):
            out, lse = maskc.attention(*x, kernel, scale=scale, return_lse=True)
            truth, sums = attend(*(t.detach().double() for t in x), active, 0.0)[:2]
            self.assertLess(error(out, truth), bound)
            if kernel.transform == "softmax":
                self.assertLess(error(lse, sums), 1e-5)
            dq, dk, dv = torch.autograd.grad(out.sum(), x)
            self.assertEqual((dq.abs().max().item(), dk.abs().max().item()), (0, 0))
            ones = torch.ones_like(truth)
            self.assertLess(error(dv, (active / active.sum(-1, keepdim=True)).double().transpose(-1, -2) @ ones), bound)

    def test_zero_is_uniform_attention(self):
        self.check("float32", 1e-5)
        self.check("bfloat16", 1e-2)
        self.check("float32", 1e-5, transform="sparsegen=-2")

    @cpu_only("arrays of numpy are on the CPU")
    @needs_numpy
    def test_arrays_and_the_program(self):
        import numpy
        kernel = maskc.compile("window(4)", forward_only=True, **SHAPE)
        arrays = [t.numpy() for t in self.tensors]
        active = kernel.mask[0]
        truth = (active / active.sum(-1, keepdims=True)) @ arrays[2].astype(float)
        self.assertLess(abs(maskc.attention(*arrays, kernel, scale=0.0) - truth).max(), 1e-5)
        self.assertGreater(abs(maskc.attention(*arrays, kernel) - truth).max(), 0.1)
        with tempfile.TemporaryDirectory() as folder:
            kernel.save(f"{folder}/k.mkb")
            for name, a in zip("qkv", arrays):
                numpy.save(f"{folder}/{name}.npy", a.transpose(0, 2, 1, 3))
            words = [w for name, letter in (("query", "q"), ("key", "k"), ("value", "v")) for w in (f"--{name}", f"{folder}/{letter}.npy")]
            maskc.kernel.run_program("run", f"{folder}/k.mkb", *words, "--scale", "0", "-o", f"{folder}/out")
            self.assertLess(abs(numpy.load(f"{folder}/out/out.npy").transpose(0, 2, 1, 3) - truth).max(), 1e-5)

    @cpu_only("arrays of numpy are on the CPU")
    def test_a_scale_that_is_no_finite_number_is_refused(self):
        import torch
        kernel = maskc.compile("dense", **SHAPE)
        for value in (float("nan"), float("inf"), 1e39):
            self.refused("scale", maskc.attention, *self.tensors, kernel, scale=value)
            self.refused("scale", maskc.attention, *(t.numpy() for t in self.tensors), kernel, scale=value)
        for value in ("1", torch.tensor(0.5, requires_grad=True), 1j):  # a tensor's gradient would be lost
            self.refused("scale", maskc.attention, *self.tensors, kernel, scale=value, kind=TypeError)

    def test_a_traced_scale(self):
        import torch
        kernel = maskc.compile("window(4)", **SHAPE)
        traced = torch.compile(lambda q, s: attention_of(q, kernel, scale=s), backend="eager", fullgraph=True)
        for scale in (0.0, 0.5, 0.0, None):
            self.assertTrue(torch.equal(traced(self.tensors[0], scale), attention_of(self.tensors[0], kernel, scale=scale)))


@needs_torch
class ForwardModeTest(Case):
    def test_is_refused(self):
        import torch
        from torch.autograd import forward_ad
        kernel, biased = maskc.compile("causal", **SHAPE), maskc.compile("causal", bias="add", **SHAPE)
        t, x = torch.randn(1, HEADS, N, D), torch.randn(HEADS, N, N)
        ways = [(t, lambda q: maskc.attention(q, t, t, kernel)), (t, lambda k: maskc.attention(t, k, t, kernel, return_lse=True)[0]),
                (t, lambda v: maskc.attention(t, t, v, kernel, starts=[3])), (x, lambda x: maskc.attention(t, t, t, biased, bias=x)),
                (t, lambda v: torch.ops.maskc.forward(t, t, v, kernel._op, 0, 0.25, None, None, None, 0.0, None, None)[0]),
                (t, torch.compile(lambda v: maskc.attention(t, t, v, kernel), backend="eager"))]
        for at, f in ways:
            with forward_ad.dual_level():
                self.refused("forward-mode", f, forward_ad.make_dual(at.clone().requires_grad_(), at))
                with torch.no_grad():
                    self.refused("forward-mode", f, forward_ad.make_dual(at, at))
        f = ways[2][1]
        for transform in (torch.func.jacfwd(f), lambda v: torch.func.jvp(f, (v,), (v,)), torch.func.hessian(lambda v: f(v).sum()),
                          lambda v: torch.func.jvp(torch.func.grad(lambda v: f(v).sum()), (v,), (v,))):
            self.refused("forward-mode", transform, t)

    def test_what_has_no_tangent_is_computed(self):
        import torch
        from torch.autograd import forward_ad
        kernel, t = maskc.compile("causal", **SHAPE), torch.randn(1, HEADS, N, D)
        with forward_ad.dual_level():
            made = forward_ad.make_dual(t, t) * attention_of(t, kernel)
            self.assertTrue(torch.equal(forward_ad.unpack_dual(made).tangent, t * attention_of(t, kernel)))


@needs_torch
class LifeTest(Case):
    def setUp(self):
        import torch
        self.q = torch.randn(1, HEADS, N, D)

    def lost(self, call):
        """The gradient, if the caller drops the kernel after the forward pass."""
        import torch
        q = self.q.clone().requires_grad_()
        kernel = maskc.compile("window(3)", **SHAPE)
        out = call(q, kernel)
        theirs = torch.autograd.grad(attention_of(q, kernel).sum(), q)[0]
        del kernel
        gc.collect()
        out.sum().backward()
        self.assertTrue(torch.equal(q.grad, theirs))

    def test_autograd_holds_the_kernel(self):
        import torch
        self.lost(attention_of)
        self.lost(lambda q, kernel: attention_of(q, kernel, return_lse=True)[0])
        self.lost(lambda q, kernel: torch.ops.maskc.forward(q, q, q, kernel._op, 0, 0.25, None, None, None, 0.0, None, None)[0])
        self.lost(torch.compile(attention_of, backend="aot_eager"))

    def test_compiled_code_has_the_kernel_it_is_given(self):
        import torch
        traced = torch.compile(attention_of, backend="eager", dynamic=True)
        for mask in ("window(1)", "dense", "causal"):
            kernel = maskc.compile(mask, **SHAPE)
            self.assertTrue(torch.equal(traced(self.q, kernel), attention_of(self.q, kernel)))
            del kernel
            gc.collect()

    def test_numbers_are_never_given_again(self):
        seen = set()
        for mask in ("dense", "dense", "causal", "dense"):
            kernel = maskc.compile(mask, **SHAPE)
            attention_of(self.q, kernel)
            seen.add(kernel._op)
            del kernel
            gc.collect()
        self.assertEqual(len(seen), 4)

    def test_an_error_in_the_backward_pass_is_one_line(self):
        import torch
        kernel = maskc.compile("dense", forward_only=True, **SHAPE)
        out = attention_of(self.q.clone().requires_grad_(), kernel)
        with self.assertRaises(maskc.Error) as caught:
            out.sum().backward()
        self.assertNotIn("maskc[", str(caught.exception))

    @cpu_only("the other process computes on the CPU")
    def test_a_program_of_another_process_is_refused(self):
        """Its kernel's number is that of no other kernel here."""
        import torch
        kernel = maskc.compile("window(1)", **SHAPE)
        program = ("import sys, torch, maskc\n"
                   f"others = [maskc.compile(m, **{SHAPE}) for m in ('dense', 'causal', 'window(2)')]\n"
                   f"q = torch.randn(1, {HEADS}, {N}, {D})\n"
                   "for k in others: maskc.attention(q, q, q, k)\n"
                   "for f in (lambda: torch.export.load(sys.argv[1] + '/e.pt2').module(), lambda: torch.jit.load(sys.argv[1] + '/e.jit')):\n"
                   "    try: print('ran', f()(q).sum())\n"
                   "    except RuntimeError as e: print('refused', 'of another process' in str(e))\n")

        class Model(torch.nn.Module):
            def forward(self, q):
                return attention_of(q, kernel)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.export.save(torch.export.export(Model(), (self.q,)), f"{folder}/e.pt2")
            torch.jit.trace(Model(), (self.q,)).save(f"{folder}/e.jit")
            done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, folder], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.splitlines(), ["refused True"] * 2, done.stderr[-2000:])


class ExitTest(Case):
    def test_a_kernel_that_lives_to_the_end_leaves_no_traceback(self):
        """The modules of maskc are cleared before a module that holds a kernel, as after torch.compile."""
        program = ("import ctypes, os, sys, maskc\n"
                   "os.kept = maskc.compile('dense', n=8, head_dim=16)\n"
                   "for m in (os, sys.modules['maskc.kernel'], maskc._library):\n"
                   "    ctypes.pythonapi.Py_IncRef(ctypes.py_object(m))\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


@cpu_only("FlexAttention's masks are read there by cuda_test.py")
@needs_torch
class MaskModTest(Case):
    """FlexAttention's create_mask is the truth."""

    def setUp(self):
        import torch
        self.reach, self.lengths = torch.tensor([1, 3, 5, 9]), torch.tensor([50, 50, 50, 40])
        self.by_head = lambda b, h, q, k: (q - k).abs() <= self.reach[h]
        self.by_batch = lambda b, h, q, k: k < self.lengths[b]

    def blocks(self, mod, b, h):
        from torch.nn.attention.flex_attention import create_block_mask
        return create_block_mask(mod, b, h, 64, 64, device="cpu", BLOCK_SIZE=16)

    def test_every_head_is_asked(self):
        from torch.nn.attention.flex_attention import create_mask
        truth = create_mask(self.by_head, None, 4, 64, 64, device="cpu")[0].numpy()
        for mask in (self.by_head, self.blocks(self.by_head, None, 4), self.blocks(self.by_head, 2, 4)):
            self.assertTrue((maskc.from_flex(mask, 64, heads=4) == truth).all())
            self.assertTrue((maskc.compile(mask, n=64, heads=4, head_dim=D, forward_only=True).mask[0] == truth).all())
        shared = maskc.from_flex(self.blocks(lambda b, h, q, k: (q >= k) & (k <= self.reach[h]), None, None), heads=4)
        wanted = create_mask(lambda b, h, q, k: (q >= k) & (k <= self.reach[h]), None, 4, 64, 64, device="cpu")[0].numpy()
        self.assertTrue((shared == wanted).all())  # blocks of head 0, and the mask_mod of each
        self.refused("heads", maskc.from_flex, self.by_head, 64)
        self.refused("heads", maskc.compile, self.blocks(self.by_head, None, None), head_dim=D)
        self.refused("heads", maskc.compile, self.blocks(self.by_head, None, 4), heads=8, head_dim=D)
        self.refused("IndexError", maskc.from_flex, self.by_head, 64, 8)

    def test_the_batch_is_refused_wherever_it_is_read(self):
        from torch.nn.attention.flex_attention import and_masks

        def hidden(b, h, q, k):
            try:
                return k < self.lengths[b]
            except Exception:  # pylint: disable=broad-exception-caught
                return k < 50
        ways = (self.by_batch, hidden, and_masks(lambda b, h, q, k: q >= k, self.by_batch), lambda b, h, q, k: (q >= k) & (b < 1000),
                lambda b, h, q, k: k < [50, 50, 50, 40][b], lambda b, h, q, k: q >= k if b == 7 else q > k, lambda b, h, q, k: k < len(str(b)))
        for mod in ways:
            self.refused("batch", maskc.from_flex, mod, 64)
        for count in (4, 5):  # sequences 0, 1, 2 are alike
            self.refused("batch", maskc.compile, self.blocks(lambda b, h, q, k: (q >= k) & ((b <= 2) | (q <= 40) | (k > 3)), count, None), head_dim=D)

    def test_what_does_not_depend_on_it_is_accepted(self):
        from torch.nn.attention.flex_attention import and_masks, or_masks
        self.lengths[3] = 50
        causal = maskc.from_flex(and_masks(lambda b, h, q, k: q >= k, or_masks(lambda b, h, q, k: k < 50)), 64)
        self.assertEqual(causal.sum(), 64 * 65 // 2 - 14 * 15 // 2)
        self.assertEqual(maskc.from_flex(self.blocks(self.by_batch, 4, None)).sum(), 64 * 50)

    def test_calls_are_of_one_query_and_key(self):
        """As FlexAttention's: a reduction sees one pair."""
        import torch
        made = maskc.from_flex(lambda b, h, q, k: torch.stack([q == k, q - k == 3]).any(), 20)
        self.assertEqual(made.sum(), 20 + 17)
        self.refused("one bool", maskc.from_flex, lambda b, h, q, k: torch.stack([q == k, q > k]), 20)
        self.refused("ZeroDivisionError", maskc.from_flex, lambda b, h, q, k: 1 / 0, 20)

    @unittest.skipUnless(has("transformers"), "this Python has no transformers")
    def test_apply_asks_every_head(self):
        import torch
        import transformers
        torch.manual_seed(1)
        config = transformers.BertConfig(hidden_size=64, num_attention_heads=4, num_hidden_layers=1, intermediate_size=64, vocab_size=50, max_position_embeddings=64)
        ours, theirs = (transformers.BertModel(config).eval() for _ in range(2))
        theirs.load_state_dict(ours.state_dict())
        ids = torch.randint(3, 50, (2, 64))
        with torch.no_grad():
            a = maskc.apply(ours, self.by_head)(ids)[0]
            b = maskc.apply(theirs, maskc.from_flex(self.by_head, 64, heads=4))(ids)[0]
        self.assertTrue(torch.equal(a, b))


@unittest.skipUnless(has("numpy"), "this Python has no numpy")
class KindsTest(Case):
    """Arguments of the wrong kind."""

    KINDS = (maskc.Error, TypeError, ValueError)

    def test_texts(self):
        for call in (maskc.compile, maskc.plan, maskc.show):
            for mask in ("dense\0x", "dense\n\0", "--help", "-n"):
                self.refused("", call, mask, n=8, kind=self.KINDS)
            for n in (0, -5, True, False, 1.5, "5", "", 2 ** 32, 10 ** 30):
                self.refused("n:", call, "dense", n=n)
            for heads in (0, -1, True, "2"):
                self.refused("heads:", call, "dense", n=8, heads=heads)
        self.refused("star: the mask has no length of its own, n=N is expected", maskc.compile, "star")
        self.refused("12 heads, heads=5 needs 1 or 5", maskc.compile, "blockbert-2", n=16, heads=5)
        self.refused("show: n: '3145728' is not a length", maskc.show, "star", n=3 << 20)
        for name in ("target", "machine", "cache_dir", "device", "dtype", "transform", "bias", "align"):
            for value in (5, b"cpu", "cp\0u", object(), [1]):
                self.refused(name, maskc.compile, "dense", n=8, kind=self.KINDS, **{name: value})
        for name in ("threads", "batch", "head_dim"):
            for value in (-1, True, 1.5, "x", 10 ** 30):
                self.refused(name, maskc.plan, "dense", n=8, **{name: value})
        for path in (None, 5, "x\0y"):
            self.refused("path", maskc.load, path, kind=self.KINDS)
        self.refused("bytes", maskc.Kernel, "text", kind=TypeError)

    @cpu_only("arrays of numpy are on the CPU")
    @needs_numpy
    def test_arrays(self):
        import numpy
        kernel, a = maskc.compile("dense", n=8, head_dim=D), numpy.zeros((1, 1, 8, D), "f4")
        for wrong in (None, "causal", 5, kernel.handle):
            self.refused("maskc.Kernel", maskc.attention, a, a, a, wrong, kind=TypeError)
        rows = [a[0].swapaxes(0, 1)] * 3
        for offsets in ([], [0]):
            self.refused("offsets", maskc.attention, *rows, kernel, offsets=offsets)
        self.refused("starts and offsets", maskc.attention, *rows, kernel, offsets=[0, 8], starts=[0])
        number = type("Number", (), {"__index__": lambda self: 0})()
        self.assertEqual(maskc.attention(a, a, a, kernel, layer=number, seed=number).shape, a.shape)
        for runs in ([[0, 1], [0, 2 ** 32 + 1]], [[0, .7], [0, 1]], [0, 1, 2]):
            self.refused("runs", maskc.Runs, (1, 1, 2, 2), [0, 1, 2], runs)
        self.refused("different lengths", maskc.compile, [[1, 0], [1]])

    @cpu_only("some layouts exist only there")
    @needs_torch
    def test_tensors(self):
        import torch
        kernel, t = maskc.compile("dense", n=8, head_dim=D), torch.randn(1, 1, 8, D)
        for wrong in (None, "causal", 5, torch.ops.aten.add.default):
            self.refused("maskc.Kernel", maskc.attention, t, t, t, wrong, kind=TypeError)
        warnings.simplefilter("ignore")
        others = (t.to_sparse(), t[0, 0].to_sparse_csr(), t.to_mkldnn(), torch.nested.nested_tensor([t[0]]),
                  torch.nested.nested_tensor([t[0, 0]], layout=torch.jagged), torch.quantize_per_tensor(t, .1, 0, torch.qint8))
        for other in others:
            for grad in (False, True):
                self.refused("", maskc.attention, t.clone().requires_grad_(grad), t, other, kernel, kind=self.KINDS)
            self.refused("", maskc.attention, other, t, t, kernel, kind=self.KINDS)
        for name in ("lengths", "starts"):
            self.refused(name, maskc.attention, t, t, t, kernel, **{name: torch.tensor([5]).to_sparse()})
        for mask in (torch.ones(4, 4).to_sparse(), torch.ones(4, 4, device="meta"), torch.ones(4, 4) + 0j):
            self.refused("mask", maskc.compile, mask)
        rows = t[0].transpose(0, 1)
        for offsets in ([5], [-1], [0]):  # no sequence, but rows
            self.refused("offsets", maskc.attention, rows, rows, rows, kernel, offsets=offsets)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cmocka_count.run_cases()
