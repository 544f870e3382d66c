#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mask functions of transformers with attn_implementation="maskc": exact for every sequence of a batch, also under torch.compile, or
refused in one line. Layers that compute attention themselves are refused too."""
import copy
import unittest
import warnings
from unittest import mock

from common import Transformers5, cmocka_count, error, has, needs_transformers
import maskc
from maskc.kernel import read_mask

BASE = {"vocab_size": 50, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
        "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GROUPED = BASE | {"num_key_value_heads": 2, "head_dim": 16}
CHUNKED = GROUPED | {"intermediate_size_mlp": 64, "attention_chunk_size": 8, "num_local_experts": 2, "num_experts_per_tok": 1}
N = 40


def pair(name, **named):
    """The same model on eager attention and on maskc."""
    import torch
    import transformers
    torch.manual_seed(2)
    config = getattr(transformers, name + "Config")(**named)
    kind = getattr(transformers, name + "Model")
    eager, ours = (kind._from_config(copy.deepcopy(config), attn_implementation=way).eval() for way in ("eager", "maskc"))
    ours.load_state_dict(eager.state_dict())
    return eager, ours


def tokens():
    import torch
    return torch.randint(3, 50, (2, N), generator=torch.Generator().manual_seed(3))


def positions(*lengths):
    """Returns the positions of one row of packed documents of these lengths."""
    import torch
    return torch.cat([torch.arange(n) for n in lengths])


@needs_transformers
class Functions(Transformers5):
    def setUp(self):
        import transformers
        transformers.logging.set_verbosity_error()

    def same(self, models, kept=None, most=1e-5, **inputs):
        """Hidden states of the kept tokens, and the embedding's gradient."""
        results = []
        for model in models:
            model.zero_grad()
            out = model(input_ids=tokens(), use_cache=False, **inputs)[0]
            out = out if kept is None else out * kept[..., None]
            out.square().sum().backward()
            results += [out.detach(), model.get_input_embeddings().weight.grad]
        for a, b, bound in zip(results[:2], results[2:], (most, 10 * most)):
            self.assertLess(error(b, a), bound)

    def compiled(self, model):
        import torch
        torch._dynamo.reset()
        return torch.compile(model, backend="eager", fullgraph=True)


class PackedTest(Functions):
    def test_rows_differ(self):
        import torch
        for name, more in (("Llama", GROUPED), ("Mistral", GROUPED | {"sliding_window": 6})):
            models = pair(name, **more)
            for rows in (((40,), (15, 25)), ((1, 39), (13, 13, 14))):
                self.same(models, position_ids=torch.stack([positions(*row) for row in rows]))
            self.same(models, position_ids=positions(12, 28)[None])
        applied = maskc.apply(models[1], "causal & window(5)")
        self.same((models[0], applied), position_ids=torch.stack([positions(15, 25)] * 2))

    def test_compiled(self):
        import torch
        eager, ours = pair("Llama", **GROUPED)
        compiled = self.compiled(ours)
        with torch.no_grad():
            a, b = (m(input_ids=tokens(), use_cache=False, position_ids=torch.stack([positions(40)] * 2))[0] for m in (compiled, eager))
            self.assertLess((a - b).abs().max().item(), 1e-5)
            with self.assertRaises(RuntimeError) as caught:
                compiled(input_ids=tokens(), use_cache=False, position_ids=torch.stack([positions(40), positions(15, 25)]))
        self.assertIn("packed sequences under torch.compile", str(caught.exception))


class ChunkedTest(Functions):
    def test_llama_4(self):
        import torch
        models = pair("Llama4Text", **CHUNKED)
        padding = torch.ones(2, N, dtype=torch.long)
        padding[1, :11] = 0
        self.same(models)
        self.same(models, padding, attention_mask=padding)
        compiled = self.compiled(models[1])
        with torch.no_grad():
            a, b = (m(input_ids=tokens(), use_cache=False, attention_mask=padding)[0] * padding[..., None] for m in (compiled, models[0]))
        self.assertLess((a - b).abs().max().item(), 1e-5)
        self.refused("packed sequences with chunked", models[1], input_ids=tokens(), use_cache=False,
                     position_ids=torch.stack([positions(20, 20)] * 2))


