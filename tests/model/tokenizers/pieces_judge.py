#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sentencepiece.bpe.model by `maskbert tokenize` against transformers' XLMRobertaTokenizer: usage pieces_judge.py MASKBERT. A model that
sentencepiece trains on the texts of texts.py under XLM-R's settings, in folders with and without a tokenizer_config.json: equal ids on
500 texts in 20 scripts, alone and as pairs. Exit code 77 (skipped) where transformers, sentencepiece or protobuf is not installed."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
try:
    import sentencepiece
    import google.protobuf  # noqa: F401, transformers reads the model with it
    from transformers import XLMRobertaTokenizer
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
import texts  # noqa: E402

MASK = {"content": "<mask>", "lstrip": True, "normalized": True, "rstrip": False, "single_word": False, "__type": "AddedToken"}
CONFIGS = [{"tokenizer_class": "XLMRobertaTokenizer"}, {"tokenizer_class": "XLMRobertaTokenizer", "mask_token": MASK, "model_max_length": 512},
           {"tokenizer_class": "XLMRobertaTokenizer", "add_prefix_space": False}]


def train(folder):
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(part for line in texts.texts(400, 7) for part in line.split("\t") if part.strip()))
    sentencepiece.SentencePieceTrainer.train(input=str(corpus), model_prefix=str(folder / "sentencepiece.bpe"), vocab_size=2200,
                                             model_type="unigram", character_coverage=0.999, minloglevel=2)


def main():
    maskbert, wrong = os.path.abspath(sys.argv[1]), 0
    lines = [line for line in texts.texts(520) if not line.endswith("\t")][:500]  # an empty second part is no pair in transformers
    lines += ["a <mask> b", "<mask>", "x  <mask>y</s>z", "  <s> ", ""]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        train(folder)
        for config in CONFIGS:
            (folder / "tokenizer_config.json").write_text(json.dumps(config))
            theirs = XLMRobertaTokenizer.from_pretrained(folder)
            made = subprocess.run([maskbert, "tokenize", folder], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
            ours = [[int(x) for x in line.split()] for line in made.stdout.split("\n")[:-1]]
            expected = [theirs(*line.split("\t", 1))["input_ids"] for line in lines]
            bad = [k for k, line in enumerate(lines) if ours[k] != expected[k]]
            for k in bad[:3]:
                print(f"{lines[k]!r}: {ours[k]}, {expected[k]} expected")
            wrong += len(bad) + (len(ours) != len(lines))
            print(f"{'FAIL' if bad else 'ok  '} {json.dumps(config)[:70]}: {len(lines) - len(bad)} of {len(lines)} texts equal", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
