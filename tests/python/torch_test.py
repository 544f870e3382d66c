#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is the operator one in its own right: opcheck, no graph break, autocast, meta tensors, torch.func, threads, one OpenMP, masks of
FlexAttention exactly, and what is wrong refused in one line?"""
import gc
import subprocess
import sys
import threading
import unittest
import warnings
from unittest import mock

from common import KIND, Case, cmocka_count, cpu_only, error, has, needs_torch
import maskc


@needs_torch
class OperatorTest(Case):
    @classmethod
    def setUpClass(cls):
        import torch
        torch.manual_seed(1)
        cls.kernel = maskc.compile("window(5)|global(0)", n=64, heads=2, head_dim=16, dropout=True)
        cls.q, cls.k, cls.v = (torch.randn(2, 64, 2, 16).transpose(1, 2) for _ in range(3))
        maskc.attention(cls.q, cls.k, cls.v, cls.kernel)
        from maskc import torch_op
        cls.op = torch_op

    def with_grad(self):
        return [t.detach().clone().requires_grad_() for t in (self.q, self.k, self.v)]

    def test_opcheck(self):
        import torch
        number, i32 = self.kernel._op, torch.int32
        lengths, seed = torch.tensor([64, 9], dtype=i32), torch.tensor(3, device="cpu")
        starts = torch.tensor([0, 50], dtype=i32) if KIND == "cpu" else None  # attention() moves the tensors on other devices
        rows = [t.transpose(1, 2).reshape(128, 2, 16) for t in (self.q, self.k, self.v)]
        for arguments in ((self.q, self.k, self.v, number, 0, 0.0, None, None, None, 0.0, None, None),
                          (self.q, self.k, self.v, number, 0, 0.5, lengths, starts, None, 0.1, seed, None),
                          (*rows, number, 0, 0.0, None, None, torch.tensor([0, 64, 128], dtype=i32), 0.0, None, None)):
            torch.library.opcheck(self.op.forward_op, arguments)
            out, lse = self.op.forward_op(*arguments)
            q, k, v, *others = arguments
            torch.library.opcheck(self.op.backward_op, (torch.ones_like(out), q, k, v, out, lse, *others[:-1], None, False))
        torch.library.opcheck(self.op.forward_op, (*self.with_grad(), number, 0, 0.0, lengths, None, None, 0.0, None, None))

    def test_the_operator_itself_has_gradients(self):
        """torch.ops.maskc.forward, called without attention(): no silent lack of them."""
        import torch
        kernel = maskc.compile("window(5)", n=64, heads=2, head_dim=16, bias="add")
        tensors = [*self.with_grad(), torch.randn(2, 64, 64, requires_grad=True)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            out, lse = torch.ops.maskc.forward(*tensors[:3], kernel._op, 0, kernel.default_scale, None, None, None, 0.0, None, tensors[3])
            ours = torch.autograd.grad(out.sum(), tensors)
        self.assertFalse(lse.requires_grad)
        for a, b in zip(ours, torch.autograd.grad(maskc.attention(*tensors[:3], kernel, bias=tensors[3]).sum(), tensors)):
            self.assertTrue(torch.equal(a, b))
        back = torch.ops.maskc.backward(torch.ones_like(out), *tensors[:3], out, lse, kernel._op, 0, kernel.default_scale, None, None, None, 0.0, None, tensors[3], True)
        self.refused("second", back[0].sum().backward)

    def test_no_graph_break(self):
        import torch
        import torch._dynamo as dynamo
        dynamo.reset()
        dynamo.utils.counters.clear()

        @torch.compile(fullgraph=True, dynamic=True)
        def f(q, k, v, p):
            return maskc.attention(q * 2, k, v, self.kernel, dropout_p=p) + 1
        for n in (64, 50, 33, 17):
            tensors = self.with_grad()
            short = [t[:, :, :n] for t in tensors]
            out = f(*short, 0.0)
            theirs = maskc.attention(short[0] * 2, *short[1:], self.kernel) + 1
            self.assertLess(error(out, theirs), 1e-6)
            for a, b in zip(torch.autograd.grad(out.sum(), tensors), torch.autograd.grad(theirs.sum(), tensors)):
                self.assertLess(error(a, b), 1e-6)
        self.assertEqual(sum(dynamo.utils.counters["graph_break"].values()), 0)
        self.assertLessEqual(dynamo.utils.counters["stats"]["unique_graphs"], 2)
        self.assertNotEqual(f(*short, 0.5).sum(), f(*short, 0.5).sum())

    def test_autocast_casts(self):
        import torch
        kernel = maskc.compile("window(5)", n=64, heads=2, head_dim=16, dtype=torch.bfloat16)
        with torch.autocast(KIND, dtype=torch.bfloat16):
            tensors = self.with_grad()
            out = maskc.attention(*tensors, kernel)
        self.assertEqual(out.dtype, torch.bfloat16)
        out.float().sum().backward()
        self.assertEqual(tensors[0].grad.dtype, torch.float32)
        self.refused("bfloat16", maskc.attention, self.q, self.k, self.v, kernel)

    def test_meta(self):
        import torch
        meta = [t.to("meta") for t in (self.q, self.k, self.v)]
        out, lse = maskc.attention(*meta, self.kernel, return_lse=True)
        self.assertEqual((out.shape, lse.shape, out.device.type), (self.q.shape, (2, 2, 64), "meta"))
        real = maskc.attention(self.q, self.k, self.v, self.kernel)
        self.assertEqual(out.stride(), real.stride())

    def test_transforms(self):
        import torch
        one = torch.func.grad(lambda q: maskc.attention(q, self.k, self.v, self.kernel).sum())(self.q)
        tensors = self.with_grad()
        two = torch.autograd.grad(maskc.attention(*tensors, self.kernel).sum(), tensors[0])[0]
        self.assertTrue(torch.equal(one, two))
        many = torch.stack([self.q, self.q])
        self.refused("vmap", torch.vmap(lambda q: maskc.attention(q, self.k, self.v, self.kernel)), many)
        self.refused("vmap", torch.vmap(torch.func.grad(lambda q: maskc.attention(q, self.k, self.v, self.kernel).sum())), many)

    def test_second_derivatives_are_refused(self):
        import torch
        tensors = self.with_grad()
        first = torch.autograd.grad(maskc.attention(*tensors, self.kernel).sum(), tensors[0], create_graph=True)[0]
        self.refused("second", first.sum().backward)

    def test_threads_do_not_change_bits(self):
        import torch
        before, results = torch.get_num_threads(), []
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            results.append(maskc.attention(self.q, self.k, self.v, self.kernel))
        torch.set_num_threads(before)
        self.assertTrue(all(torch.equal(results[0], r) for r in results))
        made = [None] * 4

        def work(k):
            made[k] = [maskc.attention(self.q, self.k, self.v, self.kernel) for _ in range(20)]
        workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        [w.start() for w in workers], [w.join() for w in workers]
        self.assertTrue(all(torch.equal(results[0], r) for rs in made for r in rs))

    @cpu_only("the threads of the CPU")
    def test_one_openmp_and_one_warning(self):
        """In a process of its own: a second pool of threads shows in its maps; a copy is warned of once (torch 2.10 says it on stderr). The
        first call of all is one that torch.compile traces."""
        program = ("import torch, warnings, maskc\n"
                   "k = maskc.compile('window(5)', n=64, heads=2, head_dim=16)\n"
                   "t = torch.randn(1, 2, 64, 16)\n"
                   "f = torch.compile(lambda q: maskc.attention(q, q, q, k), fullgraph=True, backend='eager')\n"
                   "assert torch.equal(f(t), maskc.attention(t, t, t, k)) and torch.equal(f(t), f(t))\n"
                   "q = torch.randn(1, 2, 16, 64).transpose(2, 3)\n"
                   "with warnings.catch_warnings(record=True) as seen:\n"
                   "    warnings.simplefilter('always')\n"
                   "    for _ in range(3): maskc.attention(q, q, q, k)\n"
                   "print(sum('copied' in str(w.message) for w in seen))\n"
                   "print(len({l.split()[-1] for l in open('/proc/self/maps') if 'omp' in l.split()[-1].split('/')[-1] and '.so' in l}))")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        seen, pools = map(int, done.stdout.split())
        self.assertEqual((seen + done.stderr.count("is copied"), pools), (1, 1), done.stderr)

    def test_wrong_input_is_one_line(self):
        import torch
        q, k, v, kernel, a = self.q, self.k, self.v, self.kernel, maskc.attention
        self.refused("float64", a, q.double(), k.double(), v.double(), kernel)
        self.refused("heads", a, q[:, :1], k[:, :1], v[:, :1], kernel)
        self.refused("the kernel 2 key heads", a, q, k[:, :1], v[:, :1], kernel)
        self.refused("the kernel 2 key heads", a, q, k[:, :, :9], v[:, :, :9], kernel)
        self.refused("shape", a, q[0], k[0], v[0], kernel)
        long = torch.randn(1, 2, 65, 16)
        self.refused("65", a, long, long, long, kernel)
        self.refused("layer", a, q, k, v, kernel, layer=1)
        self.refused("lengths", a, q, k, v, kernel, lengths=torch.tensor([3]))
        self.refused("lengths", a, q, k, v, kernel, lengths=torch.tensor([3., 4.], requires_grad=True))
        self.refused("offsets", a, q[0], k[0], v[0], kernel, offsets=torch.tensor([0., 2.]))
        self.refused("exclude", a, q, k, v, kernel, lengths=torch.tensor([1, 2]), offsets=torch.tensor([0, 2]))
        self.refused("exclude", a, q, k, v, kernel, starts=torch.tensor([1, 2]), offsets=torch.tensor([0, 2]))
        self.refused("dropout", a, q, k, v, kernel, dropout_p=1.0)
        self.refused("dropout", a, q, k, v, kernel, dropout_p=float("nan"))
        self.refused("bias", a, q, k, v, kernel, bias=torch.zeros(2, 64, 64))
        self.refused("scale", a, q, k, v, kernel, scale=float("inf"))
        self.refused("seed", a, q, k, v, kernel, dropout_p=0.1, seed=-1)
        self.refused("list", a, q, [1], v, kernel, kind=TypeError)
        self.refused("bias: torch.bfloat16; torch.float32 is", a, q, k, v, kernel, bias=torch.zeros(2, 64, 64, dtype=torch.bfloat16))
        for shape in ((1, 1, 64, 16), (1, 2, 64, 8), (1, 2, 65, 16)):
            meta = torch.empty(shape, device="meta")
            self.refused("compiled for 2 heads of 16, length 64", a, meta, meta, meta, kernel)
        self.refused("float32", maskc.compile, torch.full((8, 8), float("nan")))

    @cpu_only("arrays of numpy are on the CPU")
    def test_lists_without_an_element(self):
        out = maskc.attention(self.q[:0], self.k[:0], self.v[:0], self.kernel, lengths=[])
        self.assertEqual(out.shape, (0, 2, 64, 16))
        self.assertEqual(maskc.attention(*(t[:0].numpy() for t in (self.q, self.k, self.v)), self.kernel, lengths=[]).shape, (0, 2, 64, 16))

    def test_one_vector_expanded_to_all_rows(self):
        """Strides that are all 0 mean "contiguous" to a launch."""
        import torch
        kept = (self.q, self.k, self.v, torch.randn_like(self.q))
        for k in range(4):
            one = [t.detach() if j != k else t[0, 0, 0].detach().expand(2, 2, 64, 16) for j, t in enumerate(kept)]
            made = []
            for tensors in (one, [t.contiguous() for t in one]):
                q, key, v = (t.requires_grad_() for t in tensors[:3])
                out = maskc.attention(q, key, v, self.kernel)
                made.append((out, *torch.autograd.grad(out, (q, key, v), tensors[3])))
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(*made)), k)
            if KIND == "cpu" and has("numpy"):
                self.assertTrue(torch.equal(torch.from_numpy(maskc.attention(*(t.detach().numpy() for t in one[:3]), self.kernel)), made[0][0]), k)

    def test_a_changing_seed_compiles_once_more(self):
        """As an int, torch.compile makes it symbolic after the first one."""
        import torch
        import torch._dynamo.testing
        counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(lambda q, k, v, seed: maskc.attention(q, k, v, self.kernel, dropout_p=0.5, seed=seed), backend=counter, fullgraph=True)
        for seed in (5, 6, 7, 8):
            theirs = maskc.attention(self.q, self.k, self.v, self.kernel, dropout_p=0.5, seed=seed)
            self.assertTrue(torch.equal(compiled(self.q, self.k, self.v, seed), theirs))
        self.assertLessEqual(counter.frame_count, 2)

    @cpu_only("arrays of numpy are on the CPU")
    @unittest.skipUnless(has("numpy"), "this Python has no numpy")
    def test_seeds_of_numpy(self):
        import numpy
        import torch
        kernel, seed = maskc.compile("dense", n=64, heads=2, head_dim=16, dropout=True), 2 ** 63 + 5
        one, other = (maskc.attention(self.q, self.k, self.v, kernel, dropout_p=0.5, seed=s) for s in (seed, numpy.uint64(seed)))
        self.assertTrue(torch.equal(one, other))

        def drawn(state=None):
            if state is not None:
                numpy.random.seed(state)
            return maskc.attention(*(t.numpy() for t in (self.q, self.k, self.v)), kernel, dropout_p=0.5)
        first, second, again = drawn(3), drawn(), drawn(3)
        self.assertTrue((first == again).all() and (first != second).any())

    def test_moved_sequences(self):
        """Sequences that begin at given rows, the form that GPU kernels take."""
        import torch
        arguments = torch.tensor([0, 20], dtype=torch.int32), self.q, self.k, self.v, self.kernel, 0, torch.tensor([64, 30], dtype=torch.int32)
        for tail in ((0.0, None, 0.25, None, True), (0.3, self.op.seed_tensor(4), 0.2, None, True)):
            ours, theirs = self.op.attend_moved(*arguments, *tail), self.op.attend_from(*arguments, *tail)
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(ours, theirs)))
        one, meta = torch.tensor([0], dtype=torch.int32), self.k.to("meta")
        for words, at, wrong in (("k: shape", 2, self.k[:, :, :9]), ("k: shape", 2, self.k[0]), ("v: shape", 3, self.v[:1]), ("starts: shape", 0, one),
                                 ("lengths: shape", 6, one), ("k: on meta", 2, meta)):
            self.refused(words, self.op.attend_moved, *arguments[:at], wrong, *arguments[at + 1:], 0.0, None, 0.25, None, False)

    @cpu_only("the host cannot read lengths there; kernels clamp them, and wrong starts end the process's use of the GPU")
    def test_wrong_lengths_are_one_line(self):
        import torch
        q, k, v, kernel, a = self.q, self.k, self.v, self.kernel, maskc.attention
        self.refused("lengths", a, q, k, v, kernel, lengths=torch.tensor([-1, 3]))
        self.refused("lengths", a, q, k, v, kernel, lengths=torch.tensor([3, 65]))
        self.refused("starts", a, q, k, v, kernel, starts=torch.tensor([1, -2]), kind=(maskc.Error, RuntimeError))
        rows = torch.randn(10, 2, 16)
        for offsets in ([0, 3], [1, 10], [0, 2, 9]):
            self.refused(f"offsets go from {offsets[0]} to {offsets[-1]}; 0 to 10 (tokens)", a, rows, rows, rows, kernel, offsets=offsets)

    def test_a_kernel_that_is_gone_is_refused(self):
        """While a CUDA graph is captured it stays, until there is another one."""
        kernel = maskc.compile("dense", n=64, heads=2, head_dim=16)
        number = kernel._op

        def launch():
            self.op.forward_op(self.q, self.k, self.v, number, 0, 0.0, None, None, None, 0.0, None, None)
        with mock.patch("torch.cuda.is_initialized", lambda: True), mock.patch("torch.cuda.is_current_stream_capturing", lambda: True):
            del kernel
            gc.collect()
        launch()
        maskc.compile("dense", n=64, heads=2, head_dim=16)
        with self.assertRaisesRegex(RuntimeError, "gone"):
            launch()


@needs_torch
@cpu_only("FlexAttention's masks are read there by cuda_test.py")
class FlexTest(Case):
    def test_mask_mod_and_block_mask(self):
        import torch
        from torch.nn.attention.flex_attention import create_block_mask, create_mask

        def mod(b, h, q, kv):
            return ((q - kv).abs() <= 5 + h) | (kv < 2)
        dense = create_mask(mod, None, 2, 100, 100, device="cpu")[0].numpy()
        self.assertTrue((maskc.from_flex(mod, 100, heads=2) == dense).all())
        for size in (16, 32, 128):
            block = create_block_mask(mod, None, 2, 100, 100, device="cpu", BLOCK_SIZE=size)
            self.assertTrue((maskc.from_flex(block) == dense).all())
            self.assertTrue((maskc.from_flex(block, 60) == dense[:, :60, :60]).all())
        q = torch.randn(1, 2, 100, 16)
        kernel = maskc.compile(block, head_dim=16)
        theirs = torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=torch.from_numpy(dense))
        self.assertLess(error(maskc.attention(q, q, q, kernel), theirs), 1e-5)

    def test_a_full_block_needs_no_mask_mod(self):
        """(partial & mask_mod) | full: what full blocks hold is active even where mask_mod says no."""
        import torch
        from torch.nn.attention.flex_attention import BlockMask
        one, none = torch.ones(1, 1, 2, dtype=torch.int32), torch.zeros(1, 1, 2, 2, dtype=torch.int32)
        block = BlockMask.from_kv_blocks(one, none, one, none + 1, BLOCK_SIZE=16, mask_mod=lambda b, h, q, kv: q >= kv, seq_lengths=(32, 32))
        bits = maskc.from_flex(block)[0]
        self.assertTrue(bits[:, 16:].all())
        self.assertEqual(bits[:16, :16].sum(), 136)

    def test_long_masks_are_runs(self):
        """Beyond 4096 tokens there is no array of n x n; sliding windows of 5000 tokens are compiled, and are right."""
        import torch
        from torch.nn.attention.flex_attention import create_block_mask
        n, mod = 5000, lambda b, h, q, kv: ((q - kv).abs() <= 3) | (kv == 0)
        made = maskc.from_flex(mod, n)
        self.assertIsInstance(made, maskc.Runs)
        self.assertEqual(len(made.runs), 2 * n - 5)  # rows 0 to 4 have one run, as 0 is in their window or beside it
        block = create_block_mask(lambda b, h, q, kv: mod(b, h, q, kv) & (q < n), None, None, n, n, device="cpu")
        self.assertEqual(maskc.from_flex(block).runs.tolist(), made.runs.tolist())
        kernel = maskc.compile(mod, n=n, heads=1, head_dim=16)
        q = torch.randn(1, 1, n, 16)
        out, last = maskc.attention(q, q, q, kernel), [0, 4996, 4997, 4998, 4999]
        truth = torch.nn.functional.scaled_dot_product_attention(q[:, :, -1:], q[:, :, last], q[:, :, last])
        self.assertLess(error(out[:, :, -1:], truth), 1e-5)

    def test_the_batch_is_refused(self):
        import torch
        from torch.nn.attention.flex_attention import create_block_mask

        def mod(b, h, q, kv):
            return q >= kv + b
        self.refused("batch", maskc.from_flex, mod, 20)
        self.refused("batch", maskc.from_flex, create_block_mask(mod, 2, 1, 64, 64, device="cpu", BLOCK_SIZE=16))
        self.refused("n:", maskc.from_flex, mod)
        self.refused("batch", maskc.from_flex, lambda b, h, q, kv: q >= kv if b == 0 else q > kv, 20)
        self.refused("batch", maskc.from_flex, lambda b, h, q, kv: q >= kv + torch.tensor([0, 1, 2])[b], 20)
        looked = maskc.from_flex(create_block_mask(lambda b, h, q, kv: (q >= kv) & (b >= 0), 3, 1, 20, 20, device="cpu"))  # looks, and does not depend
        self.assertEqual(looked.sum(), 210)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cmocka_count.run_cases()
