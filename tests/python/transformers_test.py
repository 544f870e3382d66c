#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do transformers' families with attn_implementation="maskc" compute what their own eager attention does, padded on either side,
forward and every gradient? Is what cannot be done refused by name, and does apply() change the mask and nothing else?"""
import copy
import functools
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

from common import DEVICE, Case, cmocka_count, error, needs_transformers
import maskc

COMMON = {"vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
          "max_position_embeddings": 96, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
FAMILIES = {  # name: (configuration, model, what differs)
    "bert": ("BertConfig", "BertModel", {}),
    "roberta": ("RobertaConfig", "RobertaModel", {}),
    "xlm-roberta": ("XLMRobertaConfig", "XLMRobertaModel", {}),
    "distilbert": ("DistilBertConfig", "DistilBertModel", {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 96}),
    "electra": ("ElectraConfig", "ElectraModel", {"embedding_size": 32}),
    "modernbert": ("ModernBertConfig", "ModernBertModel", {"num_hidden_layers": 4, "local_attention": 8, "global_attn_every_n_layers": 3,
                                                           "cls_token_id": 1, "sep_token_id": 2}),
    "nomic-bert": ("NomicBertConfig", "NomicBertModel", {}),
    "gte": ("GteConfig", "GteModel", {}),
    "eurobert": ("EuroBertConfig", "EuroBertModel", {"num_key_value_heads": 2, "mask_token_id": 3}),
    "jina-v3": ("JinaEmbeddingsV3Config", "JinaEmbeddingsV3Model", {}),
    "t5": ("T5Config", "T5EncoderModel", {"d_model": 64, "d_kv": 16, "num_heads": 4, "num_layers": 2, "d_ff": 96}),
}
LENGTHS = (40, 23, 7)


def pair(name):
    """(the model on eager attention, the same on maskc), or None where this transformers has none."""
    import torch
    import transformers
    config, model, more = FAMILIES[name]
    if not hasattr(transformers, model):
        return None
    torch.manual_seed(2)
    configuration = getattr(transformers, config)(**(COMMON | more))
    ours = getattr(transformers, model)(copy.deepcopy(configuration)).eval()
    eager = getattr(transformers, model)(configuration).eval()
    eager.load_state_dict(ours.state_dict())
    eager.set_attn_implementation("eager")
    ours.set_attn_implementation("maskc")
    return eager, ours


def padding(side):
    import torch
    mask = torch.zeros(len(LENGTHS), LENGTHS[0], dtype=torch.long)
    for row, length in zip(mask, LENGTHS):
        row[:] = 1
        if side == "right":
            row[length:] = 0
        elif side == "left":
            row[:LENGTHS[0] - length] = 0
    return mask


def step(model, ids, mask, weight):
    """[hidden states of the tokens, each parameter's gradient]."""
    model.zero_grad()
    out = model(input_ids=ids, attention_mask=mask).last_hidden_state * mask[..., None]
    (out * weight).sum().backward()
    return [out] + [p.grad.clone() for p in model.parameters() if p.grad is not None]


@needs_transformers
class FamiliesTest(Case):
    def family(self, name):
        import torch
        models = pair(name)
        if models is None:
            self.skipTest(f"this transformers has no {FAMILIES[name][1]}")
        ids = torch.randint(3, 99, (len(LENGTHS), LENGTHS[0]), device="cpu", generator=torch.Generator("cpu").manual_seed(3)).to(DEVICE)
        weight = torch.randn(len(LENGTHS), LENGTHS[0], 64, device="cpu", generator=torch.Generator("cpu").manual_seed(4)).to(DEVICE)
        for side in ("none", "right", "left"):
            mask = padding(side)
            theirs, ours = (step(m, ids.masked_fill(mask == 0, 0), mask, weight) for m in models)
            self.assertEqual(len(theirs), len(ours))
            self.assertGreater(len(ours), 10)
            self.assertLess(error(ours[0], theirs[0]), 1e-5, f"{name} {side}")
            for a, b in zip(ours[1:], theirs[1:]):
                self.assertLess(error(a, b), 1e-4, f"{name} {side} {list(a.shape)}")
        return models[1], ids

    def refusals(self, model, ids):
        import torch
        mask = padding("right")
        mask[0, 5] = 0
        self.refused("holes", model, input_ids=ids, attention_mask=mask)
        self.refused("never stored: use 'eager'", model, input_ids=ids, output_attentions=True)
        self.refused("[3, 1, 40, 40]", model, input_ids=ids, attention_mask=torch.zeros(3, 1, 40, 40))

    def key_heads(self, model, ids):
        """Grouped keys are repeated only if no kernel for them can be compiled."""
        from maskc import transformers_attention, transformers_kernels as t
        compile_mask = t.compile_mask

        def compiled_ahead(*arguments, **named):
            if named["kv_heads"] != named["heads"]:
                raise maskc.Error(3, "no compiler")
            return compile_mask(*arguments, **named)

        with mock.patch.object(transformers_attention, "repeat_heads", side_effect=AssertionError("keys are repeated")):
            ours = model(input_ids=ids).last_hidden_state
        with mock.patch.multiple(t, KERNELS=t.Kept(), REPEATED=set(), compile_mask=compiled_ahead):
            repeated = model(input_ids=ids).last_hidden_state
            self.assertEqual(len(t.REPEATED), 1)
        self.assertLess(error(repeated, ours), 1e-6)


def add_family(name):
    def test(self):
        model, ids = self.family(name)
        if "num_key_value_heads" in FAMILIES[name][2]:
            self.key_heads(model, ids)
        if name == "bert":
            self.refusals(model, ids)
    setattr(FamiliesTest, f"test_{name.replace('-', '_')}", test)


for family in FAMILIES:
    add_family(family)


@needs_transformers
class RegistrationTest(Case):
    def registered(self, program):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.strip().split("\n")[-1:], ["True"], done.stderr)

    def test_before_and_after(self):
        """Here maskc came first."""
        from transformers.modeling_utils import AttentionInterface
        self.assertIn("maskc", AttentionInterface._global_mapping)
        self.registered("import torch\nfrom torch._subclasses import FakeTensorMode\nfrom transformers.modeling_utils import AttentionInterface as A\n"
                        "with FakeTensorMode(), torch.inference_mode(), torch.device('meta'): import maskc\n"  # tensors without memory
                        "from maskc.transformers_functions import CHANGED\nprint('maskc' in A._global_mapping and not CHANGED)")

    def test_import_takes_neither_torch_nor_transformers(self):
        self.registered("import maskc, sys\nprint(not {'torch', 'transformers', 'numpy'} & set(sys.modules))")


