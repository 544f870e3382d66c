#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the lines of Python in the top-level README and in that of the package run, and compute what they say?"""
import os
import pathlib
import re
import tempfile
import warnings

from common import Case, active_keys, cmocka_count, error, needs_transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks(page):
    """The blocks of Python in a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@needs_transformers
class ReadmeTest(Case):
    def test_first_screen(self):
        """Its lines of Python, with a small model in a folder of bert-base-uncased's name."""
        import torch
        import transformers
        lines, made = blocks("README.md")[0], {}
        config = transformers.BertConfig(vocab_size=99, hidden_size=96, num_hidden_layers=1, num_attention_heads=12, intermediate_size=96,
                                         max_position_embeddings=96)
        model = transformers.BertModel(config, add_pooling_layer=False).eval()
        self.addCleanup(os.chdir, os.getcwd())
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            model.save_pretrained("bert-base-uncased")
            exec(lines, made)  # pylint: disable=exec-used
        bits = active_keys(made["kernel"])
        truth = torch.nn.functional.scaled_dot_product_attention(made["q"], made["k"], made["v"], attn_mask=bits)
        self.assertLess(error(made["o"], truth), 1e-5)
        model.set_attn_implementation("eager")
        ids, scores = torch.randint(3, 99, (1, 96)), torch.zeros(1, 1, 96, 96).masked_fill(~bits[0, :96, :96], -1e30)
        theirs = model(input_ids=ids, attention_mask=scores).last_hidden_state
        self.assertLess(error(made["bert"].eval()(input_ids=ids).last_hidden_state, theirs), 1e-5)


@needs_transformers
class PackageReadmeTest(Case):
    """runtime/python/README.md, in a folder of its own."""

    def setUp(self):
        self.blocks = blocks("runtime/python/README.md")
        self.addCleanup(os.chdir, os.getcwd())
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chdir(folder.name)

    def save_model(self, name):
        """A small ModernBERT and a tokenizer."""
        import transformers
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "line", "another", ",", "longer"]
        config = transformers.ModernBertConfig(vocab_size=len(words), hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64,
                                               max_position_embeddings=64, local_attention=8, pad_token_id=0, bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3)
        transformers.ModernBertModel(config).save_pretrained(name)
        pathlib.Path("words.txt").write_text("\n".join(words), encoding="utf-8")
        transformers.BertTokenizerFast("words.txt").save_pretrained(name)

    def test_ten_lines(self):
        self.assertEqual(len(self.blocks), 3)
        made = {}
        self.save_model("answerdotai/ModernBERT-base")
        exec(self.blocks[0], made)  # pylint: disable=exec-used
        theirs = made["AutoModel"].from_pretrained(made["name"], attn_implementation="eager")(**made["batch"]).last_hidden_state
        tokens = made["batch"]["attention_mask"].bool()
        self.assertLess(error(made["out"][tokens], theirs[tokens]), 1e-5)

    def test_the_mask_of_a_folder(self):
        import maskc
        from transformers import AutoModel
        self.save_model("run")
        model = AutoModel.from_pretrained("run", attn_implementation="maskc")
        maskc.apply(model, "window(3)")
        model.save_pretrained("run")
        exec(self.blocks[1], {"AutoModel": AutoModel, "RUN": "run"})  # pylint: disable=exec-used
        self.assertIn("window(8)", pathlib.Path("new/mask.mask").read_text(encoding="utf-8"))

    def test_tensors(self):
        import torch
        import maskc
        q, k, v = (torch.randn(2, 12, 512, 64, dtype=torch.bfloat16) for _ in range(3))
        made = {"maskc": maskc, "q": q, "k": k, "v": v, "lengths": torch.tensor([512, 300]), "starts": torch.tensor([0, 212])}
        for line in self.blocks[2].strip().split("\n"):
            packed = dict.fromkeys("qkv", q[0].transpose(0, 1).contiguous()) | {"offsets": torch.tensor([0, 200, 512])} if "offsets=" in line else {}
            exec(line, made | packed if packed else made)  # pylint: disable=exec-used
        self.assertEqual(made["out"].shape, q.shape)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cmocka_count.run_cases()
