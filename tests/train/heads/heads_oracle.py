#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Heads and losses of fine-tuning against torch in float64, by the measures of gradient_oracle.py: usage
heads_oracle.py GRADIENTS_DUMP MASKC [NAME]. Gradients with and without dropout, in bf16, in parts, and ten steps of AdamW.
Exit code 77 (skipped) where there is no torch."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import gradient_oracle as oracle  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from bert import make_folder, read_safetensors  # noqa: E402

STEPS, GROUP = 10, 4


class HeadCase(oracle.Case):
    """labels: rows of a sequence to their labels, drawn by `rng`."""

    def __init__(self, name, architecture, head, loss, num_labels, head_dropout=0.0, **more):
        lengths = [1, 2, 33, 17, 12, 9, 24, 5] if loss == "choice" else [1, 33, 17, 5]
        super().__init__(name, 1, 64, 4, mask="longformer(5,2)", lengths=lengths, num_labels=num_labels, **more)
        self.config["architectures"] = [architecture]
        self.head, self.loss_kind, self.num_labels, self.head_dropout = head, loss, num_labels, head_dropout

    def options(self):
        return [f"head={self.head}", f"loss={self.loss_kind}", f"group={GROUP if self.loss_kind == 'choice' else 1}",
                f"head_dropout={self.head_dropout}"]


