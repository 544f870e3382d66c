#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are kernels of attn_implementation="maskc" and apply() compiled for the device of the tensors, for each GPU its own, also while
torch.compile traces and after a model moved? Do equal masks share kernels, and are these freed with the last model? Fake tensors
are on GPUs that the machine need not have."""
import copy
import gc
import pickle
import unittest
import warnings
import weakref
from unittest import mock

from common import Case, cmocka_count, has_gpu, needs_torch, needs_transformers
import maskc

DEVICES = ("cuda:1", "cpu", "cuda:0", "cuda:1", "cpu")
CONFIG = {"vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
          "max_position_embeddings": 96}


class Recorder:
    """compile() for the CPU; records the target and the device that the caller asked for."""

    def __init__(self):
        self.asked, self.alive = [], weakref.WeakSet()

    def __call__(self, *arguments, **named):
        self.asked.append((named.pop("target", "none"), named.pop("device", "none")))
        kernel = maskc.compile(*arguments, **named)
        self.alive.add(kernel)
        return kernel

    def patched(self):
        from maskc import transformers_kernels
        return mock.patch.multiple(transformers_kernels, compile_mask=self, KERNELS=transformers_kernels.Kept())


def bert():
    import torch
    import transformers
    torch.manual_seed(2)
    model = transformers.BertModel(transformers.BertConfig(**CONFIG)).eval()
    model.set_attn_implementation("maskc")
    return model


def move(model, device):
    """Module.to() for fake tensors."""
    import torch
    for module in model.modules():
        for name, p in module._parameters.items():
            module._parameters[name] = None if p is None else torch.nn.Parameter(p.detach().to(device))
        for name, b in module._buffers.items():
            module._buffers[name] = None if b is None else b.to(device)


@needs_transformers
@unittest.skipIf(has_gpu(), "on a machine with a GPU torch uses the GPUs of fake tensors, and their numbers are made up: cuda_test.py has real ones")
class DeviceTest(Case):
    def places(self, mask, prepare=lambda layer: layer):
        """Returns the requests that compile() got from one attention layer as it moves through DEVICES."""
        import torch
        from torch._subclasses.fake_tensor import FakeTensorMode
        recorder, model = Recorder(), bert()
        if mask is not None:
            maskc.apply(model, mask)
        with recorder.patched(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
            layer = model.encoder.layer[0].attention.self
            for module in layer.modules():
                for name, p in module._parameters.items():
                    module._parameters[name] = torch.nn.Parameter(mode.from_tensor(p.detach()))
            for device in DEVICES:
                move(layer, device)
                out = prepare(layer)(torch.empty(2, 40, 64, device=device))[0]
                self.assertEqual(str(out.device), device)
        return recorder.asked

    def test_the_model_s_own_mask(self):
        self.assertEqual(self.places(None), [(d, d) for d in DEVICES[:3]])

    def test_apply(self):
        import numpy
        self.assertEqual(self.places("window(5)"), [(d, d) for d in DEVICES[:3]])
        self.assertEqual(self.places(numpy.tri(96, k=-1, dtype=bool)), [(d, d) for d in DEVICES[:3]])

    def test_while_torch_compile_traces(self):
        import numpy
        import torch

        def traced(layer):
            torch._dynamo.reset()
            return torch.compile(layer, backend="eager", fullgraph=True)
        self.assertEqual(self.places(None, traced), [(d, d) for d in DEVICES[:3]])
        self.assertEqual(self.places(numpy.tri(96, k=-4, dtype=bool), traced), [(d, d) for d in DEVICES[:3]])

    def test_other_devices_are_refused(self):
        import torch
        from maskc.transformers_kernels import place_of
        self.assertEqual(place_of(torch.device("meta")), "cpu")
        self.refused("tensors on mps", place_of, torch.device("mps:0"))


@needs_transformers
class FreedTest(Case):
    def outputs(self, models):
        import torch
        ids = torch.arange(40)[None]
        with torch.no_grad():
            return [model(input_ids=ids).last_hidden_state for model in models]

    def test_equal_masks_share_a_kernel(self):
        """Arrays and text: one kernel for each mask, freed with the last model that has it."""
        import numpy
        import torch
        recorder = Recorder()
        with recorder.patched():
            for mask, another in ((lambda: numpy.tri(96, k=-2, dtype=bool), numpy.tri(96, k=-3, dtype=bool)), (lambda: "window(6)", "window(7)")):
                models = [maskc.apply(bert(), mask()) for _ in range(2)]
                models.append(copy.deepcopy(models[1]))
                first, *others = self.outputs(models)
                self.assertTrue(all(torch.equal(first, out) for out in others))
                self.assertEqual(len(recorder.alive), 1)
                models.append(maskc.apply(bert(), another))
                self.assertFalse(torch.equal(self.outputs(models)[-1], first))
                self.assertEqual(len(recorder.alive), 2)
                del models[:3]
                gc.collect()
                self.assertEqual(len(recorder.alive), 1)
                models.clear()
                gc.collect()
                self.assertEqual(len(recorder.alive), 0)

    def test_runs_share_by_content(self):
        from maskc.transformers_kernels import share
        one, equal, other = (share(maskc.Runs((1, 1, 4, 4), range(5), [[0, end]] * 4)) for end in (3, 3, 2))
        self.assertTrue(one is equal and one is not other)
        self.assertIs(pickle.loads(pickle.dumps(one)), one)
        self.assertIs(copy.deepcopy(one), one)
        end = weakref.ref(other)
        del other
        self.assertIsNone(end())

    def test_another_mask_for_a_compiled_model(self):
        """torch.compile guards the mask: code that was compiled for one mask does not serve the next."""
        import numpy
        import torch
        torch._dynamo.reset()
        model = bert()
        layer = model.encoder.layer[0].attention.self
        compiled, hidden = torch.compile(layer, backend="eager", fullgraph=True), torch.randn(1, 40, 64)
        for mask in (numpy.tri(96, k=-2, dtype=bool), numpy.tri(96, k=-5, dtype=bool), "window(3)", "window(5)"):
            maskc.apply(model, mask)
            with torch.no_grad():
                self.assertTrue(torch.equal(compiled(hidden)[0], layer(hidden)[0]))

    def test_text_is_bounded(self):
        from maskc import transformers_kernels as t
        kept = t.Kept()
        for k in range(t.MOST + 10):
            kept.add(k, str(k))
            self.assertEqual(kept.find(0), "0")
        self.assertEqual(len(kept), t.MOST)
        self.assertIsNone(kept.find(1))


@needs_torch
class KernelTest(Case):
    def test_loaded_elsewhere(self):
        import torch
        kernel = maskc.compile("window(3)", n=32, heads=2, head_dim=16, target="cpu")
        self.assertIs(kernel.to("cpu"), kernel)
        self.assertIs(kernel.to(torch.device("cpu")), kernel)
        with self.assertRaises(maskc.Error):
            kernel.to("cuda:7")
        self.refused("unknown device", kernel.to, "mps")

    def test_seeds_are_on_the_cpu(self):
        """Seeds stay on the CPU under any default device of torch."""
        import torch
        from maskc import torch_op
        with torch.device("meta"):
            self.assertEqual([torch_op.seed_tensor(seed).device.type for seed in (None, 3)], ["cpu", "cpu"])

    def test_the_target_names_the_gpu(self):
        from maskc.kernel import named_gpu
        for target, device in (("cpu", None), ("cuda", None), ("cuda:1", "cuda:1"), ("cpu,cuda:1", "cuda:1"), ("cuda:0,cuda:1", None)):
            self.assertEqual(named_gpu(target), device)

    @unittest.skipIf(has_gpu(), "this machine has a GPU")
    def test_without_a_gpu(self):
        self.refused("NVIDIA driver", maskc.compile, "dense", n=8, heads=1, head_dim=16, target="cuda:1")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cmocka_count.run_cases()