class InterfaceTest(Functions):
    def create(self, name, config=None, **named):
        import torch
        import transformers
        from transformers import masking_utils
        config = config or transformers.LlamaConfig(**GROUPED, sliding_window=7, attn_implementation="maskc")
        more = {} if "bidirectional" in name else {"cache": None}
        return getattr(masking_utils, f"create_{name}_mask")(config, torch.zeros(2, 24, 64), named.pop("attention_mask", None), **more, **named)

    def test_text_is_the_function(self):
        """The text that is read back from each pair of composed functions means the same function."""
        import torch
        from maskc.transformers_functions import CHANGED, READERS, meanings, read
        from transformers import masking_utils as m
        self.assertEqual((CHANGED, set(READERS) - set(meanings())), (set(), set()))
        zeros, q, k = torch.zeros(1, dtype=torch.long), torch.arange(24)[:, None], torch.arange(24)[None]
        causal, both, window, after = m.causal_mask_function, m.bidirectional_mask_function, m.sliding_window_bidirectional_overlay, m.sliding_window_overlay
        for function in (causal, both, after(1), after(3), window(0), window(5), m.sliding_window_causal_mask_function(4),
                         m.chunked_causal_mask_function(5, zeros), m.or_masks(m.and_masks(causal, after(3)), window(1)), m.or_masks(after(3), causal),
                         m.and_masks(m.or_masks(causal, window(2)), m.and_masks(both, after(6))), m.and_masks(after(2), after(9), causal), after(0)):
            text, _ = read(function)
            bits = torch.as_tensor(function(zeros[0], zeros[0], q, k)).expand(24, 24)
            self.assertTrue((torch.from_numpy(read_mask(text, "-n", "24")) == bits).all(), text)

    def test_refusals(self):
        import torch
        from maskc.transformers_hooks import refusing_cross_padding
        from maskc.transformers_interface import Mask
        def odd(b, h, i, j):
            return (i - j) % 2 == 1
        blocks = torch.full((2, 24), -1)
        blocks[1, 3:9] = 0
        self.refused("block_sequence_ids", self.create, "causal", block_sequence_ids=blocks)
        for name in ("causal", "sliding_window_causal", "bidirectional"):
            self.refused("a mask function of its own", self.create, name, or_mask_function=odd)
            self.refused("a mask function of its own", self.create, name, and_mask_function=odd)
        self.refused("cross-attention with padding", self.create, "bidirectional", encoder_hidden_states=torch.zeros(2, 24, 64),
                     attention_mask=torch.arange(24)[None].expand(2, -1) < 20)
        self.refused("cross-attention", self.create, "bidirectional", encoder_hidden_states=torch.zeros(2, 9, 64))
        self.assertEqual(self.create("bidirectional", encoder_hidden_states=torch.zeros(2, 24, 64)).text, "dense")
        hooked = refusing_cross_padding(lambda config, input_embeds, attention_mask, encoder_hidden_states=None: attention_mask)  # of an older release
        padded = Mask("dense", torch.tensor([20, 24]), None, 64)
        self.assertIs(hooked(config=None, input_embeds=blocks, attention_mask=padded), padded)
        for crossed in ({"args": (None, blocks, padded, blocks)}, {"config": None, "input_embeds": blocks, "attention_mask": padded, "encoder_hidden_states": blocks}):
            self.refused("cross-attention with padding", hooked, *crossed.pop("args", ()), **crossed)
        with mock.patch("maskc.transformers_functions.CHANGED", {"causal_mask_function"}):
            self.refused("a mask function of its own", self.create, "causal")

    def test_direction_of_windows(self):
        """from_transformers() states what a model asks for, or refuses the configuration."""
        from transformers import AutoConfig, modeling_utils  # noqa: F401: which registers maskc
        few = {"sliding_window": 7, "num_hidden_layers": 2}
        full, both = {"layer_types": ["full_attention"] * 2}, {"use_bidirectional_attention": True}
        for kind, more, wanted in (("mistral", full, "causal & window(6)"), ("mistral", {"is_causal": False}, "window(7)"),
                                   ("openai_privacy_filter", {}, "window(7)"), ("gemma3_text", {}, "causal & window(6)"),
                                   ("gemma3_text", both | {"layer_types": ["sliding_attention", "full_attention"]}, "layers 2\nlayer 0: window(3)\nlayer 1: dense\n"),
                                   ("gemma2", both, None), ("mistral", {"per_layer_config": {1: {"sliding_window": 5}}}, None), ("t5_gemma_module", {}, None)):
            try:
                config = AutoConfig.for_model(kind, **few, **more)
            except ValueError:  # an older transformers
                continue
            if wanted is None:
                self.refused("use attn_implementation='maskc'", maskc.from_transformers, config)
                continue
            self.assertEqual(maskc.from_transformers(config), wanted, kind)
            if kind == "mistral":
                config._attn_implementation = "maskc"
                self.assertEqual(self.create("sliding_window_causal", config).text, wanted)

    def test_caches(self):
        import torch
        from maskc.transformers_interface import mask_interface
        from transformers import masking_utils, DynamicCache
        self.refused("caches are not supported", mask_interface, 2, 8, 8, 4, mask_function=masking_utils.causal_mask_function)
        self.refused("cached keys", mask_interface, 2, 8, 8, torch.tensor(4), mask_function=masking_utils.causal_mask_function)
        self.refused("[2, 9]", mask_interface, 2, 8, 8, mask_function=masking_utils.causal_mask_function, attention_mask=torch.ones(2, 9))
        eager, ours = pair("Llama", **GROUPED)
        cache = DynamicCache(config=ours.config)
        with torch.no_grad():
            first = ours(input_ids=tokens(), past_key_values=cache)[0]
            self.assertLess((first - eager(input_ids=tokens())[0]).abs().max().item(), 1e-5)
            self.refused("caches", ours, input_ids=tokens()[:, :1], past_key_values=cache)

    def test_named_arguments_that_change_the_result(self):
        import torch
        from maskc.transformers_attention import attention_forward
        t = torch.zeros(1, 2, 8, 16)
        for name in ("head_mask", "softcap", "s_aux"):
            self.refused(name, attention_forward, torch.nn.Module(), t, t, t, None, **{name: torch.ones(2)})

    def test_probabilities_that_layers_do_not_hand_on(self):
        import torch
        import transformers
        config = transformers.SiglipVisionConfig(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, image_size=16, patch_size=8)
        model, pixels = transformers.SiglipVisionModel._from_config(config, attn_implementation="maskc"), torch.zeros(1, 3, 16, 16)
        self.refused("output_attentions", model, pixels, output_attentions=True)
        self.assertEqual(model(pixels).last_hidden_state.shape, (1, 4, 32))

    def test_bidirectional_decoder(self):
        self.same(pair("Llama", **GROUPED, is_causal=False))


