#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the lines of Python in the top-level README run, and compute what they say?"""
import os
import pathlib
import re
import tempfile
import warnings

from common import Case, active_keys, cmocka_count, error, needs_transformers

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


@needs_transformers
class ReadmeTest(Case):
    def test_first_screen(self):
        """Its lines of Python, with a small model in a folder of bert-base-uncased's name."""
        import torch
        import transformers
        lines, made = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[1], {}
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


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cmocka_count.run_cases()