def labels_of(case, rng, k, n):
    if case.loss_kind == "choice":
        return [(0, int(k % GROUP == k // GROUP + 1))]
    if case.loss_kind == "span":
        start, end = sorted(int(x) for x in rng.integers(0, n, 2))
        return [(i, (i == start) + 2 * (i == end)) for i in range(n)]
    most = 128 if case.loss_kind == "square" else case.num_labels
    return [(i, int(rng.integers(0, most))) for i in (range(n) if case.head == "rows" else [0])]


class Heads(oracle.Model):
    """One target in the place of the two of pre-training."""

    def logits(self, x, case, drop):
        if case.head == "span":
            return self.linear("qa_outputs", drop(x))
        return self.linear("classifier", drop(x if case.head == "rows" else self.pooled(x)[None]))

    def loss(self, batch, case):
        logits, labels = [], []
        for k, (ids, first, _, rows) in enumerate(batch):
            bits = oracle.Drop(case.seed, k, case.hidden, case.attention)
            of_head = oracle.Drop(case.seed, k, case.head_dropout, 0)
            x = self.hidden(ids, [int(i >= first) for i in range(len(ids))], case.bits, case.sparsegen, drop=bits)
            logits.append(self.logits(x, case, lambda y: of_head.hidden(y, 1 + 2 * case.config["num_hidden_layers"])))
            labels.append(torch.tensor([label for _, label in rows]))
        return LOSSES[case.loss_kind](logits, labels), 0


def choice_loss(logits, labels):
    right = torch.cat(labels).view(-1, GROUP).argmax(1)
    return F.cross_entropy(torch.cat(logits).view(-1, GROUP), right)


def span_loss(logits, labels):
    return sum(F.cross_entropy(z[None, :, k], (y >> k & 1).argmax()[None]) for z, y in zip(logits, labels) for k in range(2)) / 2 / len(logits)


LOSSES = {"labels": lambda z, y: F.cross_entropy(torch.cat(z), torch.cat(y)),
          "square": lambda z, y: F.mse_loss(torch.cat(z)[:, 0].double(), torch.cat(y).double() / 64 - 1),
          "choice": choice_loss, "span": span_loss}


def lines(dump, folder, *options):
    out = folder + "/out.safetensors"
    losses = [oracle.json.loads(x) for x in oracle.run(dump, folder, folder + "/batch.txt", out, *options).splitlines()]
    tensors = {n.removeprefix("bert."): x.astype(numpy.float64) for n, x in read_safetensors(out).items()}
    return [x["mlm"] / x["masked"] for x in losses], tensors


def check_gradients(dump, folder, case, batch, name, *options):
    loss, _, truth = Heads(folder).gradients(batch, case)
    mine, gradients = lines(dump, folder, *case.options(), *options)
    assert set(truth) == set(gradients), set(truth) ^ set(gradients)
    oracle.report(f"{name} loss", abs(mine[0] - loss) / loss, 1e-6)
    seen = {n: g for n, g in truth.items() if not unseen(case, n)}
    ratio, worst = oracle.worst(gradients, seen)
    oracle.report(f"{name}: {worst}, part of what is allowed", ratio, 1)
    most = max(oracle.norm(g) for g in seen.values())
    oracle.report(f"{name}: what the loss does not see", max(oracle.norm(gradients[n]) for n in truth if n not in seen) / most, 1e-7)
    return truth


def check_bf16(dump, folder, case, batch, truth, options):
    _, mine = lines(dump, folder, "dtype=bf16", *case.options(), *options)
    with torch.autocast("cpu", torch.bfloat16):
        _, _, theirs = Heads(folder, torch.float32).gradients(batch, case)
    oracle.report(f"{case.name} bf16, error beside autocast's",
                  oracle.relative(mine, truth, truth) / oracle.relative(theirs, truth, truth), 1.5)


def decays(name):
    return not name.endswith(".bias") and "LayerNorm" not in name


def unseen(case, name):
    """Parameters without a gradient but rounding, of which an optimiser makes steps of full size: biases of keys and, under
    a softmax over rows, what adds the same to every row."""
    over_rows = ["classifier.bias", "qa_outputs.bias"] if case.loss_kind in ("choice", "span") else []
    if case.loss_kind == "span" and not case.head_dropout:
        over_rows.append(f"encoder.layer.{case.config['num_hidden_layers'] - 1}.output.LayerNorm.bias")
    return name.endswith("key.bias") or name in over_rows


def check_steps(dump, folder, case, batch, options):
    model = Heads(folder)
    before = {n: x.detach().numpy().copy() for n, x in model.t.items()}
    mine, weights = lines(dump, folder, *case.options(), *options, f"steps={STEPS}")
    optimiser = torch.optim.AdamW([{"params": [x for n, x in model.t.items() if decays(n) == d], "weight_decay": 0.01 * d}
                                   for d in (True, False)], lr=1e-3)
    losses = []
    for _ in range(STEPS):
        losses.append(model.gradients(batch, case)[0])
        torch.nn.utils.clip_grad_norm_([x for x in model.t.values() if x.grad is not None], 1)
        optimiser.step()
    oracle.report(f"{case.name}: loss of ten steps", max(abs(a - b) / b for a, b in zip(mine, losses, strict=True)), 1e-5)
    moved = {n: x.detach().numpy() - before[n] for n, x in model.t.items() if x.grad is not None}
    assert set(moved) == set(weights), set(moved) ^ set(weights)
    errors = {n: oracle.norm(weights[n] - before[n] - d) / oracle.norm(d) for n, d in moved.items() if not unseen(case, n)}
    n = max(errors, key=errors.get)
    oracle.report(f"{case.name}: {n}, error of the update", errors[n], 1e-3)
    for n in ("classifier.bias", "qa_outputs.bias"):
        if n in weights and unseen(case, n):
            oracle.report(f"{case.name}: {n} stays", numpy.abs(weights[n] - before[n]).max(), 1e-6)


def check(dump, maskc, work, case):
    folder = work + "/" + case.name.replace(" ", "-")
    make_folder(folder, case.config, case.std, 7)
    options, rng = oracle.set_mask(case, maskc, folder), numpy.random.default_rng(4)
    batch = [(ids, first, -1, labels_of(case, rng, k, len(ids)))
             for k, (ids, first, *_) in enumerate(oracle.make_batch(numpy.random.default_rng(3), 600, case.lengths, True))]
    oracle.write_batch(folder + "/batch.txt", batch)
    truth = check_gradients(dump, folder, case, batch, case.name, *options)
    check_bf16(dump, folder, case, batch, truth, options)
    check_steps(dump, folder, case, batch, options)
    case.hidden, case.attention, case.head_dropout = 0.1, 0.1, 0.3
    dropped = [x for x in options if not x.startswith(("hidden=", "attention="))] + ["hidden=0.1", "attention=0.1", "parts=2"]
    check_gradients(dump, folder, case, batch, case.name + " with dropout, in parts", *dropped)


CASES = [
    HeadCase("labels of sequences", "BertForSequenceClassification", "pooled", "labels", 3),
    HeadCase("regression", "BertForSequenceClassification", "pooled", "square", 1),
    HeadCase("choice", "BertForMultipleChoice", "pooled", "choice", 1),
    HeadCase("labels of tokens", "BertForTokenClassification", "rows", "labels", 5),
    HeadCase("span", "BertForQuestionAnswering", "span", "span", 2),
]

if __name__ == "__main__":
    torch.set_num_threads(1)  # small models wait for threads longer than they compute
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if len(sys.argv) < 4 or sys.argv[3] == case.name:
                check(sys.argv[1], sys.argv[2], folder, case)
    sys.exit(oracle.failures > 0)