@needs_transformers
class ApplyTest(Case):
    def test_changes_the_mask(self):
        import torch
        eager, ours = pair("bert")
        maskc.apply(ours, "window(3)|global(0)")
        ids, near = torch.randint(3, 99, (1, 30)), torch.arange(30)
        bits = ((near[:, None] - near).abs() <= 3) | (near == 0) | (near[:, None] == 0)
        theirs = eager(input_ids=ids, attention_mask=torch.zeros(1, 1, 30, 30).masked_fill(~bits, -1e30)).last_hidden_state
        self.assertLess(error(ours(input_ids=ids).last_hidden_state, theirs), 1e-5)
        self.refused("never stored: `maskbert attention` has the maps", ours, input_ids=ids, output_attentions=True)
        for wrong in ([7], [-1], [True], [.5], [], 0, "ab"):
            self.refused(f"layers: {wrong[0]} is not a whole number from 0 to 1" if wrong in ([7], [-1]) else "layers", maskc.apply, ours, "dense", layers=wrong)
        self.refused("layers", maskc.apply, ours, None, layers=[0])
        for wrong in (None, "dense", bits):
            self.refused("model:", maskc.apply, wrong, ours, kind=TypeError)
        self.refused("model: DataParallel; a model of transformers is expected, as in maskc.apply(model, mask) (here model.module)",
                     maskc.apply, torch.nn.DataParallel(ours, []), "dense", kind=TypeError)
        self.refused("shares this model's configuration", type(ours)(ours.config), input_ids=ids)
        with self.assertWarnsRegex(UserWarning, "'sdpa' ignores the mask that was applied to BertModel"):
            ours.set_attn_implementation("sdpa")

    def test_attention_to_an_encoder_keeps_its_tokens(self):
        """A mask is of the tokens that attend to each other."""
        import torch
        import transformers
        t5 = transformers.T5Config(vocab_size=99, d_model=64, d_kv=16, num_heads=4, num_layers=1, num_decoder_layers=1, d_ff=96, pad_token_id=0)
        bart = transformers.BartConfig(vocab_size=99, d_model=64, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
                                       decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_position_embeddings=96)
        ids, causal = torch.randint(3, 99, (2, 30)), torch.zeros(1, 1, 30, 30).masked_fill(torch.ones(30, 30).triu(1) > 0, -1e30)
        for kind, config in ((transformers.T5Model, t5), (transformers.BartModel, bart)):
            torch.manual_seed(2)
            eager, ours = (kind._from_config(copy.deepcopy(config), attn_implementation=way).eval() for way in ("eager", "sdpa"))
            ours.load_state_dict(eager.state_dict())
            maskc.apply(ours, "causal")
            with torch.no_grad():
                encoded = eager.get_encoder()(input_ids=ids, attention_mask=causal)
                theirs = eager(encoder_outputs=encoded, decoder_input_ids=ids, use_cache=False)[0]
                self.assertLess(error(ours(input_ids=ids, decoder_input_ids=ids, use_cache=False)[0], theirs), 1e-5, kind)
            maskc.apply(ours, None)
            self.assertFalse([name for name, module in ours.named_modules() if hasattr(module, "_maskc")])

    def test_some_layers(self):
        import torch
        eager, ours = pair("bert")
        maskc.apply(ours, "dense", layers=torch.tensor([1]))
        ids = torch.randint(3, 99, (2, 30))
        self.assertLess(error(ours(input_ids=ids).last_hidden_state, eager(input_ids=ids).last_hidden_state), 1e-5)

    def test_mask_is_checked_at_once(self):
        """Nothing has changed after a refusal."""
        import numpy
        _, ours = pair("bert")
        ours.set_attn_implementation("sdpa")
        for words, mask in (("unknown word 'windw'", "windw(3)"), ("3 heads", numpy.ones((3, 64, 64), bool)), ("3 heads", "heads 3\ndense\n"),
                            ("5 layers", numpy.ones((5, 4, 64, 64), bool)), ("5 layers", "layers 5\nheads 4\ndense\n"),
                            ("No such file", "none-such.npy"), ("No such file", pathlib.Path("none-such.mask")),
                            ("bool is expected", numpy.ones((64, 64)))):
            with self.subTest(words):
                self.refused(words, maskc.apply, ours, mask)
        self.assertEqual(ours.config._attn_implementation, "sdpa")
        self.assertFalse(hasattr(ours.config, "maskc"))

    def test_model_without_positions(self):
        """T5: text gets 512 positions, and save_pretrained keeps the mask."""
        import torch
        eager, ours = pair("t5")
        del ours.config.max_position_embeddings
        maskc.apply(ours, "window(3)")
        ids, near = torch.randint(3, 99, (2, 40)), (torch.arange(40)[:, None] - torch.arange(40)).abs()
        theirs = eager(input_ids=ids, attention_mask=torch.zeros(1, 1, 40, 40).masked_fill(near > 3, -1e30)).last_hidden_state
        self.assertLess(error(ours(input_ids=ids).last_hidden_state, theirs), 1e-5)
        with tempfile.TemporaryDirectory() as folder:
            ours.save_pretrained(folder)
            again = type(ours).from_pretrained(folder, attn_implementation="maskc").eval()
        self.assertLess(error(again(input_ids=ids).last_hidden_state, theirs), 1e-5)
        self.refused("the mask has 512", ours, input_ids=torch.randint(3, 99, (1, 600)))

    def test_longformer_is_refused_by_name(self):
        import transformers
        config = transformers.LongformerConfig(**COMMON, attention_window=4)
        self.refused("projections of their own", maskc.apply, transformers.LongformerModel(config), "dense")


