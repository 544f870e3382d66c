#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""maskbert pretrain --save-gradients against BertForPreTraining in float64: usage command_oracle.py MASKBERT MASKC.
The gradients of a step with dropout and in parts, and steps of AdamW, of AdamW without bias correction and of LAMB: losses, and what
the weights became.
Exit code 77 (skipped) where there is no torch."""
import json
import os
import random
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import gradient_oracle as oracle  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from bert import make_folder, read_safetensors  # noqa: E402


class Toy:
    def __init__(self, maskbert, maskc, work, mask="longformer(5,2)"):
        self.maskbert, self.work, self.mask = maskbert, work, ["--mask", mask] if mask else []
        self.case = oracle.Case("command", 2, 64, 4, mask=mask, positions=40)
        make_folder(work + "/model", self.case.config, 0.05, 7)
        oracle.set_mask(self.case, maskc, work)
        draw = random.Random(2)
        with open(work + "/text.txt", "w") as f:
            for _ in range(80):
                for _ in range(draw.randint(2, 8)):
                    print(*(f"w{draw.randrange(500)}" for _ in range(draw.randint(3, 12))), file=f)
                print(file=f)
        oracle.run(maskbert, "prep", work + "/text.txt", "--vocab", work + "/model", "--length", 40, "-o", work + "/data")

    def train(self, name, *options):
        """The tensors that a run saved, its steps, the model that it left."""
        out = f"{self.work}/{name}"
        made = subprocess.run([self.maskbert, "pretrain", self.work + "/model", "--data", self.work + "/data", "-o", out, "--batch", "6",
                               *self.mask, "--save-gradients", out + ".safetensors", *map(str, options)],
                              capture_output=True, text=True, check=False)
        if made.returncode == 3:
            print(made.stderr)
            sys.exit(77)
        assert made.returncode == 0, made.stderr
        with open(out + "/log.jsonl") as f:
            steps = [x for x in map(json.loads, f) if "lr" in x]
        weights = {n.removeprefix("bert."): x.astype(numpy.float64) for n, x in read_safetensors(out + "/model.safetensors").items()}
        return read_safetensors(out + ".safetensors"), steps, weights


def batch_of(tensors):
    """The batch as the oracle takes it, for each sample: ids, where the second part begins, label, masked (position, label)."""
    t = {n.removeprefix("batch."): x for n, x in tensors.items() if n.startswith("batch.")}
    batch = []
    for k, n in enumerate(t["lengths"]):
        masked = slice(t["masked_offsets"][k], t["masked_offsets"][k + 1])
        ids, types = t["input_ids"][k], t["token_type_ids"][k]
        assert not ids[n:].any() and not types[n:].any() and (numpy.diff(types[:n]) >= 0).all()
        batch.append(([int(i) for i in ids[:n]], int(n - types.sum()), int(t["nsp_labels"][k]),
                      [(int(i), int(j)) for i, j in zip(t["masked_positions"][masked], t["masked_labels"][masked])]))
    return batch


def check_gradients(toy, name, *options):
    tensors, steps, _ = toy.train(name, "--steps", 1, *options)
    toy.case.samples = [int(x) for x in tensors["batch.samples"]]
    mlm, pairs, truth = oracle.Model(toy.work + "/model").gradients(batch_of(tensors), toy.case)
    mine = {n.removeprefix("bert."): x.astype(numpy.float64) for n, x in tensors.items() if n != "loss" and not n.startswith("batch.")}
    assert set(mine) == set(truth), set(mine) ^ set(truth)
    oracle.report(name + ": loss", abs(float(tensors["loss"]) - mlm - pairs) / (mlm + pairs), 1e-6)
    oracle.report(name + ": loss of the log", abs(steps[0]["mlm"] - mlm) / mlm + abs(steps[0]["nsp"] - pairs) / pairs, 1e-6)
    norm = numpy.sqrt(sum((x ** 2).sum() for x in truth.values()))
    oracle.report(name + ": norm", abs(steps[0]["grad_norm"] - norm) / norm, 1e-5)
    ratio, worst = oracle.worst(mine, truth)
    oracle.report(f"{name}: {worst}, part of what is allowed", ratio, 1)


def decays(name):
    return not name.endswith(".bias") and "LayerNorm" not in name


def step_plain(model, state, gradients, step, rate, lamb):
    """LAMB, or AdamW as Google's BERT has it."""
    def correction(beta):
        return 1 - beta ** step if lamb else 1

    with torch.no_grad():
        for name, x in model.t.items():
            if name not in gradients:
                continue
            g, (m, v) = gradients[name], state.setdefault(name, (torch.zeros_like(x), torch.zeros_like(x)))
            m.mul_(0.9).add_(0.1 * g)
            v.mul_(0.999).add_(0.001 * g * g)
            u = m / correction(0.9) / ((v / correction(0.999)).sqrt() + 1e-6) + (0.01 * x if decays(name) else 0)
            x -= rate * (x.norm() / u.norm() if lamb and decays(name) and x.norm() > 0 and u.norm() > 0 else 1) * u