class LayersTest(Functions):
    def test_layers_that_compute_attention_themselves(self):
        import torch
        import transformers
        padding = torch.ones(2, N, dtype=torch.long)
        for name in ("MPNet", "RoFormer", "MegatronBert"):
            model = getattr(transformers, name + "Model")._from_config(getattr(transformers, name + "Config")(**BASE), attn_implementation="maskc").eval()
            self.refused("compute attention themselves", model, input_ids=tokens(), attention_mask=padding)
        self.refused("do not take an attention implementation", model.set_attn_implementation, "maskc")
        config = transformers.GPTNeoConfig(**BASE, num_layers=2, num_heads=4, attention_types=[[["global"], 2]])
        self.refused("do not take an attention implementation", transformers.GPTNeoModel._from_config, config, attn_implementation="maskc")

    def test_mask_is_no_tensor(self):
        import torch
        from maskc.transformers_interface import Mask
        made, scores = Mask("dense", None, None, 64), torch.zeros(2, 2)
        for use in (lambda: made + scores, lambda: scores + made, lambda: 1.0 - made, lambda: made[:, None], lambda: made.to(scores), lambda: made.shape,
                    lambda: torch.where(made, scores, scores), lambda: scores.masked_fill(made, 0), lambda: bool(made), lambda: made == 0, lambda: ~made):
            self.refused("compute attention themselves", use)
        self.assertEqual(copy.deepcopy(made).text, "dense")
        self.assertFalse(hasattr(made, "shape"))

    @unittest.skipUnless(has("accelerate"), "this Python has no accelerate")
    def test_mask_is_moved(self):
        """As accelerate moves the arguments of a layer whose weights are elsewhere."""
        import torch
        from accelerate.utils import send_to_device
        from maskc.transformers_interface import Mask
        given = {"attention_mask": Mask("causal", torch.ones(2, dtype=torch.int32), None, 64, torch.zeros(3, dtype=torch.int32))}
        moved = send_to_device(given, "meta", non_blocking=True)["attention_mask"]
        self.assertEqual((moved.text, moved.lengths.device.type, moved.starts, moved.longest, moved.offsets.shape), ("causal", "meta", None, 64, (3,)))


class AppliedTest(Functions):
    def test_layers_under_compile(self):
        """Masks that differ by layer, and masks that were applied after the code was compiled: as the model itself computes."""
        import torch
        _, ours = pair("Bert", **BASE)
        compiled, noise = self.compiled(ours), torch.rand(2, 4, 128, 128, generator=torch.Generator().manual_seed(4)) < .5
        results = []
        for mask, layers in (("layers 2\nlayer 0: window(2)\nlayer 1: causal", None), ("window(5)", [1]), (noise, None), (noise.flip(0), None), (None, None)):
            maskc.apply(ours, mask, layers)
            with torch.no_grad():
                theirs = ours(input_ids=tokens())[0]
                self.assertLess(error(compiled(input_ids=tokens())[0], theirs), 1e-6)
            self.assertTrue(all(error(theirs, other) > 1e-3 for other in results))
            results.append(theirs)