@needs_transformers
class LayersTest(Case):
    """Models whose layers take no attention implementation, against their own attention with the mask added to scores."""

    def judge(self, model, mask, bits):
        """bits: what the mask keeps of 40 tokens."""
        import torch
        model = model.eval()
        ours = maskc.apply(copy.deepcopy(model), mask)
        ids = torch.randint(3, 99, (len(LENGTHS), LENGTHS[0]), device="cpu", generator=torch.Generator("cpu").manual_seed(3)).to(DEVICE)
        weight = torch.randn(len(LENGTHS), LENGTHS[0], 64, device="cpu", generator=torch.Generator("cpu").manual_seed(4)).to(DEVICE)
        for side in ("none", "right"):  # on the left the mask begins where the sequence does
            padding_mask = padding(side)
            both = padding_mask[:, None, :, None] * padding_mask[:, None, None] * bits
            both = torch.zeros(both.shape).masked_fill(both == 0, -1e30)
            theirs = self.gradients(model, ids, both, padding_mask, weight)
            for a, b in zip(self.gradients(ours, ids, padding_mask, padding_mask, weight), theirs):
                self.assertLess(error(a, b), 1e-4, f"{mask} {side} {list(a.shape)}")
        mask = padding("right")
        mask[0, 5] = 0
        self.refused("holes", ours, input_ids=ids, attention_mask=mask)
        self.refused("beside the one", ours, input_ids=ids, attention_mask=both)
        return ours

    def gradients(self, model, ids, mask, tokens, weight):
        """[hidden states of the tokens, each parameter's gradient]; mask is [B, N], or what is added to scores."""
        model.zero_grad()
        out = model(input_ids=ids, attention_mask=mask).last_hidden_state * tokens[..., None]
        (out * weight).sum().backward()
        return [out] + [p.grad.clone() for p in model.parameters() if p.grad is not None]

    def window(self):
        import torch
        near = torch.arange(LENGTHS[0])
        return ((near[:, None] - near).abs() <= 3) | (near == 0) | (near[:, None] == 0)

    def test_mpnet(self):
        import torch
        import transformers
        torch.manual_seed(2)
        model = transformers.MPNetModel(transformers.MPNetConfig(**COMMON), add_pooling_layer=False)
        torch.nn.init.normal_(model.encoder.relative_attention_bias.weight)  # a bias that shows
        ours = self.judge(model, "window(3)|global(0)", self.window())
        layer = ours.encoder.layer[0].attention.attn
        for copied in (layer._replicate_for_data_parallel(), copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            self.assertIs(copied.forward.__self__, copied)  # with weights of its own
            self.assertIs(copied.forward.__func__, layer.forward.__func__)
        layer._old_forward, layer.forward = layer.forward, functools.partial(layer.forward)  # as accelerate's hooks do
        maskc.apply(ours, None)
        self.assertIs(layer._old_forward.__func__, type(model.encoder.layer[0].attention.attn).forward)
        del layer._old_forward
        self.refused("encoder.layer.0.attention.attn has another forward", maskc.apply, ours, "dense")

    def test_big_bird(self):
        import torch
        import transformers
        torch.manual_seed(2)
        config = transformers.BigBirdConfig(**COMMON, attention_type="original_full", block_size=4, num_random_blocks=1)
        self.judge(transformers.BigBirdModel(config, add_pooling_layer=False), "window(3)|global(0)", self.window())
        config.attention_type = "block_sparse"
        sparse = transformers.BigBirdModel(config, add_pooling_layer=False).eval()
        self.refused("cannot be kept", maskc.apply, sparse, "dense", layers=[0])
        bits = maskc.from_transformers(config, n=LENGTHS[0])
        ours = maskc.apply(sparse, bits)
        ids = torch.randint(3, 99, (1, LENGTHS[0]))
        self.assertTrue(ours(input_ids=ids).last_hidden_state.isfinite().all())
        self.assertEqual(copy.deepcopy(ours)(input_ids=ids).last_hidden_state.shape, (1, LENGTHS[0], 64))


@needs_transformers
class ConfigurationTest(Case):
    def test_modernbert_is_its_own_mask(self):
        import torch
        _, ours = pair("modernbert")
        kernel = maskc.compile(maskc.from_transformers(ours.config, n=40), n=40, heads=4, head_dim=16)
        near = (torch.arange(40)[:, None] - torch.arange(40)).abs()
        for bits, kind in zip(kernel.mask, ours.config.layer_types):
            wanted = near <= ours.config.sliding_window if kind == "sliding_attention" else near >= 0
            self.assertTrue((bits[0] == wanted.cpu().numpy()).all())

    def test_others(self):
        import transformers
        longformer = transformers.LongformerConfig(attention_window=[8, 16], num_hidden_layers=2)
        self.assertIn("layer 1: window(8)", maskc.from_transformers(longformer))
        big = transformers.BigBirdConfig(num_hidden_layers=1, num_attention_heads=2, block_size=4, num_random_blocks=2)
        bits = maskc.from_transformers(big, n=64)
        self.assertEqual(bits.shape, (1, 2, 64, 64))
        self.assertTrue(bits[..., :4].all() and bits[..., -4:, :].all())
        self.assertTrue(set(bits[0, 0, 4:-4].sum(1) // 4) <= {6, 7})
        self.refused("states no mask", maskc.from_transformers, transformers.BertConfig())


@needs_transformers
class CompiledTest(Case):
    def test_no_graph_break(self):
        import torch
        import torch._dynamo as dynamo
        for name in ("bert", "modernbert"):
            _, ours = pair(name)
            dynamo.reset()
            dynamo.utils.counters.clear()
            compiled = torch.compile(ours, fullgraph=True, dynamic=True, backend="aot_eager")
            for n in (40, 31, 22, 13):
                ids, mask = torch.randint(3, 99, (2, n)), torch.ones(2, n, dtype=torch.long)
                mask[1, n // 2:] = 0
                mask[0, :3] = 0
                with torch.no_grad():
                    a, b = (m(input_ids=ids, attention_mask=mask).last_hidden_state * mask[..., None] for m in (compiled, ours))
                self.assertLess(error(a, b), 1e-5, name)
            self.assertEqual(sum(dynamo.utils.counters["graph_break"].values()), 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cmocka_count.run_cases()