def check_steps(toy, name, count, *options):
    """Each batch comes from a run that ends with it."""
    toy.case.samples = None
    model = oracle.Model(toy.work + "/model")
    before = {n: x.detach().numpy().copy() for n, x in model.t.items()}
    optimiser = torch.optim.AdamW([{"params": [x for n, x in model.t.items() if decays(n) == d], "weight_decay": 0.01 * d}
                                   for d in (True, False)], lr=1e-3)
    state, worst = {}, 0
    for k in range(1, count + 1):
        tensors, steps, weights = toy.train(f"{name}-{k}", "--steps", k, "--schedule", "constant", "--warmup", 0, "--lr", 1e-3,
                                            "--dropout", 0, *options)
        mlm, pairs, gradients = model.gradients(batch_of(tensors), toy.case)
        worst = max(worst, abs(steps[-1]["loss"] - mlm - pairs) / (mlm + pairs))
        norm = numpy.sqrt(sum((x ** 2).sum() for x in gradients.values()))
        scale = min(1, 1 / norm)
        for n, x in model.t.items():
            x.grad = None if n not in gradients else torch.tensor(gradients[n] * scale)
        if options:
            step_plain(model, state, {n: x.grad for n, x in model.t.items() if x.grad is not None}, k, 1e-3, "lamb" in options)
        else:
            optimiser.step()
    oracle.report(f"{name}: loss of {count} steps", worst, 1e-6)
    moved = {n: x.detach().numpy() - before[n] for n, x in model.t.items()}
    # The gradient of a key's bias is 0 but for rounding, of which an optimiser makes steps of full size.
    errors = {n: oracle.norm(weights[n] - before[n] - d) / oracle.norm(d) for n, d in moved.items()
              if oracle.norm(d) > 0 and not n.endswith("key.bias")}
    n = max(errors, key=errors.get)
    oracle.report(f"{name}: {n}, error of the update", errors[n], 1e-3)


def main(maskbert, maskc):
    torch.set_num_threads(1)  # small models wait for threads longer than they compute
    with tempfile.TemporaryDirectory() as work:
        toy = Toy(maskbert, maskc, work)
        check_gradients(toy, "plain", "--dropout", 0)
        check_gradients(toy, "parts", "--dropout", 0, "--accumulate", 4)
        toy.case.seed, toy.case.hidden, toy.case.attention = oracle.layer_seed(5, 0), 0.1, 0.2
        check_gradients(toy, "dropout", "--dropout", 0.1, "--attention-dropout", 0.2, "--seed", 5, "--accumulate", 3)
        toy.case.hidden = toy.case.attention = 0
        check_steps(toy, "adamw", 10)
        check_steps(toy, "google", 4, "--no-bias-correction")
        check_steps(toy, "lamb", 6, "--optimizer", "lamb")
    return oracle.failures > 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])))
