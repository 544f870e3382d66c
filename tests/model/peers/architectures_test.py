#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Architectures beside BERT against transformers in float64: random weights, each model class, each activation. Skipped where torch or
transformers is missing."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/support")]
import cmocka_count  # noqa: E402

try:
    import torch
    import transformers
    MISSING = None
except ImportError as e:
    MISSING = str(e)
from maskc import _library

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + c for c in LETTERS)]
TEXTS = ("hello world", "a b c d e f g", "the quick brown fox jumps over it")
LIMIT = 1e-5


def token_ids(text):
    ids = [2]
    for word in text.split():
        ids += [4] if word == "[MASK]" else [WORDS.index(word[0]), *(WORDS.index("##" + c) for c in word[1:])]
    return [*ids, 3]


def maskbert(*arguments, stdin="", code=0):
    done = subprocess.run([_library.program_path("maskbert"), *map(str, arguments)], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != code:
        raise AssertionError(f"maskbert {arguments[0]}: exit code {done.returncode}: {done.stderr}")
    return done.stdout if code == 0 else done.stderr


def differ(ours, theirs):
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True))


@unittest.skipIf(MISSING, MISSING)
class DistilBertTest(unittest.TestCase):
    activations = ("gelu", "relu", "gelu_new", "silu")

    def models(self, name, **more):
        """A model of this class for each activation, in float64, and its folder."""
        for activation in self.activations:
            torch.manual_seed(1)
            config = transformers.DistilBertConfig(vocab_size=len(WORDS), dim=48, n_layers=2, n_heads=3, hidden_dim=100,
                                                   max_position_embeddings=64, activation=activation, initializer_range=0.2, **more)
            model = getattr(transformers, name)(config).eval()
            for parameter in model.parameters():
                if parameter.ndim == 1:
                    torch.nn.init.normal_(parameter, 0.5, 0.2)
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.work.name))
            model.save_pretrained(folder)
            (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
            (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "DistilBertTokenizer"}')
            yield model.double(), folder

    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        transformers.utils.logging.disable_progress_bar()

    def tearDown(self):
        self.work.cleanup()

    def lines(self, command, folder, text, *options):
        return [json.loads(line) for line in maskbert(command, folder, "--json", *options, stdin=text).splitlines()]

    def test_hidden_states(self):
        for model, folder in self.models("DistilBertModel"):
            maskbert("embed", folder, "--pooling", "none", "-o", folder / "o.jsonl", stdin="\n".join(TEXTS) + "\n")
            for text, line in zip(TEXTS, (folder / "o.jsonl").read_text().splitlines(), strict=True):
                theirs = model(torch.tensor([token_ids(text)])).last_hidden_state[0].flatten().tolist()
                ours = json.loads(line)
                ours = ours if isinstance(ours, list) else next(v for v in ours.values() if isinstance(v, list))
                self.assertLessEqual(differ([x for row in ours for x in row], theirs), LIMIT)

    def test_sequences(self):
        for model, folder in self.models("DistilBertForSequenceClassification", num_labels=3):
            for text, line in zip(TEXTS, self.lines("classify", folder, "\n".join(TEXTS) + "\n"), strict=True):
                theirs = model(torch.tensor([token_ids(text)])).logits[0].softmax(-1).tolist()
                self.assertLessEqual(differ([x["probability"] for x in line["labels"]], theirs), LIMIT)

    def test_tokens(self):
        for model, folder in self.models("DistilBertForTokenClassification", num_labels=3):
            for text, line in zip(TEXTS, self.lines("classify", folder, "\n".join(TEXTS) + "\n"), strict=True):
                theirs = model(torch.tensor([token_ids(text)])).logits[0].softmax(-1).max(-1).values.tolist()
                self.assertLessEqual(differ([x["probability"] for x in line["tokens"]], theirs), LIMIT)

    def test_words(self):
        for model, folder in self.models("DistilBertForMaskedLM"):
            for text in (t + " [MASK]" for t in TEXTS):
                theirs = model(torch.tensor([token_ids(text)])).logits[0, -2].softmax(-1).tolist()
                for word in self.lines("fill-mask", folder, text + "\n")[0]["masks"][0]["words"]:
                    self.assertLessEqual(abs(word["probability"] - theirs[word["id"]]), LIMIT)

    def test_answers(self):
        for model, folder in self.models("DistilBertForQuestionAnswering"):
            ids = token_ids("hello") + token_ids(TEXTS[1])[1:]
            out = model(torch.tensor([ids]))
            begin, end = out.start_logits[0].tolist(), out.end_logits[0].tolist()
            best = max(begin[i] + end[j] for i in range(7, len(ids) - 1) for j in range(i, len(ids) - 1))
            ours = self.lines("answer", folder, f"hello\t{TEXTS[1]}\n")[0]["answers"][0]["score"]
            self.assertLessEqual(abs(ours - best), LIMIT * max(1, abs(best)))

    def test_what_it_has_not(self):
        for _, folder in self.models("DistilBertForSequenceClassification"):
            said = maskbert("embed", folder, "--pooling", "pooler", "-o", folder / "o.jsonl", stdin="a\n", code=2)
            self.assertIn("pooling pooler: DistilBERT has none", said)
            break


if __name__ == "__main__":
    cmocka_count.run_cases()
