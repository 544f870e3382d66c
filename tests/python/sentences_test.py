#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does sentence-transformers' encode() give the same vectors with attn_implementation="maskc" as with torch's own attention? A BERT of
MiniLM's shape with random weights, and MiniLM itself where $MASKC_MINILM (build-test/minilm, as tools/test leaves it) has it: tools/fetch-model
FOLDER. Sentences of all lengths, so that batches are padded."""
import os
import pathlib
import random
import sys
import tempfile
import unittest
import warnings

from common import DEVICE, KIND, Case, cmocka_count, has, needs_transformers
import maskc  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parents[2]
MINILM = pathlib.Path(os.environ.get("MASKC_MINILM", ROOT / "build-test/minilm"))
LIMIT = 1e-6 if KIND == "cpu" else 1e-5
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{k}" for k in range(200)]


def sentences():
    draw = random.Random(4)
    return [" ".join(draw.choice(WORDS[5:]) for _ in range(length)) for length in (1, 3, 70, 12, 126, 33, 5, 64, 2, 18)]


def save_model(folder):
    """MiniLM's shape: six layers of 384, twelve heads of 32."""
    import torch
    import transformers
    torch.manual_seed(6)
    pathlib.Path(folder, "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(vocab_file=str(pathlib.Path(folder, "vocab.txt")), model_max_length=128).save_pretrained(folder)
    config = transformers.BertConfig(vocab_size=len(WORDS), hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
                                     max_position_embeddings=128)
    transformers.BertModel(config).save_pretrained(folder)


@needs_transformers
@unittest.skipUnless(has("sentence_transformers") and has("sklearn"), "this Python has no sentence-transformers")
class SentencesTest(Case):
    def encode(self, folder, implementation, **named):
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Pooling, Transformer
        body = Transformer(folder, model_kwargs={"attn_implementation": implementation}, max_seq_length=128)
        model = SentenceTransformer(modules=[body, Pooling(384)], device=DEVICE)
        self.assertEqual(body.model.config._attn_implementation, implementation)
        return model.encode(sentences(), **named)

    def test_same_vectors(self):
        import numpy
        with tempfile.TemporaryDirectory() as folder:
            save_model(folder)
            for named in ({"batch_size": 4}, {"batch_size": 32, "normalize_embeddings": True}):
                ours, theirs = (self.encode(folder, name, **named) for name in ("maskc", "sdpa"))
                self.assertEqual(ours.shape, (10, 384))
                self.assertLess(numpy.abs(ours - theirs).max() / numpy.abs(theirs).max(), LIMIT)

    @unittest.skipUnless((MINILM / "model.safetensors").exists(), "no MiniLM: tools/fetch-model FOLDER, MASKC_MINILM=FOLDER")
    def test_same_vectors_of_minilm(self):
        import numpy
        from sentence_transformers import SentenceTransformer
        lines = ["a", "A man is eating food.", "naïve café — 中文", *(" ".join(["sparse attention"] * k) for k in (2, 30, 120)), "The girl carries a baby."]
        vectors = {}
        for name in ("maskc", "sdpa"):
            model = SentenceTransformer(str(MINILM), device=DEVICE, model_kwargs={"attn_implementation": name})
            self.assertEqual(model[0].model.config._attn_implementation, name)
            vectors[name] = model.encode(lines, batch_size=4)
        difference = numpy.abs(vectors["maskc"] - vectors["sdpa"]).max()
        self.assertGreater(difference, 0)  # two implementations round differently
        self.assertLess(difference, LIMIT)
        print(f"MiniLM's vectors are within {difference:.1e} of SDPA's", file=sys.stderr)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cmocka_count.run_cases()
