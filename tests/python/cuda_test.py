#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a GPU: is attention the definition in float64 for each kernel family, on strides, lengths, packed batches, grouped heads, biases,
dropout and autocast; under torch.compile; in CUDA graphs; on the streams of four threads? Do models move between the devices, and are
kernels and tensors of different devices refused?

usage: cuda_test.py --device cuda
"""
import threading
import unittest
import warnings

from common import DEVICE, KIND, Case, active_keys, attend, cmocka_count, error, gradients, has, needs_torch
import maskc

LIMITS = {"float32": 1e-5, "bfloat16": 1e-2, "float16": 2e-3}
FAMILIES = [("longformer(64,2)", 512, 64, "bfloat16"), ("star", 128, 64, "bfloat16"), ("longformer(64,2)", 512, 64, "float32"),
            ("dam-s-example", 128, 64, "float16"), ("blockbert-2", 1024, 64, "bfloat16"), ("longformer(64,2)", 512, 128, "bfloat16")]
HEADS = 12
on_gpu = unittest.skipUnless(KIND == "cuda", "--device cuda is not given")


def operands(b, n, d, dtype, heads=HEADS, keys=HEADS):
    """q, k, v and the gradient of O, [B, H, N, D], in memory [B, N, H, D]."""
    import torch
    return [torch.randn(b, n, h, d, dtype=getattr(torch, dtype)).transpose(1, 2) for h in (heads, keys, keys, heads)]


def new_kernel(dtype="bfloat16", n=256, **named):
    return maskc.compile("longformer(32,2)", n=n, heads=HEADS, head_dim=64, dtype=dtype, **named)


@needs_torch
@on_gpu
class FeaturesTest(Case):
    """Each feature, forward and every gradient, against float64."""

    def judge(self, kernel, tensors, active, grad, limit, bias=None, **named):
        """named: of attention(). active: bool, as the launch has it."""
        import torch
        leaves = [t.detach().requires_grad_() for t in tensors]
        x = bias.detach().requires_grad_() if bias is not None else None
        out = maskc.attention(*leaves, kernel, bias=x, **named)
        got = [out, *torch.autograd.grad(out, leaves + ([x] if bias is not None else []), grad)]
        group = tensors[0].shape[1] // tensors[1].shape[1]
        q, k, v = tensors[0].double(), *(t.double().repeat_interleave(group, 1) for t in tensors[1:])
        truth = gradients(q, k, v, active, q.shape[-1] ** -0.5, grad.double(), bias=None if bias is None else bias.double(), kind=kernel.bias)
        if group > 1:
            truth[2:4] = [t.unflatten(1, (-1, group)).sum(2) for t in truth[2:4]]
        for name, a, b in zip(("O", "dQ", "dK", "dV", "dX"), got, truth):
            self.assertEqual(a.device, tensors[0].device)
            self.assertLess(error(a, b), limit, f"{kernel} {name}")

    def test_families(self):
        for mask, n, d, dtype in FAMILIES:
            kernel = maskc.compile(mask, n=n, heads=HEADS, head_dim=d, dtype=dtype)
            *tensors, grad = operands(2, n, d, dtype)
            self.judge(kernel, tensors, active_keys(kernel), grad, LIMITS[dtype])

    def test_lengths_and_starts(self):
        import torch
        kernel, (*tensors, grad) = new_kernel("float32"), operands(2, 200, 64, "float32")
        near = torch.arange(200)
        for lengths, starts in (([200, 77], None), ([150, 9], [50, 100])):
            active = torch.zeros(2, HEADS, 200, 200, dtype=torch.bool)
            for b, length in enumerate(lengths):
                s = starts[b] if starts else 0
                active[b, :, s:s + length, s:s + length] = active_keys(kernel)[:, :length, :length]
            named = {"lengths": torch.tensor(lengths), "starts": torch.tensor(starts) if starts else None}
            self.judge(kernel, tensors, active, grad, 1e-5, **named)
            out = maskc.attention(*tensors, kernel, **named)
            outside = ~active.any(-1) & (near >= 0)
            self.assertEqual(out[outside].abs().sum(), 0)

    def test_packed(self):
        import torch
        kernel, ends = new_kernel(), [0, 200, 201, 457]
        *tensors, grad = (torch.randn(457, HEADS, 64, dtype=torch.bfloat16) for _ in range(4))
        leaves = [t.requires_grad_() for t in tensors]
        out = maskc.attention(*leaves, kernel, offsets=torch.tensor(ends))
        got = [out, *torch.autograd.grad(out, leaves, grad)]
        for begin, end in zip(ends, ends[1:]):
            q, k, v, g = (t[begin:end].detach().transpose(0, 1)[None].double() for t in (*tensors, grad))
            truth = gradients(q, k, v, active_keys(kernel)[:, :end - begin, :end - begin], 0.125, g)
            for a, b in zip(got, truth):
                self.assertLess(error(a[begin:end].transpose(0, 1)[None], b), LIMITS["bfloat16"])

    def test_fused_qkv_is_read_in_place(self):
        import torch
        kernel, qkv = new_kernel(), torch.randn(2, 256, 3, HEADS, 64, dtype=torch.bfloat16)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        self.judge(kernel, [q, k, v], active_keys(kernel), torch.randn_like(q), LIMITS["bfloat16"])

    def test_grouped_heads(self):
        kernel = new_kernel(kv_heads=3)
        *tensors, grad = operands(2, 256, 64, "bfloat16", keys=3)
        self.judge(kernel, tensors, active_keys(kernel), grad, LIMITS["bfloat16"])

    def test_bias_and_its_gradient(self):
        import torch
        for kind in ("add", "scale"):
            kernel, (*tensors, grad) = new_kernel(bias=kind), operands(2, 256, 64, "bfloat16")
            self.judge(kernel, tensors, active_keys(kernel), grad, LIMITS["bfloat16"], bias=torch.randn(HEADS, 256, 256))

    def test_dropout(self):
        """The same seed gives the same entries, and their mean is that of all."""
        import torch
        kernel, (q, k, v, _) = new_kernel("float32", dropout=True), operands(2, 256, 64, "float32")
        first, again, other = (maskc.attention(q, k, v * 0 + 1, kernel, dropout_p=0.2, seed=seed) for seed in (5, 5, 6))
        self.assertTrue(torch.equal(first, again) and not torch.equal(first, other))
        self.assertLess(abs(first.mean() - 1), 0.02)

    def test_autocast(self):
        import torch
        kernel, (q, k, v, _) = new_kernel(), operands(2, 256, 64, "float32")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = maskc.attention(q, k, v, kernel)
        truth = attend(q.double(), k.double(), v.double(), active_keys(kernel), 0.125)[0]
        self.assertEqual(out.dtype, torch.bfloat16)
        self.assertLess(error(out, truth), LIMITS["bfloat16"])

    def test_block_mask_of_flex_attention(self):
        import torch
        from torch.nn.attention.flex_attention import create_block_mask
        block = create_block_mask(lambda b, h, i, j: ((i - j).abs() <= 5 + h) | (j < 2), None, HEADS, 300, 300, device=DEVICE)
        kernel, near = maskc.compile(block, head_dim=64), torch.arange(300)
        active = ((near[:, None] - near).abs() <= 5 + torch.arange(HEADS)[:, None, None]) | (near < 2)
        self.assertTrue(torch.equal(active_keys(kernel), active))


@needs_torch
@on_gpu
class OrderTest(Case):
    """Launches are in the order of torch's current stream."""

    def test_torch_compile(self):
        import torch
        kernel, (q, k, v, grad) = new_kernel(), operands(2, 256, 64, "bfloat16")
        results = []
        for f in (lambda *t: maskc.attention(*t, kernel), torch.compile(lambda *t: maskc.attention(*t, kernel), fullgraph=True)):
            leaves = [t.detach().requires_grad_() for t in (q, k, v)]
            out = f(*leaves)
            results.append([out, *torch.autograd.grad(out, leaves, grad)])
        for a, b in zip(*results):
            self.assertTrue(torch.equal(a, b))

    def captured(self, work):
        """work() once outside of a graph, and recorded."""
        import torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            made = work()
        return graph, made

    def test_cuda_graph(self):
        import torch
        kernel, (q, k, v, grad) = new_kernel(), operands(2, 256, 64, "bfloat16")
        leaves = [t.detach().clone().requires_grad_() for t in (q, k, v)]

        def work():
            out = maskc.attention(*leaves, kernel)
            return [out, *torch.autograd.grad(out, leaves, grad)]
        graph, made = self.captured(work)
        for _ in range(2):
            with torch.no_grad():
                for t in leaves:
                    t.copy_(torch.randn_like(t))
            graph.replay()
            for a, b in zip(made, work()):
                self.assertTrue(torch.equal(a, b))

    def test_a_graph_needs_a_seed(self):
        """A seed that is drawn while a graph is captured would be that of every replay."""
        kernel, (q, k, v, _) = new_kernel(dropout=True), operands(1, 64, 64, "bfloat16")
        self.captured(lambda: maskc.attention(q, k, v, kernel, dropout_p=0.1, seed=3))

        def work():
            try:
                return maskc.attention(q, k, v, kernel, dropout_p=0.1)
            except maskc.Error as e:
                return e
        self.assertIn("seed", str(self.captured(work)[1]))

    def test_four_threads_with_a_stream_each(self):
        import torch
        kernel, (q, k, v, _) = new_kernel(), operands(2, 256, 64, "bfloat16")
        wanted, made = maskc.attention(q, k, v, kernel), [None] * 4
        torch.cuda.synchronize()

        def work(number):
            with torch.cuda.stream(torch.cuda.Stream(DEVICE)):
                made[number] = [maskc.attention(q, k, v, kernel) for _ in range(20)]
                torch.cuda.current_stream().synchronize()
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        [t.start() for t in threads], [t.join() for t in threads]
        self.assertTrue(all(torch.equal(wanted, out) for outputs in made for out in outputs))

    def test_in_order_with_torch(self):
        """Inputs that torch still computes when attention is called."""
        import torch
        kernel, (q, k, v, _) = new_kernel(), operands(2, 256, 64, "bfloat16")
        stream, big = torch.cuda.Stream(), torch.randn(4096, 4096)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            late = torch.zeros_like(q)
            for _ in range(20):
                big = (big @ big).tanh()
            late.copy_(q + 0 * big[0, 0])
            out = maskc.attention(late, k, v, kernel)
        stream.synchronize()
        self.assertTrue(torch.equal(out, maskc.attention(q, k, v, kernel)))


