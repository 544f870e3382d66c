#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands on encoders beside BERT: usage families_runs.py MASKBERT. A small model of each family is trained on masked words
and fine-tuned; the loss falls, transformers loads what the runs leave and computes the same, info, bench, memory, embed and serve's
settings are answered. Exit code 77 (skipped) where torch or transformers is missing."""
import json
import os
import pathlib
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import torch
    import transformers
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "train"), str(ROOT / "train/objective"), str(pathlib.Path(__file__).parent)]
import finetune_toy  # noqa: E402
import pretrain_toy  # noqa: E402
from families import FAMILIES  # noqa: E402


def make(toy, family):
    """A folder with the toy's vocabulary."""
    f = FAMILIES[family]
    words = (toy.work / "model/vocab.txt").read_text().split("\n")[:-1]
    pad = 1 if family == "mpnet" else words.index("[PAD]")
    torch.manual_seed(1)
    config = getattr(transformers, f["config"])(**{**f["sizes"], "vocab_size": len(words), "num_hidden_layers": 2, "pad_token_id": pad,
                                                   "num_labels": 2})
    model = getattr(transformers, f["prefix"] + "ForMaskedLM")(config)
    folder = toy.work / family
    model.save_pretrained(folder)
    for name in "vocab.txt", "tokenizer_config.json":
        (folder / name).write_text((toy.work / "model" / name).read_text())


def check_family(toy, family):
    prefix = FAMILIES[family]["prefix"]
    make(toy, family)
    toy.ok("pretrain", family, "--data", "data", "-o", "run-" + family, "--objective", "mlm", "--lr", 2e-3, "--batch", 8, "--steps", 40)
    losses = [x[0] for x in toy.losses("run-" + family).values()]
    assert sum(losses[-4:]) < 0.9 * sum(losses[:4]), losses
    again = toy.ok("pretrain", family, "--data", "data", "-o", "twin-" + family, "--objective", "mlm", "--lr", 2e-3, "--batch", 8, "--steps",
                   40, "--threads", 1, "--recompute", "layer")
    assert toy.weights("run-" + family) == toy.weights("twin-" + family), again.stderr
    toy.ok("finetune", "run-" + family, "--task", "text", "--data", "text", "-o", "tuned-" + family, "--epochs", 1, "--lr", 1e-3)
    for folder, cls in ("run-" + family, "ForMaskedLM"), ("tuned-" + family, "ForSequenceClassification"):
        _, said = getattr(transformers, prefix + cls).from_pretrained(toy.work / folder, output_loading_info=True)
        assert not said["missing_keys"] and not said["unexpected_keys"] and not said["mismatched_keys"], said
    model = getattr(transformers, prefix + "ForSequenceClassification").from_pretrained(toy.work / ("tuned-" + family)).eval()
    tokens = [int(x) for x in toy.ok("tokenize", "tuned-" + family, stdin="the cat sees a red apple\n").stdout.split()]
    truth = model(torch.tensor([tokens])).logits[0].softmax(-1).detach()
    ours = json.loads(toy.ok("classify", "tuned-" + family, "--json", stdin="the cat sees a red apple\n").stdout)
    for k, x in enumerate(ours["labels"]):
        assert abs(x["probability"] - float(truth[k])) < 1e-4, (family, ours, truth)
    for command in ("info", family), ("bench", family, "--batch", 2, "-n", 16, "--device", "cpu"), ("memory", family):
        assert toy.ok(*command).stdout, command
    if family == "modernbert":
        config = json.loads((toy.work / family / "config.json").read_text())
        (toy.work / family / "config.json").write_text(json.dumps({**config, "mlp_dropout": 0.1}))
        toy.refused("mlp_dropout 0.1 is not supported in training", "pretrain", family, "--data", "data", "-o", "new", "--objective", "mlm", "--steps", 2)
    toy.ok("convert", family, "-o", "longer-" + family, "--positions", 300)
    assert toy.ok("embed", "longer-" + family, "-o", "x.npy", "--pooling", "cls", stdin="the cat " * 120 + "\n")
    if family == "mpnet":
        toy.refused("no mask can be learned", "pretrain", family, "--data", "data", "-o", "new", "--objective", "mlm", "--learn-mask", "dam-s", "--steps", 2)
    print(f"ok   {family}: {losses[0]:.3f} to {losses[-1]:.3f}", flush=True)


def main():
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as work:
        toy = pretrain_toy.Toy(os.path.abspath(sys.argv[1]), work)
        finetune_toy.make(work)
        for family in sys.argv[2:] or FAMILIES:
            check_family(toy, family)


main()