class AutocastTest(Functions):
    def test_rotary_products(self):
        """Under autocast they make queries and keys float32, beside values of bfloat16."""
        import torch
        models = pair("Llama", **GROUPED)
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
            theirs, ours, compiled = (m(input_ids=tokens(), use_cache=False)[0] for m in (*models, self.compiled(models[1])))
        self.assertEqual(ours.dtype, theirs.dtype)
        self.assertLess(error(ours, theirs), 1e-2)
        self.assertTrue(torch.equal(compiled, ours))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.same(models, most=2e-2)

    def test_dtypes_that_differ(self):
        import torch
        from maskc.transformers_attention import attention_forward
        q, half = torch.zeros(1, 2, 8, 16), torch.zeros(1, 2, 8, 16, dtype=torch.bfloat16)
        for wrong in ((q, q, half), (q, half, q), (half, q, q)):
            self.refused("torch.bfloat16", attention_forward, torch.nn.Module(), *wrong, None)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.refused("torch.float64", attention_forward, torch.nn.Module(), q.double(), q, q, None)
            self.refused("value torch.float64", attention_forward, torch.nn.Module(), q, q, q.double(), None)


class BiasTest(Functions):
    def test_size_under_compile(self):
        """T5's position bias has the size of the batch's power of two, not of thousands of positions."""
        import torch
        import transformers
        from maskc import transformers_attention
        config = transformers.T5Config(d_model=64, d_kv=16, num_heads=4, num_layers=1, d_ff=64, vocab_size=50)
        model = transformers.T5EncoderModel._from_config(config, attn_implementation="maskc").eval()
        sizes, padded_bias = [], transformers_attention.padded_bias

        def recorded(bias, n, starts):
            sizes.append(n)
            return padded_bias(bias, n, starts)

        with mock.patch.object(transformers_attention, "padded_bias", recorded), torch.no_grad():
            compiled = self.compiled(model)
            self.assertLess((compiled(input_ids=tokens())[0] - model(input_ids=tokens())[0]).abs().max().item(), 1e-5)
        self.assertEqual(sizes, [64, 64])

    def padded(self, starts, bias, compiled=False):
        """[output of the tokens, gradients of query and bias] of sequences that begin at `starts`, ours and by the definition."""
        import torch
        from maskc.transformers_attention import attention_forward
        from maskc.transformers_interface import Mask
        torch.manual_seed(5)
        starts, results = torch.tensor(starts, dtype=torch.int32), []
        tensors = torch.randn(3, len(starts), 2, 12, 16)
        kept, mask = torch.arange(12) >= starts[:, None], Mask("dense", 12 - starts, starts, 64)

        def ours(q, x):
            return attention_forward(torch.nn.Module(), q, *tensors[1:], mask, position_bias=x)[0].transpose(1, 2)

        def theirs(q, x):
            scores = q @ tensors[1].transpose(2, 3) / 4 + x
            return scores.masked_fill(~kept[:, None, None], -torch.inf).softmax(-1) @ tensors[2]

        for attend in (self.compiled(ours) if compiled else ours, theirs):
            q, x = tensors[0].clone().requires_grad_(), bias.clone().requires_grad_()
            out = attend(q, x) * kept[:, None, :, None]
            results += [out, *torch.autograd.grad(out.square().sum(), (q, x))]
        return results

    def test_left_padding(self):
        """A bias of places on a page is shifted where all sequences begin alike, else refused; one of distances serves all."""
        import torch
        places, table = torch.randn(1, 2, 12, 12), torch.randn(1, 2, 23)
        at = torch.arange(12)
        for starts, bias in (([5], places), ([3, 3], places), ([3, 0], table[..., at[:, None] - at + 11])):
            for compiled in (False, True):
                out, dq, dx, *theirs = self.padded(starts, bias, compiled)
                if starts == [3, 0]:  # a table's gradient
                    dx, theirs[2] = (sum(g.diagonal(k, 2, 3).sum() * k for k in range(-11, 12)) for g in (dx, theirs[2]))
                for a, b in zip((out, dq, dx), theirs):
                    self.assertLess(error(a, b), 1e-5, starts)
        self.refused("left padding of different lengths", self.padded, [3, 0], places)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cmocka_count.run_cases()