@needs_torch
@on_gpu
class DevicesTest(Case):
    def test_other_devices_are_refused(self):
        import torch
        here, there = new_kernel("float32"), new_kernel("float32", target="cpu")
        tensors = [t.cpu() for t in operands(1, 64, 64, "float32")[:3]]
        gpu = str(torch.zeros(()).device)
        self.refused(f"q: on cpu, but the kernel was loaded for {gpu}", maskc.attention, *tensors, here)
        self.refused(f"q: on {gpu}, but the kernel was loaded for cpu", maskc.attention, *(t.to(gpu) for t in tensors), there)
        self.refused(f"k: on cpu, but q is on {gpu}", maskc.attention, tensors[0].to(gpu), *tensors[1:], here)
        self.refused("compile with target='cpu'", maskc.attention, *(t.numpy() for t in tensors), here)

    def test_every_gpu(self):
        import torch
        *tensors, _ = operands(2, 256, 64, "bfloat16")
        kernel = new_kernel()
        wanted = maskc.attention(*tensors, kernel).cpu()
        for k in range(torch.cuda.device_count()):
            out = maskc.attention(*(t.to(f"cuda:{k}") for t in tensors), kernel.to(f"cuda:{k}"))
            self.assertEqual(out.device.index, k)
            self.assertTrue(torch.equal(out.cpu(), wanted) or torch.cuda.get_device_capability(k) != torch.cuda.get_device_capability(DEVICE))

    @unittest.skipUnless(has("transformers"), "this Python has no transformers")
    def test_models_move(self):
        import torch
        import transformers
        config = transformers.BertConfig(vocab_size=99, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
                                         max_position_embeddings=96)
        model, ids = transformers.BertModel(config).eval(), torch.randint(3, 99, (2, 40))
        wanted = model(input_ids=ids).last_hidden_state
        model.set_attn_implementation("maskc")
        for device in (DEVICE, "cpu", DEVICE):
            out = model.to(device)(input_ids=ids.to(device)).last_hidden_state
            self.assertEqual(out.device.type, device.partition(":")[0])
            self.assertLess(error(out, wanted), 1e-4)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cmocka_count.run_cases()
